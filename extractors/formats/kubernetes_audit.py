"""Kubernetes audit events (`audit.k8s.io`): a line each, as the API server writes them, or listed (`EventList`, webhooks).

Each call of the API is a request with its path, body and answer as far as the audit policy logs them, and the time from its
receipt to its answer. The stages of a call (one `auditID`) are one request, as of the last stage that the file holds. Who: the
user that was impersonated, else the user. Does not see: bodies below the policy's level (noted in `lossy`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from extractors.formats.format import Emit, Format, Head, LogRecord, LogRecords, Row, sample
from extractors.formats.instants import microseconds
from extractors.formats.values import dumped, object_of, query, word_of

_GROUP = "audit.k8s.io/"
_METHODS = {"get": "GET", "list": "GET", "watch": "GET", "create": "POST", "update": "PUT", "patch": "PATCH",
            "delete": "DELETE", "deletecollection": "DELETE"}
_STAGES = ("RequestReceived", "ResponseStarted", "ResponseComplete", "Panic")
_NOTED = ("objectRef", "annotations", "sourceIPs", "userAgent")


def claims(head: Head) -> bool:
    """Return whether the first record is an event (or a list of events) of the audit's API group."""
    first = head.first
    return head.is_json and str(first.get("apiVersion")).startswith(_GROUP) and first.get("kind") in ("Event", "EventList")


def _events(value: Any) -> Iterator[Any]:
    if isinstance(value, dict) and isinstance(value.get("items"), list):
        yield from value["items"]
    elif value not in (None, {}, []):
        yield value


def read(records: LogRecords, emit: Emit) -> None:
    """One request a call; an earlier stage of it is rejected as a part of the later one."""
    calls: dict[str, tuple[int, LogRecord, int, Row]] = {}
    for record in records:
        n_events = 0
        for number, event in enumerate(_events(record.value)):
            n_events += 1
            with emit.guarded(record):
                audit_id, rank = str(event["auditID"]), _rank(event)
                before = calls.get(audit_id)
                if before is not None:
                    emit.reject(record if rank <= before[0] else before[1], "earlier_stage",
                                f"a later stage of call {audit_id} is in the file and tells all of it; no action needed")
                if before is None or rank > before[0]:
                    calls[audit_id] = rank, record, number, event
        if not n_events:
            emit.reject(record, "no_event", "the record holds no audit event; leave it out or export it again")
    for _, record, number, event in calls.values():
        with emit.guarded(record):
            _request(record, number, event, emit)


def _rank(event: Row) -> int:
    stage = event.get("stage")
    return _STAGES.index(stage) if stage in _STAGES else -1


def _request(record: LogRecord, number: int, event: Row, emit: Emit) -> None:
    path, _, text = str(event["requestURI"]).partition("?")
    user = object_of(event.get("impersonatedUser")) or object_of(event.get("user"))
    answer: Row = {"status": object_of(event.get("responseStatus")).get("code")}
    if (body := event.get("responseObject", object_of(event.get("responseStatus")).get("message"))) is not None:
        answer["body"] = body
    lossy = [] if "responseObject" in event else ["response body not captured"]
    arguments: Row = {"query": query(text)}
    if event.get("requestObject") is not None:
        arguments["body"] = event["requestObject"]
    elif event.get("verb") in ("create", "update", "patch"):
        lossy.append("request body not captured")
    lossy += [f"{name} {dumped(event[name])}" for name in _NOTED if event.get(name)]
    started, ended = microseconds(event.get("requestReceivedTimestamp")), microseconds(event.get("stageTimestamp"))
    verb = str(event["verb"])
    emit.event(
        record, "request", place=number, position=number, tool=f"{_METHODS.get(verb, verb.upper())} {path or '/'}",
        arguments=dumped(arguments), value=dumped(answer), call_id=str(event["auditID"]), name=word_of(user.get("username")),
        session_id=emit.envelope.mapped("session_id", event), service=emit.envelope.service(event),
        happened_at=started or ended,
        latency_ms=None if started is None or ended is None or ended < started else (ended - started) / 1000, lossy=lossy)


FORMAT = Format(
    name="kubernetes_audit", claims=claims, read=read, sample=sample("kubernetes_audit.jsonl"), apart=False, rank=28)
