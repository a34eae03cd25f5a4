"""Calls whose answer goes with a field that the session was shown last, by whatever tool: a mode, a level, a status line.

In: the calls of a tool that no other rule explains, each with the calls of its session before it, where every session starts
from the same state. Out: a `status` rule (runtime/statuses.py), or None. Each call is held against those of other sessions that
asked the same at the same value (leave one session out): two sessions or more that were answered alike foretell it. A field
counts if it foretells several calls, at most one of a hundred wrongly, and either different answers to one question, or answers
that all repeat it. Of several fields, each with or without the tool that showed it, the one that foretells most is kept. Only
tools that were called in between there may be.
Sees: one field. Does not see: lists of rows, values that no call showed, and answers to questions that only one session asked.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import product
from typing import NamedTuple

from env_builder.behaviour.evidence import NOTHING, Induced, Rule, ToolEvidence, one_or_none
from env_builder.runtime.precedents import PastCalls
from env_builder.runtime.statuses import Status, fields_shown, situation, statuses
from env_builder.world.replay import LoggedStep

MINIMUM_TELLING = 2
"""Other sessions that must have been answered alike."""
MINIMUM_FORETOLD = 5
"""Calls that the field must foretell."""
MINIMUM_SESSIONS = 3
"""Sessions that they must belong to."""
MOST_WRONG = 0.01
"""Share of the foretold calls that may be foretold wrongly."""
SHORTEST = 4
"""Characters of a value below which an answer may contain it by chance."""
Outcome = tuple[str, bool]
"""(answer, whether it is a failure)."""
Pasts = dict[str, PastCalls]


class StatusExample(NamedTuple):
    """A call at a value of the field."""

    step: LoggedStep
    status: Status
    situation: str

    @property
    def outcome(self) -> Outcome:
        return self.step.call.content, self.step.call.failed


class Foretelling(NamedTuple):
    """The calls that a field foretells."""

    field: str
    by_tool: bool
    """Does it matter which tool showed it?"""
    right: list[StatusExample]
    examples: list[StatusExample]


def induce(evidence: ToolEvidence) -> Induced:
    """Induce the rule that answers go with a field that was shown last."""
    kinds = ("recorded", "shows", "makes", "changes", "always", "precedent")  # no rows: one field does not tell them
    if not evidence.shared.pasts or not evidence.has_only(*kinds):
        return NOTHING
    return one_or_none(status_rule(evidence.steps, evidence.shared.pasts))


def status_rule(steps: list[LoggedStep], before: Pasts) -> Rule | None:
    """Return the `status` rule of one tool. `before`: the calls of its session before each call, by event."""
    by_field: dict[tuple[str, bool], list[StatusExample]] = defaultdict(list)
    for step in steps:
        past = before[step.call.event_id]
        for (field, status), by_tool in product(statuses(past), (False, True)):
            where = situation(step.call.tool, step.call.key, status.words(by_tool), past)
            by_field[field, by_tool].append(StatusExample(step, status, where))
    foretelling = (_foretelling(*field, examples) for field, examples in sorted(by_field.items()))
    best = max(filter(None, foretelling), key=lambda each: len(each.right), default=None)
    return None if best is None else _written(best, before)


def _foretelling(field: str, by_tool: bool, examples: list[StatusExample]) -> Foretelling | None:
    """Return the calls that other sessions foretell rightly by the field, None where these are few, or too many are wrong."""
    sessions: dict[str, dict[Outcome, set[str]]] = defaultdict(lambda: defaultdict(set))
    for one in examples:
        sessions[one.situation][one.outcome].add(one.step.call.witness)
    right: list[StatusExample] = []
    n_wrong = 0
    for one in examples:
        others = {outcome: ids - {one.step.call.witness} for outcome, ids in sessions[one.situation].items()}
        answers = [outcome for outcome, ids in others.items() if ids]
        if len(answers) == 1 and len(others[answers[0]]) >= MINIMUM_TELLING:
            right += [one] if answers[0] == one.outcome else []
            n_wrong += answers[0] != one.outcome
    is_enough = len(right) >= MINIMUM_FORETOLD and len({one.step.call.witness for one in right}) >= MINIMUM_SESSIONS
    counts = is_enough and n_wrong <= MOST_WRONG * len(right) and (_tells_apart(right) or _repeats(examples))
    return Foretelling(field, by_tool, right, examples) if counts else None


def _tells_apart(right: list[StatusExample]) -> bool:
    """Return whether one question was foretold different answers."""
    outcomes: dict[str, set[Outcome]] = defaultdict(set)
    for one in right:
        outcomes[one.step.call.key].add(one.outcome)
    return any(len(each) > 1 for each in outcomes.values())


def _repeats(examples: list[StatusExample]) -> bool:
    """Return whether all answers repeat the value."""
    return all(len(one.status.value) >= SHORTEST and one.status.value in one.outcome[0] for one in examples)


def _written(best: Foretelling, before: Pasts) -> Rule:
    passes = frozenset[str]().union(*(one.status.between for one in best.right))
    shown = {one.step.call.content: list(one.step.shown) for one in best.examples if one.step.acting and one.step.shown}
    sessions: dict[str, dict[Outcome, set[str]]] = defaultdict(lambda: defaultdict(set))
    for one in best.examples:
        sessions[one.situation][one.outcome].add(one.step.call.witness)
    rows = {where: next(iter(outcomes)) for where, outcomes in sorted(sessions.items())
            if len(outcomes) == 1 and len(next(iter(outcomes.values()))) >= MINIMUM_TELLING}
    answers = sorted(set(rows.values()))
    place = {outcome: index for index, outcome in enumerate(answers)}
    shown_by = {call.tool for one in best.examples for call in before[one.step.call.event_id]
                if call.content is not None and not call.failed and best.field in fields_shown(call.content)}
    return {"rule": "status", "field": best.field, "by_tool": best.by_tool,
            "shown_by": sorted(shown_by), "passes": sorted(passes),
            "answers": [[*outcome, shown.get(outcome[0])] for outcome in answers],
            "situations": {where: place[outcome] for where, outcome in rows.items()}}
