"""How good sessions of a family go about it: what comes before what, how often, with which values.

In: the good and the bad sessions of a group (a family of tasks). Out: `Rule`s that hold on every good one and that bad ones
break, the most telling first: Declare templates over the steps that worked (van der Aalst, Pesic, Schonenberg 2009), most times
that a tool is called, tools never called, and the few values that an argument ever takes.
Sees: tools, their order and arguments, and that the agent spoke. Does not see: which of several things a call was about, calls
that failed, rules that bad sessions keep too: nothing speaks for these but habit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import permutations
from typing import Any, NamedTuple

from env_builder.rewards.witness import SAY, Step, Witness
from env_builder.runtime.canonical import canonical

FEWEST = 5
"""Good sessions in which a rule has something to say, from which it is one."""
MOST_RULES = 5
"""Rules of a group."""
MOST_VALUES = 5
"""Values of an argument that are few."""
FEWEST_VALUES = 20
"""Calls of good sessions, from which the values of an argument are known."""

Holds = Callable[[Witness], bool | None]
"""Does a session keep a rule? None: it has no occasion to."""


class Rule(NamedTuple):
    """Something that every good session of a group keeps, and some bad one breaks."""

    kind: str
    parameters: dict[str, Any]
    says: str
    tools: tuple[str, ...]
    """Tools that it speaks of."""
    holds: Holds
    supporting: list[Witness]
    """Good sessions that had occasion to break it."""
    broken_by: list[Witness]
    """Bad ones that did."""

    def bears(self, one: Witness) -> list[str]:
        """Event ids of the steps of a session that the rule speaks of."""
        return [step.event_id for step in one.steps if step.tool in self.tools]


def rules(good: list[Witness], bad: list[Witness]) -> list[Rule]:
    """Rules of a group, the ones that most bad sessions break first."""
    if len(good) < FEWEST or not bad:
        return []
    found = sorted(_proposed(good, bad), key=lambda rule: (
        -len(rule.broken_by), -len(rule.supporting), rule.kind, canonical(rule.parameters)))
    unlike = {_gist(rule): rule for rule in reversed(found)}  # of those that ask for the same, the one that tells most
    return [rule for rule in found if unlike[_gist(rule)] is rule][:MOST_RULES]


def _gist(rule: Rule) -> str:
    """What a rule asks for: the template and what it leads to, whatever it begins with."""
    asked = [rule.parameters.get(name) for name in ("template", "second", "calls", "at_most")]
    return canonical([rule.kind, *asked])


def borne_out(
    kind: str, parameters: dict[str, Any], says: str, tools: tuple[str, ...], holds: Holds, good: list[Witness],
    bad: list[Witness],
) -> Rule | None:
    """The rule, where enough good sessions had occasion and all kept it, and a bad one broke it."""
    broken = [one for one in bad if holds(one) is False]
    if not broken:
        return None
    supporting = []
    for one in good:
        held = holds(one)
        if held is False:
            return None
        if held:
            supporting.append(one)
    return Rule(kind, parameters, says, tools, holds, supporting, broken) if len(supporting) >= FEWEST else None


def _proposed(good: list[Witness], bad: list[Witness]) -> Iterator[Rule]:
    used = {step.tool for one in good for step in one.steps}
    for kind, parameters, says, tools, holds in (*_orders(used), *_counts(good, bad), *_values(good)):
        rule = borne_out(kind, parameters, says, tools, holds, good, bad)
        if rule is not None:
            yield rule


Proposal = tuple[str, dict[str, Any], str, tuple[str, ...], Holds]


def _orders(used: set[str]) -> Iterator[Proposal]:
    for one, other in permutations(sorted(used), 2):
        for template, (words, holds) in ORDERS.items():
            if template in MUTUAL and one > other:
                continue
            parameters = {"template": template, "first": [_pattern(one)], "second": [_pattern(other)]}
            says = words.format(_name(one), _name(other))
            yield "order", parameters, says, (one, other), partial(_ordered, holds, one, other)


def _counts(good: list[Witness], bad: list[Witness]) -> Iterator[Proposal]:
    """No more calls of a tool that acts than any good session made; none where none made one."""
    acting = {step.tool for one in (*good, *bad) for step in one.steps if step.acts}
    for tool in sorted(acting):
        most = max(_times(one, tool) for one in good)
        says = f"{tool} is called {most} times at most." if most else f"{tool} is not called."
        yield "call", {"calls": [_pattern(tool)], "at_most": most}, says, (tool,), partial(_at_most, tool, most)


def _values(good: list[Witness]) -> Iterator[Proposal]:
    """An argument takes one of few values."""
    seen: dict[tuple[str, str], list[str]] = {}
    for one in good:
        for step in one.steps:
            for name, value in step.arguments.items() if step.acts else ():
                if isinstance(value, str):
                    seen.setdefault((step.tool, name), []).append(value)
    for (tool, name), values in sorted(seen.items()):
        few = sorted(set(values))
        if len(few) <= MOST_VALUES and len(values) >= FEWEST_VALUES:
            pattern = {"tool": tool, "where": {name: {"none_of": few}}}
            says = f"{name} of {tool} is one of {len(few)} values that good sessions give."
            yield "call", {"calls": [pattern], "at_most": 0}, says, (tool,), partial(_among, tool, name, frozenset(few))


def _pattern(tool: str) -> dict[str, Any]:
    return {"say": True} if tool == SAY else {"tool": tool}


def _name(tool: str) -> str:
    return "speaking" if tool == SAY else tool


def _ordered(holds: Callable[[list[int], list[int]], bool | None], one: str, other: str, seen: Witness) -> bool | None:
    return holds(seen.places.get(one, []), seen.places.get(other, []))


def _at_most(tool: str, most: int, seen: Witness) -> bool:
    return _times(seen, tool) <= most


def _times(seen: Witness, tool: str) -> int:
    return len(seen.places.get(tool, []))


def _among(tool: str, name: str, few: frozenset[str], seen: Witness) -> bool | None:
    steps: list[Step] = [step for step in seen.steps if step.tool == tool and name in step.arguments]
    return None if not steps else all(step.arguments[name] in few for step in steps)


def _precedence(first: list[int], second: list[int]) -> bool | None:
    return None if not second else bool(first) and first[0] < second[0]


def _response(first: list[int], second: list[int]) -> bool | None:
    return None if not first else bool(second) and second[-1] > first[-1]


def _not_coexistence(first: list[int], second: list[int]) -> bool | None:
    return None if not first and not second else not (first and second)


def _not_succession(first: list[int], second: list[int]) -> bool | None:
    return None if not first or not second else second[-1] < first[0]


ORDERS: dict[str, tuple[str, Callable[[list[int], list[int]], bool | None]]] = {
    "precedence": ("{0} comes before {1}.", _precedence),
    "response": ("After {0} comes {1}.", _response),
    "not_coexistence": ("{0} and {1} exclude each other.", _not_coexistence),
    "not_succession": ("{1} never comes after {0}.", _not_succession),
}
"""Template -> how it is said, and whether it holds for the places of the first and the second step; None: no occasion."""
MUTUAL = ("not_coexistence",)
"""Templates that say the same with their sides exchanged."""
