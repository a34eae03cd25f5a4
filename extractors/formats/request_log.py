"""An application's request log: JSON lines with `req` and `res` (pino-http, Bunyan), bodies where they were logged.

The line is written when the answer is sent: the request's time is the line's time less `responseTime`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from urllib.parse import parse_qsl

import orjson

from extractors.formats.format import Emit, Format, Head, LogRecord, Row
from extractors.formats.instants import earlier
from extractors.formats.samples import sample

_SESSION_HEADERS = ("x-session-id", "x-conversation-id", "session-id")


def claims(head: Head) -> bool:
    """The first object has a request with method and url."""
    request = head.first.get("req")
    return head.layout in ("lines", "document") and isinstance(request, dict) and \
        isinstance(request.get("method"), str) and isinstance(request.get("url"), str)


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """One request a record; lines of the same log that are no requests are rejects."""
    for record in records:
        value = record.value if isinstance(record.value, dict) else {}
        request, response = value.get("req"), value.get("res")
        if not isinstance(request, dict) or not isinstance(request.get("url"), str) or not request.get("method"):
            emit.reject(record, "no_request", "the line holds no request; it is kept in the log alone")
            continue
        with emit.guarded(record):
            _request(record, value, request, response if isinstance(response, dict) else {}, emit)


def _request(record: LogRecord, value: Row, request: Row, response: Row, emit: Emit) -> None:
    headers = {str(k).lower(): v for k, v in (request.get("headers") or {}).items()}
    path, _, query = request["url"].partition("?")
    latency = value.get("responseTime", value.get("duration"))
    ended = emit.envelope.time(value)
    started = earlier(ended, latency) if ended is not None and isinstance(latency, (int, float)) else ended
    session = emit.envelope.session_id(value) or next(filter(None, map(headers.get, _SESSION_HEADERS)), None)
    arguments: Row = {"query": _query(query)}
    answer: Row = {"status": response.get("statusCode", response.get("status"))}
    if "body" in request:
        arguments["body"] = _body(request["body"])
    if "body" in response:
        answer["body"] = _body(response["body"])
    emit.event(record, "request", session_id=session, service=emit.envelope.service(value) or _text(value.get("name")),
               happened_at=started, call_id=_text(request.get("id")), tool=f"{request['method']} {path}",
               arguments=orjson.dumps(arguments).decode(), value=orjson.dumps(answer).decode(),
               name=_identity(value, request, headers, emit), latency_ms=latency,
               lossy=[] if "body" in response else ["response body not captured"])


def _identity(value: Row, request: Row, headers: Row, emit: Emit) -> str | None:
    """Who asked: the configured place, the request's user, a session header, else the connection."""
    found = emit.envelope.mapped("identity", value) or emit.envelope.identity(request) or emit.envelope.identity(value)
    if found is not None:
        return _text(found)
    return _text(request.get("remoteAddress")) or _text(headers.get("x-forwarded-for"))


def _query(query: str) -> Row:
    """Query as an object; a name that comes more than once holds a list."""
    found: Row = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        found[name] = value if name not in found else [*_list(found[name]), value]
    return found


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _body(value: Any) -> Any:
    """A body logged as JSON text is the value that it spells."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return orjson.loads(value)
        except orjson.JSONDecodeError:
            return value
    return value


def _text(value: Any) -> str | None:
    return None if value in (None, "") else str(value)


FORMAT = Format(name="request_log", claims=claims, read=read, sample=sample("request_log.jsonl"), rank=35)
