"""Spans of any tracing system to conversations: what models were asked and answered, and the tools that ran, in one order.

In: `Generation`s (one answer of a model each, with the history that it was given) and `Execution`s (one run of a tool each) of
one session. Out: events with positions. Messages give the content, executions give times and errors; a call that only an
execution tells of is taken from there. A generation may repeat the whole history, or bring only what is new.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from extractors.formats.chat import arguments_of
from extractors.formats.format import Emit, LogRecord, Row
from extractors.formats.history import History, print_of
from extractors.formats.overlap import Print, canonical, n_known
from extractors.formats.sampling import laid

NOT_CAPTURED = "content not captured"
"""Note on an answer of which the log has the time and the token counts alone."""
_COUNTED = ("message", "call", "result")
FROM_SPAN = "call known from its span alone"
"""Note on a call that no message tells of."""


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
        return (self.started_at or self.ended_at or 0, self.ended_at or 0, self.span_id)

    @property
    def latency_ms(self) -> float | None:
        """How long it took, None where a time is not known."""
        return None if self.started_at is None or self.ended_at is None else (self.ended_at - self.started_at) / 1000


@dataclass(slots=True)
class Generation(Span):
    """One answer of a model."""

    asked: list[Row] | History = field(default_factory=list)
    """Parts of the input, system instructions first: event fields as `extractors.formats.chat.parts` gives them (kind, role,
    content, call_id, tool, arguments, is_error, lossy …); each has `kind` and `lossy`. `_record`: the record that told it,
    where it is another one than the generation's."""
    answers: list[list[Row]] = field(default_factory=list)
    """Parts of each candidate answer; the first goes on in the conversation."""
    model: str | None = None
    usage: Row | None = None
    """Token counts (input_tokens, output_tokens and, where known, cached_tokens, reasoning_tokens), and where they are stated
    the sampling parameters and the tokens (`extractors.formats.sampling`)."""

    @property
    def history(self) -> History:
        """The input."""
        return self.asked if isinstance(self.asked, History) else History(self.asked)


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
    notes: list[str] = field(default_factory=list)
    """What else it says of a result that it brings: `lossy` of it."""


def tell(session_id: str, generations: Iterable[Generation], executions: Iterable[Execution], emit: Emit) -> None:
    """Emit the conversation that the spans of one session tell; their order does not matter."""
    story = _Story()
    for generation in sorted(generations, key=lambda each: each.order):
        story.answer(generation)
    for execution in sorted(executions, key=lambda each: each.order):
        story.run(execution)
    story.emit(session_id, emit)


@dataclass(slots=True, eq=False)
class _Part:
    """A part told: the span that told it, its place in the span, and its event fields."""

    span: Span
    place: str
    row: Row
    candidate: bool = False
    taken: bool = False
    """Of a call: an execution ran it. Of a result: an execution gave its time."""


class _Story:
    """The parts told so far."""

    def __init__(self) -> None:
        self._parts: list[_Part] = []
        self._prints: list[Print] = []
        self._same: History | None = None
        """An input whose prints are the first ones told."""
        self._calls: dict[tuple[str, Any], deque[_Part]] = {}
        self._results: dict[Any, list[_Part]] = {}

    def answer(self, span: Generation) -> None:
        """Take in what one generation adds: the new end of its input, then its output."""
        history = span.history
        new = list(history.beyond(self._known(history)))
        last = max((i for i, part in new if part.get("role") == "assistant"), default=-1)
        asked_at = span.started_at or span.ended_at
        for i, part in new:
            self._add(_Part(span, f"in{i}", {"happened_at": asked_at if i > last else None, **part}))
        for index, answer in enumerate(span.answers):
            told = laid(span.usage, [part["kind"] for part in answer])
            for i, part in enumerate(answer):
                notes = [*(part.get("lossy") or ()), *([f"candidate {index}"] if index else ())]
                row = {"happened_at": span.ended_at or span.started_at, "latency_ms": span.latency_ms, **part, "lossy": notes}
                if index == 0 and told[i]:
                    row["usage"] = told[i]
                self._add(_Part(span, f"out{index}.{i}", row, candidate=index > 0))

    def _known(self, history: History) -> int:
        """How many leading prints of the input are told already."""
        links = history.since(self._same)
        before = self._same.n_prints if self._same is not None and links is not None else 0
        prints = [each for link in (links if links is not None else history.since(None) or ()) for each in link.prints]
        told = self._prints[before:]
        if prints[:len(told)] == told or told[:len(prints)] == prints:
            self._same = history
            return before + min(len(prints), len(told))
        if before:
            prints = [each for link in history.since(None) or () for each in link.prints]
        self._same = None
        known = n_known(self._prints, prints)
        if known is None:   # only what is new, after instructions that are known
            known = next((i for i, each in enumerate(prints) if each not in self._prints[:1]), len(prints))
        return known

    def _add(self, part: _Part) -> None:
        self._parts.append(part)
        row = part.row
        if part.candidate:
            return
        if row["kind"] == "call":
            self._calls.setdefault(("id", row.get("call_id")), deque()).append(part)
            self._calls.setdefault(("tool", row.get("tool")), deque()).append(part)
        elif row["kind"] == "result":
            self._results.setdefault(row.get("call_id"), []).append(part)
        if row["kind"] != "reasoning" and NOT_CAPTURED not in (row.get("lossy") or ()):
            self._prints.append(print_of(row))

    def run(self, span: Execution) -> None:
        """Take a tool's run in: times and error of the call it answers, or the call itself."""
        part = self._call_of(span)
        if part is None:
            arguments, notes = arguments_of(span.arguments)
            part = _Part(span, "call", {
                "kind": "call", "role": "assistant", "requestor": "assistant", "call_id": span.call_id, "tool": span.tool,
                "arguments": arguments, "lossy": [*notes, FROM_SPAN]})
            self._parts.insert(self._place_of(span.started_at or span.ended_at or 0), part)
        part.taken = True
        part.row.update(happened_at=span.started_at, latency_ms=span.latency_ms)
        self._result(span, part)

    def _place_of(self, instant: int) -> int:
        """Before the first part that happened later."""
        place = len(self._parts)
        for i in range(len(self._parts) - 1, -1, -1):
            happened_at = self._parts[i].row.get("happened_at")
            if happened_at is not None:
                if happened_at <= instant:
                    break
                place = i
        return place

    def _result(self, span: Execution, call: _Part) -> None:
        """Give the call's result its time and error, or take the result from the span."""
        call_id = call.row.get("call_id")
        if call_id is not None:
            result = next((each for each in self._results.get(call_id, ()) if not each.taken), None)
        else:
            after = self._parts[self._parts.index(call) + 1:]
            result = next((each for each in after if each.row["kind"] == "result" and not each.taken), None)
        if result is None:
            if span.result is None and span.ended_at is None:
                return
            result = _Part(span, "result", {"kind": "result", "call_id": call_id, "content": span.result,
                                            "lossy": list(span.notes)})
            self._parts.insert(self._parts.index(call) + 1, result)
        result.taken = True
        result.row.update(happened_at=span.ended_at, tool=span.tool)
        if span.is_error is not None:
            result.row["is_error"] = span.is_error

    def _call_of(self, span: Execution) -> _Part | None:
        """The call that was run: by id, else the oldest of that tool that no span ran (with an id: and of those arguments)."""
        if span.call_id:
            waiting = self._calls.get(("id", span.call_id), deque())
            if (found := next((each for each in waiting if not each.taken), None)) is not None:
                return found
        waiting = self._calls.get(("tool", span.tool), deque())
        while waiting and waiting[0].taken:
            waiting.popleft()
        if not span.call_id:
            return waiting[0] if waiting else None
        if span.arguments is None or not waiting:
            return None
        wanted = canonical(arguments_of(span.arguments)[0])
        return next((each for each in waiting if not each.taken and canonical(each.row.get("arguments")) == wanted), None)

    def emit(self, session_id: str, emit: Emit) -> None:
        """All parts with their positions, counted over what is said, called and answered; all else, and candidates that were
        not taken, share the position of what comes next.
        """
        position = 0
        for part in self._parts:
            span = part.span
            fixed: Row = {"session_id": session_id, "service": span.service, "name": span.identity,
                          "model": span.model if isinstance(span, Generation) else None, "position": position, **part.row}
            record = fixed.pop("_record", span.record)
            emit.event(record, place=f"{span.span_id}/{part.place}", **fixed)
            position += 1 if not part.candidate and fixed["kind"] in _COUNTED else 0
