"""The spans of one file, in any dialect, to its conversations.

In: spans one by one, in any order. Out: events of each conversation, feedback, declared tools, links from traces to sessions,
and a log event for each span that tells nothing of a conversation. Sees spans sent again, a call that several spans tell of (an
agent's, a client's, a server's), sessions that only one span of a trace states, turns that go on from another trace.
Does not see: other files; a server's spans whose client logged elsewhere count as calls of their own.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import orjson

from extractors.formats import openinference, otlp_genai, traceloop, vercel
from extractors.formats.conversation import Execution, Generation, tell
from extractors.formats.format import Emit, LogRecord, Row
from extractors.formats.history import Histories
from extractors.formats.otlp_dialect import Dialect, Told
from extractors.formats.otlp_span import Span, loaded, plain, written
from extractors.formats.sampling import joined
from extractors.formats.shortened import Shortened
from extractors.formats.stitching import stitched
from extractors.formats.tool_list import declare_all

_SESSION = ("gen_ai.conversation.id", "session.id", *traceloop.SESSION, *vercel.SESSION)
_IDENTITY = ("user.id", "enduser.id", *traceloop.IDENTITY, *vercel.IDENTITY)
_LARGE = (*otlp_genai.LARGE, *openinference.LARGE, "gen_ai.prompt.", "gen_ai.completion.", "ai.prompt", "ai.response.text",
          "traceloop.entity.input", "traceloop.entity.output", "annotations.", "trace.annotations.", "session.annotations.")
Key = tuple[str, str]


@dataclass(slots=True)
class _Held:
    """What a span told, and where it belongs."""

    trace_id: str
    parent_id: str
    session_id: str | None
    told: Told
    served: bool


class Gathering:
    """Collects what the spans of one file tell, and tells it when the file has ended."""

    def __init__(self, emit: Emit, spans_linked: bool = False, shortened: Shortened | None = None) -> None:
        self._emit = emit
        self._linked = spans_linked
        self._histories = Histories(shortened)
        self._held: dict[Key, _Held] = {}
        self._parents: dict[Key, str] = {}
        self._ids: set[str] = set()
        self._sessions: dict[str, dict[str, LogRecord]] = {}
        self._later: list[tuple[Row, str]] = []
        self._records: dict[str, LogRecord] = {}
        self._spoke: dict[str, str] = {}
        self._declared: set[tuple[str | None, Any]] = set()

    def record(self, record: LogRecord) -> LogRecord:
        """The record without its value: as such it is held until the file has ended."""
        light = LogRecord(record.record_id, record.line, None)
        self._records[record.record_id] = light
        return light

    def add(self, span: Span) -> None:
        """Take in a span."""
        key = (span.trace_id, span.span_id)
        if not span.span_id:
            key = (span.trace_id, f"{span.record.record_id[:16]}.{len(self._parents)}")
        elif key in self._parents:
            self._emit.reject(span.record, "duplicate_span", "the span came before (a batch sent again); nothing to mend")
            return
        self._parents[key] = span.parent_id
        session_id = self._session(span)
        span.span_id = self._name(key)
        told = self._dialect(span)(span, self._histories)
        for name, left in told.torn if told is not None else ():
            self.torn(span.record, f"{span.span_id}/{name}", span.trace_id, name, left)
        judged = openinference.KIND in span.raw and self._judged(span)
        if told is None and not judged:
            self._aside(span)
        elif told is not None:
            told.spoken.identity = span.text(*_IDENTITY)
            self._declare(span, told.tools)
            self.hold(key, span.parent_id, session_id, told, span.served)

    def hold(self, key: Key, parent_id: str, session_id: str | None, told: Told, served: bool = False) -> None:
        """Take in what a span, or the log records of one, tells; of two tellings of one span the fuller one stays."""
        self.spoke(told.spoken.record, key[0])
        before = self._held.get(key)
        if before is not None and isinstance(before.told.spoken, Generation) and isinstance(told.spoken, Generation):
            _fill(before.told.spoken, told.spoken)
            return
        told.tools = None
        if key not in self._parents:
            told.spoken.span_id = self._name(key)
        self._held[key] = _Held(key[0], parent_id, session_id, told, served)

    def _name(self, key: Key) -> str:
        """The span's id, with its trace's where another trace has a span of that id."""
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

    def later(self, row: Row, trace_id: str) -> None:
        """Give an event the session of its trace once that is known."""
        self._later.append((row, trace_id))

    def torn(self, record: LogRecord, place: str, trace_id: str, name: str, left: str) -> None:
        """Keep what is left of a content that was cut off."""
        self.later(self._emit.event(record, "log", place=place, tool=name, content=left, lossy=["truncated"]), trace_id)
        self._emit.reject(record, "torn_attribute", f"{name} was cut off by a limit on lengths; raise the limit")

    def _session(self, span: Span) -> str | None:
        mapped = self._emit.envelope.mapped("session_id", span.raw)
        stated = written(plain(mapped) if isinstance(mapped, dict) else mapped) or span.text(*_SESSION)
        self.session_of(span.record, span.trace_id, stated)
        return stated

    @staticmethod
    def _dialect(span: Span) -> Dialect:
        if openinference.KIND in span.raw:
            return openinference.openinference
        if "ai.operationId" in span.raw:
            return vercel.vercel
        return traceloop.traceloop if traceloop.speaks(span) else otlp_genai.genai

    def _aside(self, span: Span) -> None:
        """A span that tells nothing of a conversation, or sums up what others tell."""
        shown = {key: span.value_of(value) for key, value in span.raw.items() if not key.startswith(_LARGE)}
        lossy = ["contents"] if len(shown) < len(span.raw) else []
        row = self._emit.event(
            span.record, "log", place=f"{span.span_id}/span", happened_at=span.started_at, service=span.service, tool=span.name,
            content=span.message, arguments=orjson.dumps(shown).decode(), is_error=span.failed or None, lossy=lossy,
            latency_ms=(span.ended_at - span.started_at) / 1000 if span.started_at and span.ended_at else None)
        self.later(row, span.trace_id)

    def _judged(self, span: Span) -> bool:
        """Feedback in the span's annotations."""
        n_found = 0
        trace_id, on = openinference.target(span)
        for n_found, each in enumerate(openinference.judgements(span), start=1):
            row = self._emit.event(
                span.record, "feedback", place=f"{span.span_id}/annotation{n_found}", service=span.service,
                happened_at=span.ended_at or span.started_at, call_id=on if not each.target else None,
                session_id=span.text("session.id"), **openinference.judgement(each.facts))
            if row["session_id"] is None:
                self.later(row, trace_id)
        return n_found > 0

    def _declare(self, span: Span, tools: Any) -> None:
        """Tools that a request declares, each different list of a service once."""
        if tools is None:
            return
        told = span.value_of(tools) if isinstance(tools, dict) and "stringValue" in tools else tools
        text = told if isinstance(told, str) else orjson.dumps(told)
        if (span.service, text) not in self._declared:
            self._declared.add((span.service, text))
            declare_all(loaded(told if isinstance(told, str) else span.value_of(told)), self._emit, span.service)

    def tell(self) -> None:
        """Tell all conversations, then what hangs on them."""
        names = self._names()
        groups: dict[str, list[_Held]] = {}
        for key in [key for key in self._held if self._is_repeated(key)]:
            del self._held[key]
        summed = _summed_up(self._held.values())
        for held in self._held.values():
            if not held.told.sums_up or held.trace_id not in summed:
                groups.setdefault(held.session_id or names.get(held.trace_id) or _alias(held), []).append(held)
        for session_id, members in sorted(groups.items()):
            spoken = [held.told.spoken for held in members]
            with self._emit.guarded(*{each.record.record_id: each.record for each in spoken}.values()):
                tell(session_id, [each for each in spoken if isinstance(each, Generation)],
                     [each for each in spoken if isinstance(each, Execution)], self._emit)
        for row, trace_id in self._later:
            row["session_id"] = names.get(trace_id) or (f"trace:{trace_id}" if trace_id else None)
        self._link(names)
        self._rest(names)

    def _names(self) -> dict[str, str]:
        """Session of each trace: as one of its spans states, else as the trace that its conversation begins with has it."""
        names = {trace_id: next(iter(stated)) for trace_id, stated in self._sessions.items() if len(stated) == 1}
        nameless: dict[str, list[Generation]] = {}
        for held in self._held.values():
            if held.session_id is None and held.trace_id not in names and isinstance(held.told.spoken, Generation) \
                    and held.trace_id and not held.told.sums_up:
                nameless.setdefault(held.trace_id, []).append(held.told.spoken)
        for trace_id, first in stitched(nameless).items():
            names[trace_id] = f"trace:{first}"
        return names

    def _is_repeated(self, key: Key) -> bool:
        """Whether the span runs a tool that a span around it, which is logged, runs already; that one takes what it lacks."""
        held = self._held[key]
        inner = held.told.spoken
        if not isinstance(inner, Execution):
            return False
        seen = {key}
        parent = (key[0], held.parent_id)
        while parent in self._parents and parent not in seen:
            seen.add(parent)
            around = self._held.get(parent)
            outer = around.told.spoken if around is not None else None
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
        firsts = {held.trace_id: held.told.spoken.record for held in reversed(self._held.values())}
        for trace_id, name in sorted(names.items()):
            if name != f"trace:{trace_id}":
                record = next(iter(self._sessions.get(trace_id, {}).values()), None) or firsts[trace_id]
                self._emit.event(record, "link", place=f"trace/{trace_id}", session_id=name, value=f"trace:{trace_id}")
        for (trace_id, span_id), held in self._held.items() if self._linked else ():
            name = held.session_id or names.get(trace_id) or _alias(held)
            self._emit.event(held.told.spoken.record, "link", place=f"span/{trace_id}/{span_id}", session_id=name,
                             value=f"span:{span_id}")

    def _rest(self, names: dict[str, str]) -> None:
        """Say of each record that became nothing why; one that only repeats what others told is a log event without content."""
        told = {row["record_id"] for row in self._emit.events}
        told |= {record.record_id for record, reason, _ in self._emit.rejects if reason == "malformed_record"}
        for record_id, record in self._records.items():
            if record_id not in told and record_id in self._spoke:
                trace_id = self._spoke[record_id]
                self._emit.event(record, "log", place="repeated", lossy=["told by other records"],
                                 session_id=names.get(trace_id) or (f"trace:{trace_id}" if trace_id else None))
            elif record_id not in told:
                self._emit.reject(record, "no_new_span", "the record brings no span that was not read already; nothing to mend")


def _fill(before: Generation, other: Generation) -> None:
    """Take over what the other telling of a generation has and this one lacks."""
    empty = not before.history.n_parts and all(part["kind"] == "log" for answer in before.answers for part in answer)
    if empty:
        before.asked, before.answers = other.asked, other.answers or before.answers
    before.started_at = before.started_at or other.started_at
    before.ended_at = before.ended_at or other.ended_at
    before.model = before.model or other.model
    before.usage = joined(before.usage, other.usage)
    before.identity = before.identity or other.identity


def _summed_up(held: Iterable[_Held]) -> set[str]:
    """Traces in which single answers have spans of their own."""
    return {each.trace_id for each in held if isinstance(each.told.spoken, Generation) and not each.told.sums_up}


def _alias(held: _Held) -> str:
    """Name of a session that is known by its trace alone, or by its record."""
    return f"trace:{held.trace_id}" if held.trace_id else f"~{held.told.spoken.record.record_id[:16]}"
