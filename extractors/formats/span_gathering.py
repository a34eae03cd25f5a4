"""The spans of one file, in any dialect, to its conversations.

In: spans one by one, in any order. Out: events of each conversation, feedback, declared tools, links from traces to sessions,
and a log event for each span that tells nothing of a conversation. Sees spans sent again, a call that several spans tell of (an
agent's, a client's, a server's), sessions that only one span of a trace states, turns that go on from another trace.
Does not see: other files; a server's spans whose client logged elsewhere count as calls of their own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson

from extractors.formats import span_dialects as dialects
from extractors.formats.conversation import Execution, Generation, milliseconds, stitched, tell
from extractors.formats.format import Emit, LogRecord, Row
from extractors.formats.history import Histories, Shortened
from extractors.formats.otlp_span import TraceSpan, hex_id, plain
from extractors.formats.tool_list import declare_all
from extractors.formats.values import dumped, loaded, written

Key = tuple[str, str]


@dataclass(slots=True)
class _GatheredSpan:
    """What a span holds, and where it belongs."""

    trace_id: str
    parent_id: str
    session_id: str | None
    reading: dialects.SpanReading

    @property
    def is_answer(self) -> bool:
        return isinstance(self.reading.spoken, Generation) and not self.reading.sums_up


class SpanGatherer:
    """Collects what the spans of one file tell, and tells it when the file has ended."""

    def __init__(self, emit: Emit, spans_linked: bool = False, shortened: Shortened | None = None) -> None:
        self._emit = emit
        self._linked = spans_linked
        self._histories = Histories(shortened)
        self._spans: dict[Key, _GatheredSpan] = {}
        self._parents: dict[Key, str] = {}
        self._ids: set[str] = set()
        self._sessions: dict[str, dict[str, LogRecord]] = {}
        self._later: list[tuple[Row, str]] = []
        self._records: dict[str, LogRecord] = {}
        self._spoke: dict[str, str] = {}
        self._declared: set[tuple[str | None, Any]] = set()

    def record(self, record: LogRecord) -> LogRecord:
        """Return the record without its value: as such it is held until the file has ended."""
        light = LogRecord(record.record_id, record.line, None)
        self._records[record.record_id] = light
        return light

    def add(self, span: TraceSpan) -> None:
        key = (span.trace_id, span.span_id)
        if not span.span_id:
            key = (span.trace_id, f"{span.record.record_id[:16]}.{len(self._parents)}")
        elif key in self._parents:
            self._emit.reject(span.record, "duplicate_span", "the span came before (a batch sent again); no action needed")
            return
        self._parents[key] = span.parent_id
        mapped = self._emit.envelope.mapped("session_id", span.raw)
        session_id = written(plain(mapped) if isinstance(mapped, dict) else mapped) or span.text(*dialects.SESSION)
        self.session_of(span.record, span.trace_id, session_id)
        span.span_id = self._name(key)
        reading = dialects.read_span(span, self._histories)
        for name, remainder in reading.torn if reading is not None else ():
            self.torn(span.record, f"{span.span_id}/{name}", span.trace_id, name, remainder)
        is_judged = dialects.KIND in span.raw and self._judge(span)
        if reading is None and not is_judged:   # it tells nothing of a conversation, or sums up what others tell
            shown = {key: span.value_of(value) for key, value in span.raw.items() if not key.startswith(dialects.CONTENTS)}
            has_times = span.started_at and span.ended_at
            self.place(self._emit.event(
                span.record, "log", place=f"{span.span_id}/span", happened_at=span.started_at, service=span.service,
                tool=span.name, content=span.message, arguments=dumped(shown), is_error=span.failed or None,
                lossy=["contents"] if len(shown) < len(span.raw) else [],
                latency_ms=milliseconds(span.started_at, span.ended_at) if has_times else None), span.trace_id)
        elif reading is not None:
            reading.spoken.identity = span.text(*dialects.IDENTITY)
            self._declare(span, reading.tools)
            self.hold(key, span.parent_id, session_id, reading)

    def hold(self, key: Key, parent_id: str, session_id: str | None, reading: dialects.SpanReading) -> None:
        """Take in what a span, or the log records of one, tells; of two tellings of one span the fuller one stays."""
        self.spoke(reading.spoken.record, key[0])
        before = self._spans.get(key)
        if before is not None and isinstance(before.reading.spoken, Generation) and isinstance(reading.spoken, Generation):
            mine, other = before.reading.spoken, reading.spoken   # which has what this one lacks
            if not mine.history.n_parts and all(part["kind"] == "log" for answer in mine.answers for part in answer):
                mine.prompt, mine.answers = other.prompt, other.answers or mine.answers
            mine.started_at, mine.ended_at = mine.started_at or other.started_at, mine.ended_at or other.ended_at
            mine.model, mine.identity = mine.model or other.model, mine.identity or other.identity
            mine.usage = {**(other.usage or {}), **(mine.usage or {})} or None
            return
        reading.tools = None
        if key not in self._parents:
            reading.spoken.span_id = self._name(key)
        self._spans[key] = _GatheredSpan(key[0], parent_id, session_id, reading)

    def _name(self, key: Key) -> str:
        """Return the span's id, with its trace's where another trace has a span of that id."""
        name = key[1] if key[1] not in self._ids else f"{key[0]}.{key[1]}"
        self._ids.add(name)
        return name

    def spoke(self, record: LogRecord, trace_id: str) -> None:
        """Note that a record says a part of a conversation, be it one that others say too."""
        self._spoke.setdefault(record.record_id, trace_id)

    def session_of(self, record: LogRecord, trace_id: str, stated: str | None) -> None:
        """Note that a record states the session of a trace."""
        if stated is not None and trace_id:
            self._sessions.setdefault(trace_id, {}).setdefault(stated, record)

    def place(self, row: Row, trace_id: str) -> None:
        """Give an event without a session that of its trace, once it is known."""
        if row.get("session_id") is None:
            self._later.append((row, trace_id))

    def torn(self, record: LogRecord, place: str, trace_id: str, name: str, remainder: str) -> None:
        """Keep what is left of a content that was cut off."""
        self.place(self._emit.event(record, "log", place=place, tool=name, content=remainder, lossy=["truncated"]), trace_id)
        self._emit.reject(record, "torn_attribute", f"{name} was cut off by a limit on lengths; raise the limit")

    def _judge(self, span: TraceSpan) -> bool:
        """Emit the span's annotations as feedback; whether it has any."""
        annotations = list(dialects.judgements(span))
        link = span.links[0] if len(span.links) == 1 and isinstance(span.links[0], dict) else None
        trace_id, on = span.trace_id, span.span_id or None
        if link is not None:   # they are on the one that the span links to
            trace_id = hex_id(link.get("traceId", link.get("trace_id"))) or trace_id
            on = hex_id(link.get("spanId", link.get("span_id"))) or None
        for number, (target, facts) in enumerate(annotations, start=1):
            row = self._emit.event(
                span.record, "feedback", place=f"{span.span_id}/annotation{number}", service=span.service,
                happened_at=span.ended_at or span.started_at, call_id=on if not target else None,
                session_id=span.text("session.id"), **dialects.judgement(facts))
            self.place(row, trace_id)
        return bool(annotations)

    def _declare(self, span: TraceSpan, tools: Any) -> None:
        """Tools that a request declares, each different list of a service once."""
        if tools is None:
            return
        declared = span.value_of(tools) if isinstance(tools, dict) and "stringValue" in tools else tools
        text = declared if isinstance(declared, str) else orjson.dumps(declared)
        if (span.service, text) not in self._declared:
            self._declared.add((span.service, text))
            declare_all(loaded(declared if isinstance(declared, str) else span.value_of(declared)), self._emit, span.service)

    def tell(self) -> None:
        names = self._names()
        groups: dict[str, list[_GatheredSpan]] = {}
        for key in [key for key in self._spans if self._is_repeated(key)]:
            del self._spans[key]
        summed = {each.trace_id for each in self._spans.values() if each.is_answer}   # single answers have spans of their own
        for gathered in self._spans.values():
            if not gathered.reading.sums_up or gathered.trace_id not in summed:
                groups.setdefault(gathered.session_id or names.get(gathered.trace_id) or _alias(gathered), []).append(gathered)
        for session_id, members in sorted(groups.items()):
            spoken = [gathered.reading.spoken for gathered in members]
            for gathered in members:
                if isinstance(gathered.reading.spoken, Generation):
                    gathered.reading.spoken.is_around = gathered.reading.sums_up
            with self._emit.guarded(*{each.record.record_id: each.record for each in spoken}.values()):
                tell(session_id, [each for each in spoken if isinstance(each, Generation)],
                     [each for each in spoken if isinstance(each, Execution)], self._emit)
        for row, trace_id in self._later:
            row["session_id"] = _session(trace_id, names)
        self._link(names)
        record_ids = {row["record_id"] for row in self._emit.events}
        record_ids |= {record.record_id for record, reason, _ in self._emit.rejects if reason == "malformed_record"}
        for record_id, record in self._records.items():   # each that became nothing; one that repeats others has no content
            if record_id not in record_ids and record_id in self._spoke:
                self._emit.event(record, "log", place="repeated", lossy=["told by other records"],
                                 session_id=_session(self._spoke[record_id], names))
            elif record_id not in record_ids:
                self._emit.reject(record, "no_new_span", "the record has no new span; no action needed")

    def _names(self) -> dict[str, str]:
        """Session of each trace: as one of its spans states, else as the trace that its conversation begins with has it."""
        names = {trace_id: next(iter(stated)) for trace_id, stated in self._sessions.items() if len(stated) == 1}
        nameless: dict[str, list[Generation]] = {}
        for gathered in self._spans.values():
            spoken, trace_id = gathered.reading.spoken, gathered.trace_id
            if gathered.is_answer and isinstance(spoken, Generation) and gathered.session_id is None and (
                    trace_id and trace_id not in names):
                nameless.setdefault(trace_id, []).append(spoken)
        for trace_id, first in stitched(nameless).items():
            names[trace_id] = f"trace:{first}"
        return names

    def _is_repeated(self, key: Key) -> bool:
        """Whether the span runs a tool that a span around it, which is logged, runs already; that one takes what it lacks."""
        gathered = self._spans[key]
        inner = gathered.reading.spoken
        if not isinstance(inner, Execution):
            return False
        visited = {key}
        parent = (key[0], gathered.parent_id)
        while parent in self._parents and parent not in visited:
            visited.add(parent)
            around = self._spans.get(parent)
            outer = around.reading.spoken if around is not None else None
            if isinstance(outer, Execution) and outer.tool == inner.tool:
                outer.arguments = inner.arguments if outer.arguments is None else outer.arguments
                outer.result = inner.result if outer.result is None else outer.result
                outer.call_id = outer.call_id or inner.call_id
                outer.is_error = inner.is_error if outer.is_error is None else outer.is_error
                return True
            parent = (key[0], self._parents[parent])
        return False

    def _link(self, names: dict[str, str]) -> None:
        """Say the session of each trace (and, where annotations name spans alone, of each span) to other files."""
        firsts = {gathered.trace_id: gathered.reading.spoken.record for gathered in reversed(self._spans.values())}
        for trace_id, name in sorted(names.items()):
            if name != f"trace:{trace_id}":
                record = next(iter(self._sessions.get(trace_id, {}).values()), None) or firsts[trace_id]
                self._emit.event(record, "link", place=f"trace/{trace_id}", session_id=name, value=f"trace:{trace_id}")
        for (trace_id, span_id), gathered in self._spans.items() if self._linked else ():
            name = gathered.session_id or names.get(trace_id) or _alias(gathered)
            self._emit.event(gathered.reading.spoken.record, "link", place=f"span/{trace_id}/{span_id}", session_id=name,
                             value=f"span:{span_id}")


def _session(trace_id: str, names: dict[str, str]) -> str | None:
    return names.get(trace_id) or (f"trace:{trace_id}" if trace_id else None)


def _alias(gathered: _GatheredSpan) -> str:
    """Name of a session that is known by its trace alone, or by its record."""
    return f"trace:{gathered.trace_id}" if gathered.trace_id else f"~{gathered.reading.spoken.record.record_id[:16]}"
