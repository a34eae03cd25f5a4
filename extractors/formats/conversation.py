"""Spans of any tracing system to conversations: what models were asked and answered, and the tools that ran, in one order.

In: `Generation`s (one answer of a model each, with the history that it was given) and `Execution`s (one run of a tool each) of
one session. Out: events with positions. Messages give the content, executions give times and errors; a call that only an
execution tells of is taken from there. A generation may repeat the whole history, or bring only what is new.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from extractors.formats.chat import arguments_of
from extractors.formats.format import Emit, LogRecord, Row
from extractors.formats.overlap import Print, fingerprint, n_known


@dataclass(slots=True)
class Span:
    """What a generation and an execution have in common."""

    record: LogRecord
    span_id: str
    """Unique among the spans of the session."""
    started_at: int | None = None
    """Microseconds since 1970 UTC, as all times here."""
    ended_at: int | None = None
    service: str | None = None
    identity: str | None = None

    @property
    def order(self) -> tuple[int, int, str]:
        """Order in time; spans without a time come first, by id."""
        return (self.started_at or 0, self.ended_at or 0, self.span_id)

    @property
    def latency_ms(self) -> float | None:
        """How long it took, None where a time is not known."""
        return None if self.started_at is None or self.ended_at is None else (self.ended_at - self.started_at) / 1000


@dataclass(slots=True)
class Generation(Span):
    """One answer of a model."""

    asked: list[Row] = field(default_factory=list)
    """Parts of the input, system instructions first: event fields as `extractors.formats.chat.parts` gives them (kind, role,
    content, call_id, tool, arguments, is_error, lossy …); each has `kind` and `lossy`."""
    answers: list[list[Row]] = field(default_factory=list)
    """Parts of each candidate answer; the first goes on in the conversation."""
    model: str | None = None
    usage: Row | None = None
    """Token counts: input_tokens, output_tokens and, where known, cached_tokens, reasoning_tokens."""


@dataclass(slots=True)
class Execution(Span):
    """One run of a tool."""

    tool: str | None = None
    call_id: str | None = None
    arguments: Any = None
    """As logged: JSON text or a JSON value."""
    result: str | None = None
    """As logged; a value as JSON text; None: not captured."""
    is_error: bool | None = None


def tell(session_id: str, generations: Iterable[Generation], executions: Iterable[Execution], emit: Emit) -> None:
    """Emit the conversation that the spans of one session tell; their order does not matter."""
    story = _Story()
    for generation in sorted(generations, key=lambda each: each.order):
        story.answer(generation)
    for execution in sorted(executions, key=lambda each: each.order):
        story.run(execution)
    story.emit(session_id, emit)


class _Story:
    """The parts told so far: the span that told each, its place in the span, and its event fields."""

    def __init__(self) -> None:
        self._parts: list[tuple[Span, str, Row]] = []
        self._prints: list[Print] = []

    def answer(self, span: Generation) -> None:
        """Take in what one generation adds: the new end of its input, then its output."""
        prints = [_print(part) for part in span.asked]
        known = n_known(self._prints, prints)
        if known is None:   # only what is new, after instructions that are known
            known = next((i for i, each in enumerate(prints) if each not in self._prints[:1]), len(prints))
        last = max((i for i, part in enumerate(span.asked) if part.get("role") == "assistant"), default=-1)
        for i, part in enumerate(span.asked[known:], start=known):
            self._add(span, f"in{i}", {"happened_at": span.started_at if i > last else None, **part})
        for index, answer in enumerate(span.answers):
            for i, part in enumerate(answer):
                notes = [*(part.get("lossy") or ()), *([f"candidate {index}"] if index else ())]
                row = {"happened_at": span.ended_at or span.started_at, "latency_ms": span.latency_ms, **part, "lossy": notes}
                if i == 0 and index == 0 and span.usage:
                    row["usage"] = span.usage
                self._add(span, f"out{index}.{i}", row, candidate=index > 0)

    def _add(self, span: Span, place: str, part: Row, candidate: bool = False) -> None:
        self._parts.append((span, place, dict(part)))
        if not candidate and part["kind"] != "reasoning":
            self._prints.append(_print(part))

    def run(self, span: Execution) -> None:
        """Take a tool's run in: times and error of the call it answers, or the call itself."""
        at = self._call_of(span)
        if at is None:
            at = next((i for i, (_, _, row) in enumerate(self._parts)
                       if (row.get("happened_at") or 0) > (span.started_at or 0)), len(self._parts))
            arguments, notes = arguments_of(span.arguments)
            self._parts.insert(at, (span, "call", {
                "kind": "call", "role": "assistant", "requestor": "assistant", "call_id": span.call_id, "tool": span.tool,
                "arguments": arguments, "lossy": [*notes, "call known from its span alone"]}))
        call = self._parts[at][2]
        call.update(happened_at=span.started_at, latency_ms=span.latency_ms, _executed=True)
        self._result(span, at, call.get("call_id"))

    def _result(self, span: Execution, at: int, call_id: Any) -> None:
        """Give the result of the call at `at` its time and error, or take the result from the span."""
        after = (row for _, _, row in self._parts[at + 1:] if row["kind"] == "result" and "_timed" not in row)
        result = next((row for row in after if call_id is None or row.get("call_id") == call_id), None)
        if result is None:
            if span.result is None and span.ended_at is None:
                return
            result = {"kind": "result", "call_id": call_id, "content": span.result, "lossy": []}
            self._parts.insert(at + 1, (span, "result", result))
        result.update(happened_at=span.ended_at, tool=span.tool, _timed=True)
        if span.is_error is not None:
            result["is_error"] = span.is_error

    def _call_of(self, span: Execution) -> int | None:
        """Place of the call that was run: by id, else the oldest of that tool that no span ran."""
        for i, (_, _, row) in enumerate(self._parts):
            if row["kind"] == "call" and "_executed" not in row and (
                    row.get("call_id") == span.call_id if span.call_id else row.get("tool") == span.tool):
                return i
        return None

    def emit(self, session_id: str, emit: Emit) -> None:
        """All parts with their positions; candidates that were not taken share the position of the one that was."""
        position = 0
        for span, place, row in self._parts:
            told = {key: value for key, value in row.items() if not key.startswith("_")}
            fixed: Row = {"session_id": session_id, "service": span.service, "name": span.identity,
                          "model": span.model if isinstance(span, Generation) else None}
            candidate = any(note.startswith("candidate ") for note in told["lossy"])
            emit.event(span.record, place=f"{span.span_id}/{place}", position=position, **{**fixed, **told})
            position += 0 if candidate else 1


def _print(part: Row) -> Print:
    return fingerprint(part["kind"], part.get("role"), part.get("content"), part.get("tool"), part.get("arguments"))
