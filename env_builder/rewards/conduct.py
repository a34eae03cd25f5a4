"""How good sessions of a family or a service go about it: order, counts and values of calls, and claims of the agent.

In: the tasks with their good and bad sessions. Out: `ConductRule`s that hold on every good session and that bad ones break, the
most telling first, and for each task the checks from them. The rules are Declare templates over the steps that worked (van der
Aalst, Pesic, Schonenberg 2009), most times that a tool is called, tools never called, the few values that an argument takes,
and of a service: an agent that claims a change has made one. A phrase claims where agents say it right after a change and
hardly ever before one; one phrase is taken after another, each for the sessions that the former ones leave. The checks are
`diagnostic`: as gates, even where only they told a bad session from good ones, they rejected two more of 42 good sessions of
`desks` and accepted no bad one less. A person who knows that one is a duty makes it a gate. Sees: tools, their order and
arguments, phrases of two and three words in sentences that are no questions. Does not see: which of several entities a call was
about, failed calls, what is claimed, and rules that bad sessions keep too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice, permutations
from typing import Any, NamedTuple

from env_builder.rewards.goals import Due
from env_builder.rewards.witness import SAY, Witness, WitnessStep, apart, check, places_of
from env_builder.runtime.canonical import canonical
from warehouse.records import Check

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


class ConductRule(NamedTuple):
    """Something that every good session of a group keeps, and some bad one breaks."""

    kind: str
    parameters: dict[str, Any]
    description: str
    tools: tuple[str, ...]
    """Tools that it speaks of."""
    holds: Holds
    supporting: list[Witness]
    """Good sessions that had occasion to break it."""
    broken_by: list[Witness]
    """Bad ones that did."""
    places: Mapping[Witness, int]
    """Where each good one stands among them."""

    def bears(self, one: Witness) -> list[str]:
        """Event ids of the steps of a session that the rule speaks of."""
        return [step.event_id for step in one.steps if step.tool in self.tools]


def rules(good: list[Witness], bad: list[Witness]) -> list[ConductRule]:
    """Rules of a group, the ones that most bad sessions break first."""
    if len(good) < FEWEST or not bad:
        return []
    candidates = sorted(_proposed(good, bad), key=lambda rule: (
        -len(rule.broken_by), -len(rule.supporting), rule.kind, canonical(rule.parameters)))
    unlike = {_gist(rule): rule for rule in reversed(candidates)}  # of those that ask for the same, the one that tells most
    return [rule for rule in candidates if unlike[_gist(rule)] is rule][:MOST_RULES]


def _gist(rule: ConductRule) -> str:
    """Return what a rule asks for: the template and what it leads to, whatever it begins with."""
    details = [rule.parameters.get(name) for name in ("template", "second", "calls", "at_most")]
    return canonical([rule.kind, *details])


def borne_out(
    kind: str, parameters: dict[str, Any], description: str, tools: tuple[str, ...], holds: Holds, good: list[Witness],
    bad: list[Witness],
) -> ConductRule | None:
    """Return the rule, where enough good sessions had occasion and all kept it, and a bad one broke it."""
    broken = [one for one in bad if holds(one) is False]
    if not broken:
        return None
    supporting = []
    for one in good:
        kept = holds(one)
        if kept is False:
            return None
        if kept:
            supporting.append(one)
    if len(supporting) < FEWEST:
        return None
    return ConductRule(kind, parameters, description, tools, holds, supporting, broken, places_of(supporting))


def _proposed(good: list[Witness], bad: list[Witness]) -> Iterator[ConductRule]:
    used = {step.tool for one in good for step in one.steps}
    for kind, parameters, description, tools, holds in (*_orders(used), *_counts(good, bad), *_values(good)):
        rule = borne_out(kind, parameters, description, tools, holds, good, bad)
        if rule is not None:
            yield rule


Proposal = tuple[str, dict[str, Any], str, tuple[str, ...], Holds]


def _orders(used: set[str]) -> Iterator[Proposal]:
    for one, other in permutations(sorted(used), 2):
        for template, (words, holds) in ORDERS.items():
            if template in MUTUAL and one > other:
                continue
            parameters = {"template": template, "first": [_pattern(one)], "second": [_pattern(other)]}
            description = words.format(_name(one), _name(other))
            yield "order", parameters, description, (one, other), partial(_ordered, holds, one, other)


def _counts(good: list[Witness], bad: list[Witness]) -> Iterator[Proposal]:
    """No more calls of a tool that acts than any good session made; none where none made one."""
    acting = {step.tool for one in (*good, *bad) for step in one.steps if step.acts}
    for tool in sorted(acting):
        most = max(_times(one, tool) for one in good)
        description = f"{tool} is called {most} times at most." if most else f"{tool} is not called."
        yield "call", {"calls": [_pattern(tool)], "at_most": most}, description, (tool,), partial(_is_at_most, tool, most)


def _values(good: list[Witness]) -> Iterator[Proposal]:
    """Yield the arguments that take one of few values."""
    values_of: dict[tuple[str, str], list[str]] = {}
    for one in good:
        for step in one.steps:
            for name, value in step.arguments.items() if step.acts else ():
                if isinstance(value, str):
                    values_of.setdefault((step.tool, name), []).append(value)
    for (tool, name), values in sorted(values_of.items()):
        few = sorted(set(values))
        if len(few) <= MOST_VALUES and len(values) >= FEWEST_VALUES:
            pattern = {"tool": tool, "where": {name: {"none_of": few}}}
            description = f"{name} of {tool} is one of {len(few)} values that successful sessions give."
            yield "call", {"calls": [pattern], "at_most": 0}, description, (tool,), partial(_among, tool, name, frozenset(few))


def _pattern(tool: str) -> dict[str, Any]:
    return {"say": True} if tool == SAY else {"tool": tool}


def _name(tool: str) -> str:
    return "speaking" if tool == SAY else tool


def _ordered(holds: Callable[[list[int], list[int]], bool | None], one: str, other: str, witness: Witness) -> bool | None:
    return holds(witness.places.get(one, []), witness.places.get(other, []))


def _is_at_most(tool: str, most: int, witness: Witness) -> bool:
    return _times(witness, tool) <= most


def _times(witness: Witness, tool: str) -> int:
    return len(witness.places.get(tool, []))


def _among(tool: str, name: str, few: frozenset[str], witness: Witness) -> bool | None:
    steps: list[WitnessStep] = [step for step in witness.steps if step.tool == tool and name in step.arguments]
    return None if not steps else all(step.arguments[name] in tuple(few) for step in steps)  # it may be a list


ORDERS: dict[str, tuple[str, Callable[[list[int], list[int]], bool | None]]] = {
    "precedence": (
        "{0} comes before {1}.", lambda first, second: None if not second else bool(first) and first[0] < second[0]),
    "response": (
        "After {0} comes {1}.", lambda first, second: None if not first else bool(second) and second[-1] > first[-1]),
    "not_coexistence": (
        "{0} and {1} exclude each other.",
        lambda first, second: None if not first and not second else not (first and second)),
    "not_succession": (
        "{1} never comes after {0}.", lambda first, second: None if not first or not second else second[-1] < first[0]),
}
"""Template -> how it is said, and whether it holds for the places of the first and the second step; None: no occasion."""
MUTUAL = ("not_coexistence",)
"""Templates that say the same with their sides exchanged."""


MOST_CLAIMS = 8
MOST_SESSIONS = 300
"""Sessions that phrases are sought in, the first by id; a service's agents do not speak otherwise in the others."""
TELLING = 0.05
"""Share of the sessions with a change that a phrase must add to what the former ones find."""
MISTAKEN = 0.02
"""Share of the sessions that have changed nothing yet in which the phrases, all together, may stand."""
_SENTENCE = re.compile(r"[^.!?\n]+[.!?]?")

Sessions = dict[str, set[int]]
"""Phrase -> numbers of the sessions that hold it."""


def promises(good: list[Witness], bad: list[Witness]) -> ConductRule | None:
    """Return the rule that who claims that something was done has done something, where it is borne out."""
    phrases = claims([*good, *bad])
    if not phrases:
        return None
    parameters = {"claims": phrases, "calls": [{"tool": None, "effect": "write"}]}
    return borne_out(
        "promised", parameters, "Who says that something was done has changed something.", (SAY,), partial(_kept, phrases),
        good, bad)


def claims(sessions: Iterable[Witness]) -> list[str]:
    """Phrases that claim, the most telling first."""
    after: Sessions = {}
    before: Sessions = {}
    n_before, acted = 0, set()
    for number, one in enumerate(sorted(sessions, key=lambda each: each.session_id)[:MOST_SESSIONS]):
        has_acted, just_acted = False, False
        for step in one.steps:
            if step.tool != SAY:
                has_acted, just_acted = has_acted or step.acts, just_acted or step.acts
            elif just_acted or not has_acted:
                phrases: set[str] = set()
                for sentence in _sentences(step.text):
                    words = sentence.split()
                    phrases.update(" ".join(words[n:n + size]) for size in (2, 3) for n in range(len(words) - size + 1))
                for phrase in phrases:
                    (after if just_acted else before).setdefault(phrase, set()).add(number)
                acted |= {number} if just_acted else set()
                just_acted = False
        n_before += any(step.tool == SAY for step in one.steps)
    chosen: list[str] = []
    unclaimed, mistaken = set(acted), set[int]()
    while len(chosen) < MOST_CLAIMS:
        allowed = [
            (len(sessions & unclaimed), -len(before.get(phrase, ())), phrase) for phrase, sessions in after.items()
            if len(mistaken | before.get(phrase, set())) <= MISTAKEN * n_before]
        n_new, _, phrase = max(allowed, default=(0, 0, ""))
        if n_new < max(FEWEST, TELLING * len(acted)):
            return chosen
        chosen.append(phrase)
        unclaimed -= after[phrase]
        mistaken |= before.get(phrase, set())
    return chosen


def _kept(phrases: list[str], one: Witness) -> bool | None:
    """Did it change something, where it claims so? None: it claims nothing."""
    claimed = any(
        step.tool == SAY and any(f" {phrase} " in sentence for sentence in _sentences(step.text) for phrase in phrases)
        for step in one.steps)
    return bool(one.changes) if claimed else None


def _sentences(text: str) -> Iterable[str]:
    """Its sentences but questions: the words alone, in small letters, one blank before and after each."""
    for sentence in _SENTENCE.findall(text):
        if not sentence.endswith("?"):
            yield f" {' '.join(''.join(c if c.isalnum() else ' ' for c in sentence.casefold()).split())} "


NAMED = 3
"""Sessions that a family's check names on each side; `support` counts them all."""


class RewardCase(NamedTuple):
    """A task, and who bears witness."""

    task_id: str
    service: str
    family: str
    good: list[Witness]
    """Those that agree on what is right, best first."""
    bad: list[Witness]
    due: Due
    """What its user is owed: answers and refusals."""


class Habits(NamedTuple):
    """Rules by what they hold for."""

    families: dict[str, list[ConductRule]]
    services: dict[str, list[ConductRule]]


def habits(cases: Iterable[RewardCase]) -> Habits:
    """Rules of every family and every service."""
    all_cases = list(cases)
    return Habits(_rules(all_cases, lambda case: case.family, rules), _rules(all_cases, lambda case: case.service, _of_service))


def habit_checks(case: RewardCase, family_habits: Habits) -> list[Check]:
    """Make the checks of a task from the rules of its family and its service that its good sessions had occasion to break."""
    by_id = {}
    for rule in (*family_habits.families.get(case.family, ()), *family_habits.services.get(case.service, ())):
        if not any(rule.holds(one) for one in case.good):
            continue
        own = apart(case.good, rule.places)
        others = islice((one for one in rule.supporting if one not in case.good), NAMED)
        made = check(rule.kind, "diagnostic", rule.description, rule.parameters, [*own, *others][:NAMED], [], rule.bears)
        broken = sorted(one.session_id for one in rule.broken_by)
        origin = {"support": len(rule.supporting), "broken_by": broken[:NAMED], "n_broken": len(broken)}
        by_id[made.check_id] = made.model_copy(update={"provenance": made.provenance | origin})
    return list(by_id.values())


def _rules(
    cases: list[RewardCase], group: Callable[[RewardCase], str],
    mined: Callable[[list[Witness], list[Witness]], list[ConductRule]]
) -> dict[str, list[ConductRule]]:
    sides: dict[str, tuple[dict[str, Witness], dict[str, Witness]]] = {}
    for case in cases:
        for side, who in zip(sides.setdefault(group(case), ({}, {})), (case.good, case.bad), strict=True):
            side.update((one.session_id, one) for one in who)
    return {
        name: mined([one for _, one in sorted(good.items())], [one for _, one in sorted(bad.items())])
        for name, (good, bad) in sorted(sides.items())}


def _of_service(good: list[Witness], bad: list[Witness]) -> list[ConductRule]:
    promised = promises(good, bad)
    return [promised] if promised else []
