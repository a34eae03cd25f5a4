"""Models that one trace asks side by side, told apart: an agent, a critic, a title for the conversation.

In: the models' spans of one session, payloads read. Out: threads, the longest first. Sees instructions: models with the same
ones are one thread; with others they are, where their history goes on from what a thread told (a hand-off).
Does not see: agents without instructions, or with the same ones, side by side.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from extractors.formats.format import Row
from extractors.formats.history import History, print_of
from extractors.formats.message_parts import UNKNOWN
from extractors.formats.overlap import Print, is_telling, n_known
from extractors.formats.platform_spans import PlatformSpan

SYSTEM = ("system", "developer")
_ROUGH = frozenset({"transcript", UNKNOWN})


@dataclass(slots=True)
class Model:
    """A model's span with its payloads read."""

    span: PlatformSpan
    asked: History
    answers: list[list[Row]]

    @property
    def is_rough(self) -> bool:
        """Whether what was asked was not captured as messages."""
        return not self.asked.n_parts or any(not _ROUGH.isdisjoint(part["lossy"]) for part in self.asked.parts)

    @property
    def says(self) -> bool:
        """Whether anything of it was captured."""
        return bool(self.asked.n_parts or self.answers)

    @property
    def new(self) -> list[Row]:
        """What it brings beyond the history that others told."""
        return [*self.asked.parts, *(part for each in self.answers for part in each)]

    @property
    def opening(self) -> tuple[Print, ...]:
        """Its instructions."""
        link = self.asked
        while link.earlier is not None and link.first:
            link = link.earlier
        return tuple(print_of(part) for part in link.parts if part["kind"] == "message" and part.get("role") in SYSTEM)


@dataclass(slots=True)
class Thread:
    """Models that went on from each other."""

    models: list[Model] = field(default_factory=list)
    prints: list[Print] = field(default_factory=list)
    """What they told, each part once."""
    openings: set[tuple[Print, ...]] = field(default_factory=set)
    calls: set[object] = field(default_factory=set)
    tools: set[object] = field(default_factory=set)

    def take(self, model: Model, prints: list[Print]) -> None:
        """Go on with a model's span; `prints`: of what it was asked."""
        known = n_known(self.prints, prints)
        answer = [part for part in model.answers[0] if part["kind"] != "reasoning"] if model.answers else []
        self.prints += [*prints[known or 0:], *map(print_of, answer)]
        self.models.append(model)
        self.openings.add(model.opening)
        called = [part for part in model.new if part["kind"] == "call"]
        self.calls.update(part["call_id"] for part in called if part.get("call_id"))
        self.tools.update(part.get("tool") for part in called if not part.get("call_id"))

    def ran(self, tool: PlatformSpan) -> bool:
        """Whether a model of the thread called the tool that ran."""
        return tool.call_id in self.calls or (tool.call_id is None and tool.name in self.tools)

    @property
    def begins(self) -> list[Print]:
        """What the first model was asked."""
        return _prints(self.models[0].asked)

    @property
    def ends(self) -> list[Print]:
        """What the last model was asked, and what it answered."""
        last = self.models[-1]
        return [*_prints(last.asked), *(print_of(part) for part in (last.answers or [[]])[0] if part["kind"] != "reasoning")]


def _prints(history: History) -> list[Print]:
    return [each for link in history.since(None) or () for each in link.prints]


def gone_on(threads: Iterable[Thread]) -> Iterator[tuple[str, PlatformSpan]]:
    """Of traces without a session, those whose history goes on from all that another trace told: the trace that the
    conversation began with, and the first span that went on.
    """
    told: dict[int, tuple[list[Print], str]] = {}
    for thread in sorted(threads, key=lambda each: each.models[0].span.order):
        first, begins = thread.models[0].span, thread.begins
        trace_id, mark = first.trace_id, 0
        for number, each in enumerate(begins, start=1):
            mark = hash((mark, each))
            if mark in told and told[mark][0] == begins[:number]:
                trace_id = told[mark][1]
        if trace_id != first.trace_id:
            yield trace_id, first
        ends, mark = thread.ends, 0
        if any(is_telling(each) for each in ends):
            for each in ends:
                mark = hash((mark, each))
            told[mark] = (ends, trace_id)


def side_by_side(models: Iterable[Model]) -> list[Thread]:
    """The threads, the longest first; at least one, which may be empty."""
    ordered = sorted(models, key=lambda each: each.span.order)
    if len({each.opening for each in ordered if each.opening}) < 2:
        return [Thread(ordered)]
    threads: list[Thread] = []
    for model in ordered:
        prints = _prints(model.asked)
        same = [each for each in threads if not model.opening or model.opening in each.openings]
        going_on = [each for each in threads if n_known(each.prints, prints) is not None]
        thread = next(iter([each for each in same if each in going_on] or going_on or same), None)
        if thread is None:
            thread = Thread()
            threads.append(thread)
        thread.take(model, prints)
    return sorted(threads, key=lambda each: -len(each.prints))
