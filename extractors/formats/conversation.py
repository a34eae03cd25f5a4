"""Spans of any tracing system to conversations: what models were asked and answered, and the tools that ran, in one order.

In: `Generation`s (one answer of a model each, with the history that it was given) and `Execution`s (one run of a tool each) of
one session. Out: events with positions. Messages give the content, executions give times and errors; a call that only an
execution tells of is taken from there. A generation may repeat the whole history, or bring only what is new.
Traces that name no session are one conversation where a turn's history holds all that an earlier trace told, up to a part that
is telling. Does not see: two conversations that were word for word the same until one went on; the latest is taken.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any, NamedTuple

from extractors.formats.chat import SPOKEN, arguments_of, call_part
from extractors.formats.format import Emit, LogRecord, Row
from extractors.formats.history import Print, PromptHistory, canonical, is_telling, n_known, print_of
from extractors.formats.sampling import laid

NOT_CAPTURED = "content not captured"
"""Note on an answer of which the log has the time and the token counts alone."""
FROM_SPAN = "call known from its span alone"
"""Note on a call that no message tells of."""
ANSWER_FROM_SPAN = "answer known from its span alone"
"""Note on a result that no message tells of."""
AROUND = "as the span around it says"
"""Note on what a model was asked and answered where only a span around it was captured."""


@dataclass(slots=True)
class ConversationSpan:
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
        return milliseconds(self.started_at, self.ended_at)


def milliseconds(started_at: int | None, ended_at: int | None) -> float | None:
    """Time between two instants, None where one is not known."""
    return None if started_at is None or ended_at is None else (ended_at - started_at) / 1000


@dataclass(slots=True)
class Generation(ConversationSpan):
    """One answer of a model."""

    prompt: list[Row] | PromptHistory = field(default_factory=list)
    """Parts of the input, system instructions first: event fields as `extractors.formats.chat.parts` gives them (kind, role,
    content, call_id, tool, arguments, is_error, lossy …); each has `kind` and `lossy`. `_record`: the record that told it,
    where it is another one than the generation's."""
    answers: list[list[Row]] = field(default_factory=list)
    """Parts of each candidate answer; the first goes on in the conversation."""
    model: str | None = None
    is_around: bool = False
    """It is a span around others, of which none that says more was captured."""
    usage: Row | None = None
    """Token counts (input_tokens, output_tokens and, where known, cached_tokens, reasoning_tokens), and where they are stated
    the sampling parameters and the tokens (`extractors.formats.sampling`)."""

    @property
    def history(self) -> PromptHistory:
        return self.prompt if isinstance(self.prompt, PromptHistory) else PromptHistory(self.prompt)


@dataclass(slots=True)
class Execution(ConversationSpan):
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
class _ConversationPart:
    """A part: its span, its place in the span, and its event fields."""

    span: ConversationSpan
    place: str
    row: Row
    candidate: bool = False
    taken: bool = False
    """Of a call: an execution ran it. Of a result: an execution gave its time."""


class _Story:
    """The parts so far."""

    def __init__(self) -> None:
        self._parts: list[_ConversationPart] = []
        self._prints: list[Print] = []
        self._same: PromptHistory | None = None
        """An input whose prints are the first ones of the conversation."""
        self._calls: dict[tuple[str, Any], deque[_ConversationPart]] = {}
        self._results: dict[Any, list[_ConversationPart]] = {}

    def answer(self, span: Generation) -> None:
        """Take in what one generation adds: the new end of its input, then its output."""
        history = span.history
        new = list(history.beyond(self._n_shared(history)))
        last = max((i for i, part in new if part.get("role") == "assistant"), default=-1)
        asked_at = span.started_at or span.ended_at
        for i, part in new:
            row = {"happened_at": asked_at if i > last else None, **part}
            row["lossy"] = [*(part.get("lossy") or ()), *([AROUND] if span.is_around else ())]
            self._add(_ConversationPart(span, f"in{i}", row))
        for index, answer in enumerate(span.answers):
            usages = laid(span.usage, [part["kind"] for part in answer])
            for i, part in enumerate(answer):
                notes = [*(part.get("lossy") or ()), *([f"candidate {index}"] if index else ()),
                         *([AROUND] if span.is_around else ())]
                row = {"happened_at": span.ended_at or span.started_at, "latency_ms": span.latency_ms, **part, "lossy": notes}
                if index == 0 and usages[i]:
                    row["usage"] = usages[i]
                self._add(_ConversationPart(span, f"out{index}.{i}", row, candidate=index > 0))

    def _n_shared(self, history: PromptHistory) -> int:
        """Count the leading prints of the input that the conversation has."""
        links = history.since(self._same)
        before = self._same.n_prints if self._same is not None and links is not None else 0
        prints = history.all_prints if links is None else [each for link in links for each in link.prints]
        rest = self._prints[before:]
        if prints[:len(rest)] == rest or rest[:len(prints)] == prints:
            self._same = history
            return before + min(len(prints), len(rest))
        prints, self._same = history.all_prints if before else prints, None
        n_shared = n_known(self._prints, prints)
        if n_shared is None:   # only what is new, after instructions that are known
            n_shared = next((i for i, each in enumerate(prints) if each not in self._prints[:1]), len(prints))
        return n_shared

    def _add(self, part: _ConversationPart) -> None:
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
            part = _ConversationPart(span, "call", call_part("assistant", span.call_id, span.tool, span.arguments, [FROM_SPAN]))
            instant = span.started_at or span.ended_at or 0
            place = len(self._parts)
            for i in range(len(self._parts) - 1, -1, -1):
                happened_at = self._parts[i].row.get("happened_at")
                if happened_at is not None:
                    if happened_at <= instant:
                        break
                    place = i
            self._parts.insert(place, part)
        part.taken = True
        part.row.update(happened_at=span.started_at, latency_ms=span.latency_ms, lossy=_without_summary(part.row))
        call_id = part.row.get("call_id")
        if call_id is not None:
            result = next((each for each in self._results.get(call_id, ()) if not each.taken), None)
        else:
            after = self._parts[self._parts.index(part) + 1:]
            result = next((each for each in after if each.row["kind"] == "result" and not each.taken
                           and each.row.get("call_id") is None), None)
        if result is None and (span.result is not None or span.ended_at is not None):   # the span's own is the result
            result = _ConversationPart(span, "result", {
                "kind": "result", "call_id": call_id, "content": span.result, "lossy": [*span.notes, ANSWER_FROM_SPAN]})
            self._parts.insert(self._parts.index(part) + 1, result)
        if result is not None:
            result.taken = True
            result.row.update(happened_at=span.ended_at, tool=span.tool, lossy=_without_summary(result.row))
            if span.is_error is not None:
                result.row["is_error"] = span.is_error

    def _call_of(self, span: Execution) -> _ConversationPart | None:
        """Find the call that was run: by id; with another id, the oldest of that tool and those arguments that was not run yet;
        without one, of those that may have been run then, the one of those arguments and that result, else the oldest."""
        if span.call_id:
            waiting = self._calls.get(("id", span.call_id), deque())
            if (call := next((each for each in waiting if not each.taken), None)) is not None:
                return call
        waiting = self._calls.get(("tool", span.tool), deque())
        while waiting and waiting[0].taken:
            waiting.popleft()
        if not span.call_id:
            may_be = [each for each in waiting if not each.taken and not self._is_over(each, span)]
            wanted = canonical(arguments_of(span.arguments)[0]) if span.arguments is not None else None
            return min(may_be, default=None, key=lambda each: (
                canonical(each.row.get("arguments")) != wanted, span.result not in self._contents(each)))
        if span.arguments is None or not waiting:
            return None
        wanted = canonical(arguments_of(span.arguments)[0])
        return next((each for each in waiting if not each.taken and canonical(each.row.get("arguments")) == wanted), None)

    def _contents(self, call: _ConversationPart) -> list[str | None]:
        call_id = call.row.get("call_id")
        return [each.row.get("content") for each in self._results.get(call_id, ())] if call_id is not None else []

    def _is_over(self, call: _ConversationPart, run: Execution) -> bool:
        """Whether a model had gone on from the call's result before the tool began to run."""
        call_id = call.row.get("call_id")
        results = self._results.get(call_id, ()) if call_id is not None else ()
        return run.started_at is not None and any(
            each.span.ended_at is not None and each.span.ended_at <= run.started_at for each in results)

    def emit(self, session_id: str, emit: Emit) -> None:
        """Emit all parts; what is not said, called or answered, or was not taken, shares the position of what comes next."""
        position = 0
        for part in self._parts:
            span = part.span
            fixed: Row = {"session_id": session_id, "service": span.service, "name": span.identity,
                          "model": span.model if isinstance(span, Generation) else None, "position": position, **part.row}
            record = fixed.pop("_record", span.record)
            emit.event(record, place=f"{span.span_id}/{part.place}", **fixed)
            position += 1 if not part.candidate and fixed["kind"] in SPOKEN else 0


def _without_summary(row: Row) -> list[str]:
    """Return the notes on a part that a span of its own tells too."""
    return [note for note in row.get("lossy") or () if note != AROUND]


def stitched(traces: Mapping[str, Sequence[Generation]]) -> dict[str, str]:
    """By trace, the first trace of its conversation (itself, where nothing came before).

    Each end is gone on with once, within half an hour: a fork and a conversation that is taken up later are their own. Of
    several equal ends the one whose calls have the ids that the history states goes on, else the one that waits longest."""
    ordered = sorted(((min(each.order for each in generations), trace) for trace, generations in traces.items() if generations))
    ends: dict[int, list[_End]] = {}
    first: dict[str, str] = {}
    for _, trace in ordered:
        generations = sorted(traces[trace], key=lambda each: each.order)
        begins = marks(generations[0].history.all_prints) if ends else []
        began = generations[0].started_at
        before = next((end for mark in reversed(begins) if (end := _taken(ends.get(mark, []), generations[0], began))), None)
        first[trace] = first[before.trace] if before is not None else trace
        last = generations[-1]   # its input and its answer
        answer = last.answers[0] if last.answers else []
        prints = [*last.history.all_prints, *(print_of(part) for part in answer if part["kind"] != "reasoning")]
        if prints and is_telling(prints[-1]):
            ends.setdefault(marks(prints)[-1], []).append(_End(trace, last.ended_at or last.started_at, _call_ids(last)))
    return first


_PAUSE_US = 1_800_000_000


class _End(NamedTuple):
    """Where a trace ends: when, and the ids of the calls so far."""

    trace: str
    ended_at: int | None
    call_ids: frozenset[str]


def _taken(ends: list[_End], follows: Generation, began: int | None) -> _End | None:
    """Take the end that a request goes on with out of those that wait."""
    near = [end for end in ends if end.ended_at is None or began is None or began - end.ended_at <= _PAUSE_US]
    stated = _call_ids(follows, with_answer=False)
    taken = next((end for end in near if end.call_ids <= stated), near[0] if near else None)
    if taken is not None:
        ends.remove(taken)
    return taken


def _call_ids(generation: Generation, with_answer: bool = True) -> frozenset[str]:
    parts = [part for link in generation.history.since(None) or () for part in link.parts]
    parts += generation.answers[0] if with_answer and generation.answers else []
    return frozenset(part["call_id"] for part in parts if part["kind"] == "call" and part.get("call_id"))


def marks(prints: Iterable[Print]) -> list[int]:
    """Return a mark of each beginning of a history."""
    return list(accumulate(prints, lambda mark, each: hash((mark, each)), initial=0))[1:]
