"""What holds for a family of tasks, or for a whole service, and so for each of its tasks: even one that was done once.

In: the tasks with their good and bad sessions. Out: for a task, checks from the rules of its family and of its service. They
are reported (`diagnostic`) and do not count: as gates, even where only they told a bad session from good ones, they rejected
two more of 42 good sessions of `desks` and accepted no bad one less. A person who knows that one is a duty makes it a gate.
Sees: rules of `conduct.py` and `claims.py`. Does not see: whether a habit of a family is a duty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from env_builder.rewards.bearing import check
from env_builder.rewards.claims import promises
from env_builder.rewards.conduct import Rule, rules
from env_builder.rewards.witness import Witness
from warehouse.records import Check

NAMED = 3
"""Sessions that a family's check names on each side; `support` counts them all."""


class Case(NamedTuple):
    """A task, and who bears witness."""

    task_id: str
    service: str
    family: str
    good: list[Witness]
    """Those that agree on what is right, best first."""
    bad: list[Witness]


class Habits(NamedTuple):
    """Rules by what they hold for."""

    families: dict[str, list[Rule]]
    services: dict[str, list[Rule]]

    def of(self, case: Case) -> list[Rule]:
        """The rules that a task's own good sessions keep and had occasion to break."""
        found = [*self.families.get(case.family, ()), *self.services.get(case.service, ())]
        return [rule for rule in found if any(rule.holds(one) for one in case.good)]


def habits(cases: Iterable[Case]) -> Habits:
    """Rules of every family and every service."""
    told = list(cases)
    return Habits(_rules(told, lambda case: case.family, rules), _rules(told, lambda case: case.service, _of_service))


def habit_checks(case: Case, known: Habits) -> list[Check]:
    """The checks of a task from what holds for its family and its service."""
    found = {}
    for rule in known.of(case):
        own = [one for one in rule.supporting if one in case.good]
        others = [one for one in rule.supporting if one not in case.good]
        made = check(rule.kind, "diagnostic", rule.says, rule.parameters, [*own, *others][:NAMED], [], rule.bears)
        broken = sorted(one.session_id for one in rule.broken_by)
        origin = {"support": len(rule.supporting), "broken_by": broken[:NAMED], "n_broken": len(broken)}
        found[made.check_id] = made.model_copy(update={"provenance": made.provenance | origin})
    return list(found.values())


def _rules(
    cases: list[Case], group: Callable[[Case], str], mined: Callable[[list[Witness], list[Witness]], list[Rule]]
) -> dict[str, list[Rule]]:
    sides: dict[str, tuple[dict[str, Witness], dict[str, Witness]]] = {}
    for case in cases:
        for side, who in zip(sides.setdefault(group(case), ({}, {})), (case.good, case.bad), strict=True):
            side.update((one.session_id, one) for one in who)
    return {
        name: mined([one for _, one in sorted(good.items())], [one for _, one in sorted(bad.items())])
        for name, (good, bad) in sorted(sides.items())}


def _of_service(good: list[Witness], bad: list[Witness]) -> list[Rule]:
    promised = promises(good, bad)
    return [promised] if promised else []
