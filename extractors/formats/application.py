"""What applications log, a JSON object or a line at a time, to requests and log lines: for every format that carries such.

In: payloads, bare or taken out of an envelope (syslog, a cloud's export, a container's prefix) that states more (`Around`).
Out: events of kind request and log. Sees objects of structured loggers, access log lines, syslog inside anything, `name=value`
lines, requests told in a sentence (`GET /doors 200 12ms`), lines behind a time, container prefixes. A line that cannot begin a
record (a traceback's) joins the one before; a request told at its begin and again at its end is one event. Free text gets its
template when the file ends (`Teller.finish`).
Does not see: bodies that nobody logged; a request's begin where a log states neither it nor a duration.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import orjson

from extractors import templates
from extractors.formats import line_shapes
from extractors.formats.access_line import AccessFields, fields_of
from extractors.formats.application_fields import Row, Stated, stated_in
from extractors.formats.application_request import access_columns, object_columns, text_object
from extractors.formats.envelope import known_service
from extractors.formats.format import Emit, LogRecord
from extractors.formats.instants import Yearless, earlier, microseconds
from extractors.formats.syslog_line import SyslogLine, syslog_of


class Around(NamedTuple):
    """What the envelope of a payload states; the payload's own word comes first."""

    happened_at: int | None = None
    service: str | None = None
    session_id: str | None = None
    identity: str | None = None
    lossy: tuple[str, ...] = ()


NOTHING = Around()
_NO_MESSAGE = "(no message)"
_REQUEST_PARTS = frozenset(("req", "request", "http", "httpRequest", "http.request.method"))
_NESTED = frozenset(("req", "request", "http"))
_SEVERITIES = ("emergency", "alert", "critical", "error", "warning", "notice", "info", "debug")


class Teller:
    """Tells the payloads of one file; what it must remember between them ends with the file."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._service = emit.envelope.service({})
        self._clock = Yearless()
        self._texts: list[tuple[Row, str, Row]] = []
        self._open: dict[str, Row] = {}
        self._before: Row | None = None
        """The event of the text line before, which a line that begins no record goes on with."""
        self._partial: dict[str, tuple[LogRecord, str]] = {}

    def tell(self, record: LogRecord, payload: Any, around: Around = NOTHING) -> None:
        """The events of one payload; a payload of a shape that nothing logs becomes a log line of its JSON text."""
        if around is not NOTHING:   # whatever an envelope holds begins a record
            self._before = None
        if isinstance(payload, str):
            self._line(record, payload, around)
        elif isinstance(payload, dict):
            self._object(record, payload, around)
        elif payload is None:
            self._emit.reject(record, "empty_record", "the record holds nothing; nothing to mend")
        else:
            self._text(record, orjson.dumps(payload, default=str).decode(), around, {})

    def begin_anew(self) -> None:
        """A record was told elsewhere: what follows does not go on with the line before it."""
        self._before = None

    def finish(self) -> None:
        """Name the free text by its templates: when all of the file was told."""
        for record, text in self._partial.values():
            self._text(record, text, NOTHING, {})
        found = templates.named(message for _, message, _ in self._texts)
        for (row, _, facts), (template, variables) in zip(self._texts, found, strict=True):
            row["tool"] = template or _NO_MESSAGE
            row["arguments"] = _json({**variables, **facts})
        self._texts.clear()

    def _line(self, record: LogRecord, line: str, around: Around) -> None:
        text = line.strip()
        if text[:1] == "{" and (value := _object_of(text)) is not None:
            self._object(record, value, around)
        elif (fields := fields_of(text)) is not None and fields.logged_at is not None:
            self._before = None
            self._access(record, text, fields, around)
        elif (parts := syslog_of(text)) is not None:
            self._syslog(record, parts, around)
        elif (shape := line_shapes.shape_of(line)) is not None:
            self._shaped(record, line, shape, around)
        elif self._before is not None and (line_shapes.goes_on(line) or (around is NOTHING and self._before["happened_at"])):
            self._before["content"] += "\n" + line.rstrip()
            self._emit.reject(record, "joined_line", "the line goes on with the record before and is in its content; nothing "
                              "to mend")
        else:
            self._text(record, line, around, {}, begins=True)

    def _access(self, record: LogRecord, line: str, fields: AccessFields, around: Around) -> None:
        if fields.method is None:
            inner = around._replace(happened_at=fields.logged_at, identity=fields.user or fields.host)
            self._text(record, line, inner, {"host": fields.host, "status": fields.status})
            return
        columns = access_columns(fields, self._service or around.service)
        self._emit.event(record, "request", position=record.line, **columns)

    def _shaped(self, record: LogRecord, line: str, shape: line_shapes.Shape, around: Around) -> None:
        """A line behind a time or a level: an envelope of its own where more than text follows."""
        at = microseconds(shape.time) if shape.time else None
        inner = around._replace(happened_at=at or around.happened_at)
        rest = shape.rest.strip()
        if shape.time and not shape.level and (rest[:1] == "{" or syslog_of(rest) is not None or fields_of(rest) is not None):
            self._line(record, rest, inner)
            return
        if shape.pairs and (value := text_object(line)) is not None:
            self._object(record, value, inner)
            return
        self._text(record, line, inner, {"level": shape.level} if shape.level else {}, message=rest, begins=True)

    def _syslog(self, record: LogRecord, parts: SyslogLine, around: Around) -> None:
        lossy = around.lossy
        at = microseconds(parts.time)
        if at is None and parts.time is not None and (at := self._clock.microseconds(parts.time)) is not None:
            lossy = (*lossy, "year not stated")
        inner = around._replace(happened_at=at or around.happened_at, service=parts.application or around.service, lossy=lossy)
        if parts.message[:1] == "{" and (value := _object_of(parts.message)) is not None:
            self._object(record, value, inner)
            return
        value = {"message": parts.message}
        for name, parameters in parts.parameters.items():
            value.update({name: parameters} if name in _NESTED else parameters)
        if parts.severity is not None:
            value.setdefault("level", _SEVERITIES[parts.severity])
        self._object(record, value, inner)

    def _object(self, record: LogRecord, value: Row, around: Around) -> None:
        if isinstance(value.get("log"), str) and "stream" in value and self._container(record, value, around):
            return
        self._before = None
        stated = stated_in(value)
        message = stated.text("message") or ""
        if "method" not in stated.found and (told := text_object(message)) is not None:
            value = {**told, **value}
            stated = stated_in(value)
        with self._emit.guarded(record):
            if self._ends_one(record, stated):
                return
            if _is_request(value, stated):
                self._request(record, value, stated, around)
                return
            facts = {key: inner for key, inner in value.items() if key not in _said(stated)}
            row = self._emit.event(record, "log", content=message or _json(value), **self._facts(value, stated, around))
            self._texts.append((row, message, facts))

    def _request(self, record: LogRecord, value: Row, stated: Stated, around: Around) -> None:
        columns = self._facts(value, stated, around) | object_columns(value, stated)
        columns["lossy"] += around.lossy
        row = self._emit.event(record, "request", position=record.line, **columns)
        if stated.status is None and row["call_id"] is not None:
            self._open[row["call_id"]] = row

    def _ends_one(self, record: LogRecord, stated: Stated) -> bool:
        """Whether the object tells how a request ended whose begin an earlier one told."""
        call_id = stated.text("request_id")
        if call_id is None or call_id not in self._open or stated.status is None:
            return False
        row = self._open.pop(call_id)
        row["value"] = _json({"status": stated.status})
        row["latency_ms"] = stated.latency_ms
        self._emit.reject(record, "joined_line", "the line tells how a request ended that an earlier line began; it is in that "
                          "event; nothing to mend")
        return True

    def _facts(self, value: Row, stated: Stated, around: Around) -> Row:
        """The columns that every event has: its session, service, identity and time."""
        envelope = self._emit.envelope
        identity = envelope.mapped("identity", value)
        identity = str(identity) if identity not in (None, "") else stated.identity or around.identity
        session = envelope.mapped("session_id", value)
        session = str(session) if session not in (None, "") else stated.text("session") or around.session_id
        if session is None and identity is None and stated.trace is not None:
            session = f"trace:{stated.trace}"
        at = microseconds(envelope.mapped("time", value)) or stated.time("time") or around.happened_at
        service = self._service or _first_text(
            envelope.mapped("service", value), known_service(stated.text("service")), around.service)
        return {"session_id": session, "service": service, "name": identity, "happened_at": _begin(at, stated),
                "lossy": list(around.lossy)}

    def _container(self, record: LogRecord, value: Row, around: Around) -> bool:
        """A line that a container's runtime wrapped; a part of a line waits for the rest."""
        text, stream = value["log"], str(value["stream"])
        if stream in self._partial:
            text = self._partial.pop(stream)[1] + text
        at = microseconds(value.get("time")) or around.happened_at
        if not text.endswith("\n") and len(text) >= 16384:
            self._partial[stream] = (record, text)
            self._emit.reject(record, "joined_line", "the line is a part of the next one and is told with it; nothing to mend")
        else:
            self._line(record, text.rstrip("\r\n"), around._replace(happened_at=at))
        return True

    def _text(self, record: LogRecord, content: str, around: Around, facts: Row, message: str | None = None,
              begins: bool = False) -> None:
        """A line of free text, or a request that it tells in a sentence."""
        told = text_object(content if message is None else message)
        if told is not None and _is_request(told, stated := stated_in(told)):
            self._before = None
            self._request(record, told, stated, around)
            return
        row = self._emit.event(
            record, "log", session_id=around.session_id, service=self._service or around.service,
            happened_at=around.happened_at, name=around.identity, content=content.rstrip(), lossy=list(around.lossy))
        self._before = row if begins else None
        self._texts.append((row, content if message is None else message, facts))


def tell_all(records: Any, emit: Emit) -> None:
    """Every record's value as a payload of its own."""
    teller = Teller(emit)
    for record in records:
        teller.tell(record, record.value)
    teller.finish()


def _is_request(value: Row, stated: Stated) -> bool:
    """Method and path, and a sign that it was served: what registers a route names both too."""
    method, target = stated.text("method"), stated.text("target")
    if method is None or target is None or not method.isalpha() or len(method) > 20 or not line_shapes.is_target(target):
        return False
    return stated.status is not None or stated.latency_ms is not None or not _REQUEST_PARTS.isdisjoint(value)


def _said(stated: Stated) -> set[str]:
    """Keys whose value the event's own columns hold."""
    return {stated.keys[fact] for fact in ("message", "time", "session", "user", "service") if fact in stated.keys
            and not (fact != "time" and stated.keys[fact] in _NESTED)}


def _begin(at: int | None, stated: Stated) -> int | None:
    """When it began: as stated, else the line's time less the duration, since a line is written at the end."""
    started = stated.time("started")
    if started is not None or at is None or stated.latency_ms is None:
        return started if started is not None else at
    return earlier(at, stated.latency_ms)


def _first_text(*values: Any) -> str | None:
    return next((str(value) for value in values if value not in (None, "")), None)


def _object_of(text: str) -> Row | None:
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None


def _json(value: Any) -> str:
    return orjson.dumps(value, default=str).decode()
