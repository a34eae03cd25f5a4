"""Checks of any kind held against recorded sessions, by the grader's own code, and merged into mined rubrics.

In: checks that a person or a policy says, the witnesses of a task. Out: the task's checks with these among them. A session is
an episode as it was logged: its words, its calls with their answers, what it changed where the room can tell.
Sees: what the grader sees of an episode. Does not see: documents of the world before and after (checks of kind `sql` and `file`
on recorded sessions find nothing).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from env_builder.rewards.bearing import check_id, provenance
from env_builder.rewards.persons import PersonCheck, Said
from env_builder.rewards.witness import SAY, Witness
from env_builder.runtime.checks import Seen, prepared
from env_builder.runtime.records import Episode
from warehouse.records import Check

EMPTY: dict[str, Any] = {"documents": {}, "acts": []}


def holds(check: PersonCheck, one: Witness, writes: frozenset[str]) -> bool | None:
    """Does a recorded session pass the check? None: nobody can say."""
    kind, parameters = prepared(check.kind, check.parameters)
    return kind.judge(parameters, Seen(episode_of(one, writes))).passed


def episode_of(one: Witness, writes: frozenset[str]) -> Episode:
    """A recorded session as an episode."""
    rows: list[tuple[int, dict[str, Any]]] = [
        (step.position, {"kind": "say", "content": step.text}) for step in one.steps if step.tool == SAY]
    rows += [(call.position, {"kind": "call", "tool": call.tool, "arguments": call.arguments, "content": call.content,
                              "is_error": call.failed, "tier": "recorded"}) for call in one.calls]
    ordered = tuple(row for _, row in sorted(rows, key=lambda each: each[0]))
    return Episode(ordered, one.difference or EMPTY, (), writes)


def merged(
    checks: list[Check], said: Iterable[Said], good: list[Witness], bad: list[Witness], writes: frozenset[str]
) -> list[Check]:
    """`checks` with what is said among them, sorted by id; what was mined too stays once, with both provenances."""
    found = {check.check_id: check for check in checks}
    for each in said:
        own = check_id(each.check.kind, each.check.role, each.check.parameters)
        if own in found:
            found[own] = found[own].model_copy(update={"provenance": {**found[own].provenance, **each.by}})
        else:
            found[own] = _check(own, each, good, bad, writes)
    return sorted(found.values(), key=lambda check: check.check_id)


def _check(own: str, said: Said, good: list[Witness], bad: list[Witness], writes: frozenset[str]) -> Check:
    check = said.check
    passes = [one for one in good if holds(check, one, writes)]
    breaks = sorted(one.session_id for one in bad if holds(check, one, writes) is False)
    origin = provenance(passes, [one for one in good if one not in passes], lambda one: one.changes or one.ended)
    return Check(
        check_id=own, kind=check.kind, role=check.role, says=check.says, weight=check.weight, parameters=check.parameters,
        provenance={**origin, **said.by, "broken_by": breaks})


def first_that_passes(good: list[Witness], said: Iterable[Said], writes: frozenset[str]) -> list[Witness]:
    """`good` with those first that pass every gate that is said: the solution is the first."""
    gates = [each.check for each in said if each.check.role == "gate"]
    return sorted(good, key=lambda one: any(holds(gate, one, writes) is False for gate in gates))
