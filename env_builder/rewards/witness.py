"""What one session bears witness to: the end it reached, what it told its user, what it looked up.

In: a session's turns, parsed calls and difference. Out: a `Witness` whose parts are worked out when they are asked for.
Sees: facts that `runtime/words.py` finds in words and answers. Does not see: facts that the agent worked out itself
(a count, a sum) unless a tool gave them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cached_property, partial
from typing import Any, NamedTuple

import polars as pl

from env_builder.runtime.canonical import canonical
from env_builder.runtime.ends import end_state, unreached
from env_builder.runtime.words import Fact, facts_in, number_forms
from env_builder.world.calls import Call, calls_of
from warehouse.records import Remember, anew

SMALLEST_NUMBER = 10
"""Whole numbers below are said in every other sentence, and say nothing."""

Row = tuple[str, str | None, str | None, str, int]
"""(kind, role, text, event id, position) of a turn."""
SAY = ""
"""Stands for words of the agent among the names of tools."""


class Step(NamedTuple):
    """Something that the agent did and that worked."""

    position: int
    event_id: str
    tool: str
    """`SAY`: it spoke."""
    text: str
    """What it said."""
    arguments: dict[str, Any]
    acts: bool
    """May it have changed the world?"""
Difference = dict[str, Any]


class Witness:
    """One session as evidence."""

    def __init__(
        self, session_id: str, rows: list[Row], calls: list[Call], difference: Difference | None,
        probability: float | None, reads: frozenset[str], remember: Remember = anew,
    ) -> None:
        self.session_id = session_id
        self.difference = difference
        """None: the room could not tell what the session changed."""
        self.probability = probability
        self.calls = calls
        self._rows = rows
        self._reads = reads
        self._remember = remember

    @cached_property
    def looked_up(self) -> frozenset[tuple[str, str]]:
        """(tool, canonical arguments) of the reads that succeeded and name something."""
        return frozenset((call.tool, call.key) for call in self.calls
                         if call.tool in self._reads and call.arguments and not call.failed)

    @cached_property
    def spoke(self) -> bool:
        """Did the agent say anything?"""
        return bool(self.words)

    @cached_property
    def words(self) -> list[tuple[str, str]]:
        """(event id, text) of what the agent said."""
        return [(step.event_id, step.text) for step in self.steps if step.tool == SAY]

    @cached_property
    def steps(self) -> list[Step]:
        """Its words and the calls that succeeded, in order."""
        said = [Step(position, event_id, SAY, text, {}, False) for kind, role, text, event_id, position in self._rows
                if kind == "message" and role == "assistant" and text and text.strip()]
        done = [Step(call.position, call.event_id, call.tool, "", call.arguments, call.tool not in self._reads)
                for call in self.calls if not call.failed]
        return sorted([*said, *done], key=lambda step: step.position)

    def told_by(self, facts: Iterable[Fact]) -> list[str]:
        """Event ids of the words that state one of `facts`."""
        wanted = frozenset(facts)
        return [event_id for event_id, text in self.words if wanted & _forms(facts_in(text))]

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """Tool -> positions of its steps, in order."""
        found: dict[str, list[int]] = {}
        for step in self.steps:
            found.setdefault(step.tool, []).append(step.position)
        return found

    @property
    def ended(self) -> list[str]:
        """Event id of its last words, empty where there are none."""
        return [event_id for event_id, _ in self.words[-1:]]

    @cached_property
    def changes(self) -> list[str]:
        """Event ids of the calls that succeeded and are not known to read only."""
        return [step.event_id for step in self.steps if step.acts]

    @cached_property
    def told(self) -> frozenset[Fact]:
        """Facts that the agent told before its user did and after a tool gave them; dates without their year."""
        return frozenset[Fact]().union(*self._told)

    @cached_property
    def told_last(self) -> frozenset[Fact]:
        """Those of the agent's last words."""
        return self._told[-1] if self._told else frozenset()

    @cached_property
    def _told(self) -> list[frozenset[Fact]]:
        drawn = [key for _, key in (self.difference or {}).get("made", ())]
        rows = [row[:3] for row in self._rows]
        told = self._remember(["told", drawn, rows], partial(_telling, drawn, rows))
        return [frozenset((kind, value) for kind, value in facts) for facts in told]


def _telling(drawn: list[str], rows: list[tuple[str, str | None, str | None]]) -> list[list[Fact]]:
    """Facts that each of the agent's words was the first to tell, sorted. `drawn`: names of what the session made."""
    given: set[Fact] = set()
    known = set(_forms(facts_in(" ".join(drawn))))  # another episode's names are others
    told: list[list[Fact]] = []
    for kind, role, text in rows:
        facts = _forms(facts_in(text or ""))
        if kind == "call":
            given |= facts
        elif role == "assistant" and (text or "").strip():
            told.append(sorted(fact for fact in facts & given - known if _weighs(fact)))
        else:
            known |= facts
    return told


def witnesses(
    session_ids: pl.Series, turns: pl.DataFrame, outcomes: pl.DataFrame, differences: pl.DataFrame,
    effects: pl.DataFrame, remember: Remember = anew,
) -> dict[str, Witness]:
    """Every session of `session_ids` that has turns, by its id."""
    own = turns.filter(pl.col("session_id").is_in(session_ids.implode())).sort("session_id", "position")
    calls: dict[str, list[Call]] = {}
    for call in calls_of(own):
        calls.setdefault(call.session_id, []).append(call)
    rows: dict[str, list[Row]] = {}
    for session_id, *row in own.select("session_id", "kind", "role", "content", "turn_id", "position").iter_rows():
        rows.setdefault(session_id, []).append((row[0], row[1], row[2], row[3], row[4]))
    service = dict(own.select("session_id", "service").unique().iter_rows())
    reads: dict[str, set[str]] = {}
    for name, tool in effects.filter(pl.col("effect") == "read").select("service", "tool").iter_rows():
        reads.setdefault(name, set()).add(tool)
    probability = dict(outcomes.select("session_id", "probability").iter_rows())
    changed = dict(differences.select("session_id", "difference").iter_rows())
    return {
        session_id: Witness(
            session_id, own_rows, calls.get(session_id, []), _difference(changed.get(session_id)),
            probability.get(session_id), frozenset(reads.get(service[session_id], ())), remember)
        for session_id, own_rows in rows.items()
    }


def ends_alike(one: Difference, other: Difference, parameters: dict[str, Any]) -> bool:
    """Whether two differences are the same end state."""
    first, second = end_state(one, parameters), end_state(other, parameters)
    return not unreached(first, second) and not unreached(second, first)


def changes_nothing(difference: Difference, parameters: dict[str, Any]) -> bool:
    """Whether a difference holds no change that counts."""
    return not unreached(end_state(difference, parameters), ({}, {}))


def without_aside(difference: Difference, aside: list[str]) -> Difference:
    """`difference` without notes and hand-overs, sorted."""
    acts = sorted(([tool, text] for tool, text in difference.get("acts", ()) if tool not in aside), key=canonical)
    return {**difference, "documents": difference.get("documents", {}), "acts": acts}


def _difference(text: str | None) -> Difference | None:
    if text is None:
        return None
    value: Difference = json.loads(text)
    return value


def _forms(facts: frozenset[Fact]) -> frozenset[Fact]:
    """Facts in every form that they may be told in; dates without their year."""
    forms: set[Fact] = set()
    for kind, value in facts:
        if kind == "number":
            forms.update((kind, form) for form in number_forms(value))
        else:
            forms.add((kind, f"--{value[-5:]}" if kind == "date" else value))
    return frozenset(forms)


def _weighs(fact: Fact) -> bool:
    """Whether a fact says something by itself."""
    kind, value = fact
    return kind != "number" or "." in value or int(value) >= SMALLEST_NUMBER
