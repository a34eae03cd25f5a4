"""What applications log, a JSON object or a line at a time, to requests and log lines: for every format that holds such.

In: payloads, bare or taken out of an envelope (syslog, a cloud's export, a container's prefix) that states more
(`PayloadContext`). Out: events of kind request and log. Sees objects of structured loggers, access log lines, syslog inside
anything, `name=value` lines, requests in a sentence (`GET /doors 200 12ms`), lines behind a time, container prefixes. A line
that cannot begin a record (a traceback's) joins the one before; a request logged at its begin and at its end is one event.
Free text gets its template when the file ends (`PayloadReader.finish`).
Does not see: bodies that were not logged; a request's begin where a log states neither it nor a duration.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from extractors import templates
from extractors.formats import line_shapes
from extractors.formats.application_fields import Stated, access_columns, object_columns, stated_in, text_object
from extractors.formats.envelope import known_service
from extractors.formats.format import Emit, LogRecord, LogRecords, Row
from extractors.formats.instants import Yearless, earlier, microseconds
from extractors.formats.line_shapes import SyslogLine, fields_of, syslog_of
from extractors.formats.values import json_text, object_in


class PayloadContext(NamedTuple):
    """What the envelope of a payload states; the payload's own word comes first."""

    happened_at: int | None = None
    service: str | None = None
    session_id: str | None = None
    identity: str | None = None
    lossy: tuple[str, ...] = ()


NOTHING = PayloadContext()
_REQUEST_PARTS = frozenset(("req", "request", "http", "httpRequest", "http.request.method"))
_NESTED = frozenset(("req", "request", "http"))
_SEVERITIES = ("emergency", "alert", "critical", "error", "warning", "notice", "info", "debug")


class PayloadReader:
    """Reads the payloads of one file."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._service = emit.envelope.service({})
        self._clock = Yearless()
        self._texts: list[tuple[Row, str, Row]] = []
        self._open: dict[str, Row] = {}
        self._before: Row | None = None
        """The event of the text line before, which a line that begins no record goes on with."""
        self._partial: dict[str, tuple[LogRecord, str]] = {}

    def read(self, record: LogRecord, payload: Any, around: PayloadContext = NOTHING) -> None:
        """Emit the events of one payload; a payload of a shape that nothing logs becomes a log line of its JSON text."""
        if around is not NOTHING:   # whatever an envelope holds begins a record
            self._before = None
        if isinstance(payload, str):
            self._line(record, payload, around)
        elif isinstance(payload, dict):
            self._object(record, payload, around)
        elif payload is None:
            self._emit.reject(record, "empty_record", "the record holds nothing; no action needed")
        else:
            self._text(record, json_text(payload), around, {})

    def forget_line(self) -> None:
        """Let no line go on with the one before: another reader took a record in between."""
        self._before = None

    def finish(self) -> None:
        """Name the free text of the whole file by its templates."""
        for record, text in self._partial.values():
            self._text(record, text, NOTHING, {})
        named = templates.named(message for _, message, _ in self._texts)
        for (row, _, facts), (template, variables) in zip(self._texts, named, strict=True):
            row["tool"] = template or "(no message)"
            row["arguments"] = json_text({**variables, **facts})
        self._texts.clear()

    def _line(self, record: LogRecord, line: str, around: PayloadContext) -> None:
        text = line.strip()
        if text[:1] == "{" and (value := object_in(text)) is not None:
            self._object(record, value, around)
        elif (fields := fields_of(text)) is not None and fields.logged_at is not None:
            self._before = None
            if fields.method is None:
                inner = around._replace(happened_at=fields.logged_at, identity=fields.user or fields.host)
                self._text(record, text, inner, {"host": fields.host, "status": fields.status})
            else:
                columns = access_columns(fields, self._service or around.service)
                self._emit.event(record, "request", position=record.line, **columns)
        elif (parts := syslog_of(text)) is not None:
            self._syslog(record, parts, around)
        elif (shape := line_shapes.shape_of(line)) is not None:
            at = microseconds(shape.time) if shape.time else None
            inner = around._replace(happened_at=at or around.happened_at)
            rest = shape.rest.strip()
            if shape.time and not shape.level and (
                    rest[:1] == "{" or syslog_of(rest) is not None or fields_of(rest) is not None):   # an envelope of its own
                self._line(record, rest, inner)
            elif shape.pairs and (value := text_object(line)) is not None:
                self._object(record, value, inner)
            else:
                self._text(record, line, inner, {"level": shape.level} if shape.level else {}, message=rest, begins=True)
        elif self._before is not None and (line_shapes.goes_on(line) or (around is NOTHING and self._before["happened_at"])):
            self._before["content"] += "\n" + line.rstrip()
            self._emit.reject(record, "joined_line", "the line goes on with the record before and is in its content; no action "
                              "needed")
        else:
            self._text(record, line, around, {}, begins=True)

    def _syslog(self, record: LogRecord, parts: SyslogLine, around: PayloadContext) -> None:
        lossy = around.lossy
        at = microseconds(parts.time)
        if at is None and parts.time is not None and (at := self._clock.microseconds(parts.time)) is not None:
            lossy = (*lossy, "year not stated")
        inner = around._replace(happened_at=at or around.happened_at, service=parts.application or around.service, lossy=lossy)
        if parts.message[:1] == "{" and (value := object_in(parts.message)) is not None:
            self._object(record, value, inner)
            return
        value = {"message": parts.message}
        for name, parameters in parts.parameters.items():
            value.update({name: parameters} if name in _NESTED else parameters)
        if parts.severity is not None:
            value.setdefault("level", _SEVERITIES[parts.severity])
        self._object(record, value, inner)

    def _object(self, record: LogRecord, value: Row, around: PayloadContext) -> None:
        if isinstance(text := value.get("log"), str) and "stream" in value:   # a line that a container's runtime wrapped
            stream = str(value["stream"])
            if stream in self._partial:
                text = self._partial.pop(stream)[1] + text
            if not text.endswith("\n") and len(text) >= 16384:
                self._partial[stream] = (record, text)
                self._emit.reject(record, "joined_line",
                                  "the line is a part of the next one and is told with it; no action needed")
            else:
                at = microseconds(value.get("time")) or around.happened_at
                self._line(record, text.rstrip("\r\n"), around._replace(happened_at=at))
            return
        self._before = None
        stated = stated_in(value)
        message = stated.text("message") or ""
        if "method" not in stated.values and (parsed := text_object(message)) is not None:
            value = {**parsed, **value}
            stated = stated_in(value)
        with self._emit.guarded(record):
            call_id = stated.text("request_id")
            if call_id in self._open and stated.status is not None:
                self._open.pop(str(call_id)).update(value=json_text({"status": stated.status}), latency_ms=stated.latency_ms)
                self._emit.reject(record, "joined_line", "the line tells how a request ended that an earlier line began; it is "
                                  "in that event; no action needed")
            elif _is_request(value, stated):
                self._request(record, value, stated, around)
            else:
                in_columns = {key for fact in ("message", "time", "session", "user", "service")
                              if (key := stated.keys.get(fact)) is not None and (fact == "time" or key not in _NESTED)}
                facts = {key: inner for key, inner in value.items() if key not in in_columns}
                row = self._emit.event(record, "log", content=message or json_text(value), **self._facts(value, stated, around))
                self._texts.append((row, message, facts))

    def _request(self, record: LogRecord, value: Row, stated: Stated, around: PayloadContext) -> None:
        columns = self._facts(value, stated, around) | object_columns(stated)
        columns["lossy"] += around.lossy
        row = self._emit.event(record, "request", position=record.line, **columns)
        if stated.status is None and row["call_id"] is not None:
            self._open[row["call_id"]] = row

    def _facts(self, value: Row, stated: Stated, around: PayloadContext) -> Row:
        identity, session, service, time = (self._emit.envelope.mapped(field, value) for field in (
            "identity", "session_id", "service", "time"))
        identity = str(identity) if identity not in (None, "") else stated.identity or around.identity
        session = str(session) if session not in (None, "") else stated.text("session") or around.session_id
        if session is None and identity is None and stated.trace is not None:
            session = f"trace:{stated.trace}"
        services = (service, known_service(stated.text("service")), around.service)
        service = self._service or next((str(each) for each in services if each not in (None, "")), None)
        at, started = microseconds(time) or stated.time("time") or around.happened_at, stated.time("started")
        if started is None and at is not None:   # a line is written when its request ends
            started = earlier(at, stated.latency_ms) if stated.latency_ms is not None else at
        return {"session_id": session, "service": service, "name": identity, "happened_at": started, "lossy": [*around.lossy]}

    def _text(self, record: LogRecord, content: str, around: PayloadContext, facts: Row, message: str | None = None,
              begins: bool = False) -> None:
        """Emit a line of free text, or a request that it tells in a sentence."""
        parsed = text_object(content if message is None else message)
        if parsed is not None and _is_request(parsed, stated := stated_in(parsed)):
            self._before = None
            self._request(record, parsed, stated, around)
            return
        row = self._emit.event(
            record, "log", session_id=around.session_id, service=self._service or around.service,
            happened_at=around.happened_at, name=around.identity, content=content.rstrip(), lossy=list(around.lossy))
        self._before = row if begins else None
        self._texts.append((row, content if message is None else message, facts))


def read_payloads(records: LogRecords, emit: Emit) -> None:
    """Read every record's value as a payload of its own: the `read` of formats without an envelope."""
    reader = PayloadReader(emit)
    for record in records:
        reader.read(record, record.value)
    reader.finish()


def _is_request(value: Row, stated: Stated) -> bool:
    """Whether there are method and path, and a sign that it was served: what registers a route names both too."""
    method, target = stated.text("method"), stated.text("target")
    if method is None or target is None or not method.isalpha() or len(method) > 20 or not line_shapes.is_target(target):
        return False
    return stated.status is not None or stated.latency_ms is not None or not _REQUEST_PARTS.isdisjoint(value)
