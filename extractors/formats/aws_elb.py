"""Access logs of AWS' load balancers, one request a line: Application Load Balancer, and Classic Load Balancer.

Sees the client, the request with its whole address, status and sizes, the time at which the request was made and how long it
took (-1, where nobody answered, counts as nothing), the client's agent, the trace id of the load balancer. A line that is none
is rejected. Does not see: bodies; who sits behind one address; connection logs and logs of Network Load Balancers.
"""

from __future__ import annotations

import re

from extractors.formats.application_fields import access_columns
from extractors.formats.format import Emit, Format, Head, LogRecord, Row, each_record, sample
from extractors.formats.instants import earlier, microseconds
from extractors.formats.line_shapes import AccessFields

_FIELD = re.compile(r'"((?:[^"\\]|\\.)*)"|(\S+)')
_APPLICATION = re.compile(r"(https?|h2|wss?|grpcs?) \d{4}-\d\d-\d\dT\S+Z \S+ \S+:\d+ ")
_CLASSIC = re.compile(r"\d{4}-\d\d-\d\dT\S+Z \S+ \S+:\d+ (?:\S+:\d+|-) -?[\d.]+ -?[\d.]+ -?[\d.]+ ")
_REQUEST = re.compile(r"([A-Z]{1,20}) (\S+)(?: HTTP/[\d.]+)?")
_N_APPLICATION, _N_CLASSIC = 24, 12
_MADE_AT = 21
"""Field of an Application Load Balancer's line that tells when the request was made."""
_NOTES = ((4, "target"), (16, "target group"), (22, "action"), (24, "error reason"))


def claims(head: Head) -> bool:
    """Return whether most of the first lines are of a load balancer."""
    return head.layout == "text" and sum(_is_line(line) for line in head.text) * 2 > len(head.text)


def _is_line(line: str) -> bool:
    return bool(_APPLICATION.match(line) or _CLASSIC.match(line))


@each_record
def read(record: LogRecord, emit: Emit) -> None:
    """One request a line."""
    line = record.value if isinstance(record.value, str) else ""
    fields = [match[1] if match[1] is not None else match[2] for match in _FIELD.finditer(line)]
    is_application = _APPLICATION.match(line) is not None
    rest = fields[1:] if is_application else fields   # the type comes first
    request = _REQUEST.fullmatch(rest[11]) if len(rest) >= _N_CLASSIC else None
    if not _is_line(line) or request is None or (is_application and len(rest) < _N_APPLICATION - 1):
        emit.reject(record, "no_request", "the line is no request to a load balancer; leave it out or repair it")
        return
    path, _, query = request[2].partition("?")
    client, _, _ = rest[2].rpartition(":")
    columns = access_columns(AccessFields(
        client.strip("[]"), None, None, request[1], _without_port(path), query, _number(rest[7]), _number(rest[10]), None,
        _stated(rest[12]) if len(rest) > _N_CLASSIC else None, ""), emit.envelope.service({}))
    emit.event(record, "request", position=record.line, **{
        **columns, **_times(rest, is_application), **_facts(rest, is_application),
        "lossy": [*columns["lossy"], *_notes(fields, is_application)]})


def _times(rest: list[str], is_application: bool) -> Row:
    """Return when the request was made and how long it took, as far as somebody answered."""
    took = [float(each) for each in rest[4:7]]
    latency = None if min(took) < 0 else round(sum(took) * 1000, 3)
    made = microseconds(rest[_MADE_AT - 1]) if is_application else None
    ended = microseconds(rest[0])
    if made is None and ended is not None:
        made = earlier(ended, latency or 0.0)
    return {"happened_at": made, "latency_ms": latency}


def _facts(rest: list[str], is_application: bool) -> Row:
    return {"call_id": _stated(rest[16])} if is_application else {}


def _notes(fields: list[str], is_application: bool) -> list[str]:
    return [f"{name} {value}" for at, name in _NOTES if is_application and at < len(fields) and (value := _stated(fields[at]))]


def _without_port(address: str) -> str:
    """Return the address without the port that its scheme implies: the load balancer writes it, the client did not."""
    return re.sub(r"^(https://[^/]+):443(?=/|$)|^(http://[^/]+):80(?=/|$)", lambda match: match[1] or match[2], address)


def _stated(text: str) -> str | None:
    return None if text in ("-", "") else text


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() else None


FORMAT = Format(name="aws_elb", claims=claims, read=read, sample=sample("aws_elb.log"), rank=57)
