"""What the agents of a service do before they change anything: they ask the user, and they look something up.

In: good sessions of a service and all of them, and its tools that read, or that nobody knows to write. Out: `Preparation`s: a
kind of step that nearly all take before the first call of a tool that acts. A task whose good sessions keep one gets it as a
gate (`order`, precedence): skipping the check of who is asking is wrong even where the end is right.

Sees: words, and which tools were called. Does not see: what was asked, and whether the answer fitted.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from itertools import islice
from typing import Any, NamedTuple

from env_builder.rewards.witness import SAY, Witness, apart, check, places_of
from warehouse.records import Check

FEWEST = 6
"""Good sessions that acted, from which one can say what comes first."""
NEARLY_ALL = 0.95
"""Share of them that takes the step first."""
MOST = 0.85
"""The same of a look, as some agents leave out what they should do; such sessions are no good examples. It may be the share of
all sessions of the service, good or bad, if most good ones (`USUAL`) take it."""
USUAL, FEWEST_USUAL = 0.8, 4
"""Share of a family's sessions that call a tool, and their number, from which it belongs to the work."""
NAMED = 3
"""Sessions that a check names; `support` counts them all."""


class Preparation(NamedTuple):
    """A step that comes before a tool acts."""

    tool: str
    """The tool that acts."""
    first: tuple[str, ...]
    """Tools any of which comes before it; `SAY`: words of the agent."""
    supporting: list[Witness]
    places: Mapping[Witness, int] = {}
    """Where each of them stands among them."""

    @property
    def names(self) -> str:
        """Return the steps in words."""
        return " or ".join("speaking" if step == SAY else step for step in self.first)

    def kept_by(self, one: Witness) -> bool | None:
        """Did the session take the step first? None: it never called the tool."""
        places = one.places.get(self.tool)
        return None if not places else any(one.places.get(step, places)[0] < places[0] for step in self.first)

    def check(self, good: list[Witness]) -> Check:
        """Return the gate."""
        patterns: list[dict[str, Any]] = [{"say": True} if step == SAY else {"tool": step} for step in self.first]
        parameters = {"template": "precedence", "first": patterns, "second": [{"tool": self.tool}]}
        own, others = apart(good, self.places), islice((one for one in self.supporting if one not in good), NAMED)
        tools = {*self.first, self.tool}
        made = check("order", "gate", f"{self.names} comes before {self.tool}.", parameters, [*own, *others][:NAMED], [],
                     lambda one: [step.event_id for step in one.steps if step.tool in tools])
        return made.model_copy(update={"provenance": made.provenance | {"support": len(self.supporting)}})


def preparations(
    good: Iterable[Witness], acting: frozenset[str], reading: frozenset[str], everybody: Iterable[Witness] = ()
) -> list[Preparation]:
    """Return what comes before each tool of `acting`. `reading`: tools that read, or that nobody knows to write;
    `everybody`: all sessions of the service."""
    by_tool, by_everybody = _by_tool(good, acting), _by_tool(everybody, acting)
    steps = []
    for tool, sessions in sorted(by_tool.items()):
        looks = tuple(sorted(reading - {tool}))
        others = by_everybody.get(tool, [])
        single: list[tuple[str, ...]] = [(look,) for look in looks if _is_usual(sessions, others, tool, (look,))]
        for first in ((SAY,), *(single or [looks])):
            enough = (_share(sessions, tool, first) >= NEARLY_ALL and len(sessions) >= FEWEST if first == (SAY,)
                      else bool(first) and _is_usual(sessions, others, tool, first))
            if enough:
                supporting = [one for one in sessions if Preparation(tool, first, []).kept_by(one)]
                steps.append(Preparation(tool, first, supporting, places_of(supporting)))
    return steps


def _by_tool(sessions: Iterable[Witness], acting: frozenset[str]) -> dict[str, list[Witness]]:
    by_tool: dict[str, list[Witness]] = defaultdict(list)
    for one in sessions:
        for tool in acting & one.places.keys():
            by_tool[tool].append(one)
    return by_tool


def _is_usual(good: list[Witness], everybody: list[Witness], tool: str, first: tuple[str, ...]) -> bool:
    """Do nearly all good sessions take the step first, or most of them and nearly all sessions?"""
    share = _share(good, tool, first)
    return (len(good) >= FEWEST and share >= MOST) or (
        len(everybody) >= FEWEST and share >= USUAL and _share(everybody, tool, first) >= MOST)


def _share(sessions: list[Witness], tool: str, first: tuple[str, ...]) -> float:
    return sum(bool(Preparation(tool, first, []).kept_by(one)) for one in sessions) / max(1, len(sessions))


def usual_tools(sessions: list[Witness]) -> frozenset[str]:
    """Return the tools that nearly all sessions of a family call."""
    counts = Counter(tool for one in sessions for tool in one.places)
    return frozenset(tool for tool, n in counts.items()
                     if tool != SAY and len(sessions) >= FEWEST_USUAL and n >= USUAL * len(sessions))


def preparation_checks(good: list[Witness], expected: Iterable[Preparation]) -> list[Check]:
    """Return the gates of a task whose agreeing good sessions are `good`: what all of them, who called the tool, did first."""
    return [each.check(good) for each in expected
            if any(each.kept_by(one) for one in good) and not any(each.kept_by(one) is False for one in good)]
