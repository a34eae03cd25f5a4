"""AWS CloudTrail: calls of AWS' APIs, as delivered (`Records`), a line each, or as `lookup-events` lists them (`Events`).

Each call is a request `POST /<service>/<operation>` (`GET` where the record states that it only reads), with its parameters as
body and its answer as far as CloudTrail logs it; a failed call has the error's code and message. Who: the ARN of the caller.
The trail delivers an event more than once at times (`eventID`): the second one is rejected. Sign-ins, service events and
insights are log events. Does not see: HTTP status codes (400 stands for an error, 200 for none, noted in `lossy`), answers of
most reading calls, which CloudTrail leaves out.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from extractors.formats.format import Emit, Format, Head, LogRecord, LogRecords, Row, sample
from extractors.formats.instants import microseconds
from extractors.formats.values import dumped, object_of, objects_in, opened, word_of

_NOTED = ("awsRegion", "resources", "additionalEventData", "serviceEventDetails")
_CALLS = ("AwsApiCall", "AwsServiceEvent", "AwsConsoleAction")


def claims(head: Head) -> bool:
    """Return whether the first record is, or holds, an event with a version, a source and a name."""
    return head.is_json and any(_is_event(each) for each in list(_events(head.first))[:1])


def _is_event(value: Any) -> bool:
    return isinstance(value, dict) and all(
        isinstance(value.get(name), str) for name in ("eventVersion", "eventSource", "eventName", "eventTime"))


def _events(value: Any) -> Iterator[Any]:
    """Yield the events of a record: a delivered file, a page of a look-up, or an event."""
    if not isinstance(value, dict):
        return
    if isinstance(value.get("Records"), list):
        yield from value["Records"]
    elif isinstance(value.get("Events"), list):
        for each in objects_in(value["Events"]):
            yield opened(each.get("CloudTrailEvent"))
    else:
        yield value


def read(records: LogRecords, emit: Emit) -> None:
    """One request or log event an event; an event that was delivered before is rejected."""
    delivered: set[str] = set()
    for record in records:
        n_events = 0
        for number, event in enumerate(_events(record.value)):
            n_events += 1
            with emit.guarded(record):
                if not _is_event(event):
                    emit.reject(record, "no_event", "the record holds an event without source, name or time; repair it")
                elif isinstance(event_id := event.get("eventID"), str) and event_id in delivered:
                    emit.reject(record, "duplicate_event", f"event {event_id} was delivered before; no action needed")
                else:
                    delivered.add(str(event.get("eventID")))
                    _event(record, number, event, emit)
        if not n_events:
            emit.reject(record, "no_event", "the record holds no events; leave it out or export it again")


def _event(record: LogRecord, number: int, event: Row, emit: Emit) -> None:
    shared: Row = {"happened_at": microseconds(event["eventTime"]), "name": _who(event), "session_id": emit.envelope.mapped(
        "session_id", event), "service": emit.envelope.service(event)}
    if event.get("eventType", _CALLS[0]) not in _CALLS or event.get("eventCategory") == "Insight":
        emit.event(record, "log", place=number, tool=event["eventName"], content=dumped(event), **shared)
        return
    service = event["eventSource"].removesuffix(".amazonaws.com")
    problem = word_of(event.get("errorCode"))
    answer: Row = {"status": 400 if problem else 200}
    lossy = ["status inferred"]
    if problem:
        answer["body"] = {"code": problem, "message": event.get("errorMessage")}
    elif event.get("responseElements") is not None:
        answer["body"] = event["responseElements"]
    else:
        lossy.append("response body not captured")
    lossy += [f"{key} {dumped(event[key])}" for key in _NOTED if event.get(key)]
    arguments: Row = {"query": {}}
    if event.get("requestParameters") is not None:
        arguments["body"] = event["requestParameters"]
    method = "GET" if event.get("readOnly") in (True, "true") else "POST"
    emit.event(record, "request", place=number, position=number, tool=f"{method} /{service}/{event['eventName']}",
               arguments=dumped(arguments), value=dumped(answer), lossy=lossy,
               call_id=word_of(event.get("requestID")), **shared)


def _who(event: Row) -> str | None:
    """Return who called: the ARN, else the name of the user, the principal or the service that called."""
    identity = object_of(event.get("userIdentity"))
    return next((name for key in ("arn", "userName", "principalId", "invokedBy") if (name := word_of(identity.get(key)))),
                word_of(event.get("sourceIPAddress")))


FORMAT = Format(name="cloudtrail", claims=claims, read=read, sample=sample("cloudtrail.json"), rank=28)
