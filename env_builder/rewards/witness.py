"""What one session bears witness to: its end, the facts it reported, what it looked up; and checks with their provenance.

In: a session's turns, parsed calls and difference. Out: a `Witness`, whose parts are computed when they are needed; for a
check, sessions and events that support and contradict it (event ids of the log, first ones first), and the supporting sessions'
mean probability of success. Sees: facts that `runtime/words.py` finds in words and answers. Does not see: facts that the agent
worked out itself (a count, a sum) unless a tool gave them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple

import orjson
import polars as pl

from env_builder.rewards.loose import tools_by_service
from env_builder.runtime.canonical import canonical, digest
from env_builder.runtime.ends import end_state, unreached
from env_builder.runtime.stances import claims, declines
from env_builder.runtime.words import Fact, facts_in, number_forms
from env_builder.world.calls import USER, LoggedCall, ReadCalls, calls_of, read_call
from warehouse.records import Check, Memoize, recompute

SMALLEST_NUMBER = 10
"""Whole numbers below are said in every other sentence, and say nothing."""

Row = tuple[str, str | None, str | None, str, int]
"""(kind, role, text, event id, position) of a turn."""
SAY = ""
"""Stands for words of the agent among the names of tools."""


class WitnessStep(NamedTuple):
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
        self, session_id: str, rows: list[Row], calls: list[LoggedCall], difference: Difference | None,
        probability: float | None, reads: frozenset[str], memoize: Memoize = recompute,
        others: Sequence[LoggedCall] = (),
    ) -> None:
        self.session_id = session_id
        self.difference = difference
        """None: the room could not tell what the session changed."""
        self.probability = probability
        self.calls = calls
        """Calls of the agent."""
        self.others = others
        """Calls of other people: events, which the agent neither makes nor sees the answers of."""
        self._rows, self._reads, self._memoize = rows, reads, memoize

    @cached_property
    def digest(self) -> str:
        """Of all that was said and called: what follows from that alone can be remembered by it."""
        spoken = [[position, kind, role, text] for kind, role, text, _, position in self._rows]
        made = [[call.position, call.tool, call.key, call.content, call.failed] for call in self.calls]
        return hashlib.sha256(orjson.dumps([spoken, made])).hexdigest()

    def remembered(self, name: str, arguments: object, make: Callable[[], Any]) -> Any:
        """Return what `make` gives, or gave before: JSON that follows from what was said and called, and the arguments."""
        return self._memoize([name, self.digest, arguments], make)

    @cached_property
    def looked_up(self) -> frozenset[tuple[str, str]]:
        """(tool, canonical arguments) of the reads that succeeded and name something."""
        return frozenset((call.tool, call.key) for call in self.calls
                         if call.tool in self._reads and call.arguments and not call.failed)

    @cached_property
    def words(self) -> list[tuple[str, str]]:
        """(event id, text) of what the agent said."""
        return [(step.event_id, step.text) for step in self.steps if step.tool == SAY]

    @cached_property
    def steps(self) -> list[WitnessStep]:
        """Its words and the calls that succeeded, in order."""
        spoken = [WitnessStep(position, event_id, SAY, text, {}, False) for kind, role, text, event_id, position in self._rows
                if kind == "message" and role == "assistant" and text and text.strip()]
        done = [WitnessStep(call.position, call.event_id, call.tool, "", call.arguments, call.tool not in self._reads)
                for call in self.calls if not call.failed]
        return sorted([*spoken, *done], key=lambda step: step.position)

    def stating(self, facts: Iterable[Fact]) -> list[str]:
        """Event ids of the words that state one of `facts`."""
        wanted = frozenset(facts)
        return [event_id for event_id, text in self.words if wanted & _forms(facts_in(text))]

    @cached_property
    def places(self) -> dict[str, list[int]]:
        """Tool -> positions of its steps, in order."""
        by_tool: dict[str, list[int]] = {}
        for step in self.steps:
            by_tool.setdefault(step.tool, []).append(step.position)
        return by_tool

    @cached_property
    def messages(self) -> list[tuple[int, bool, str]]:
        """(position, whether the agent sent it, text) of all messages but instructions."""
        return [(position, role == "assistant", text) for kind, role, text, _, position in self._rows
                if kind == "message" and role != "system" and text]

    @property
    def ended(self) -> list[str]:
        """Event id of its last words, empty where there are none."""
        return [event_id for event_id, _ in self.words[-1:]]

    @cached_property
    def given_before(self) -> list[str]:
        """Return what the user and the instructions said: what the agent need not learn from a tool."""
        return [text for kind, role, text, _, _ in self._rows if kind == "message" and role != "assistant" and text]

    @cached_property
    def inputs(self) -> list[str | LoggedCall]:
        """What the agent could learn from, in order: words of the user and of the instructions, and its calls with answers."""
        texts = [(position, text) for kind, role, text, _, position in self._rows
                 if kind == "message" and role != "assistant" and text]
        placed: list[tuple[int, str | LoggedCall]] = [*texts, *((call.position, call) for call in self.calls)]
        return [one for _, one in sorted(placed, key=lambda each: each[0])]

    @cached_property
    def declining(self) -> frozenset[str]:
        """Words of the agent that decline something."""
        texts = [text for _, text in self.words]
        places = self.remembered("declining", None, lambda: [place for place, text in enumerate(texts) if declines(text)])
        return frozenset(texts[place] for place in places)

    @property
    def declined(self) -> bool:
        """Did the agent decline something in words?"""
        return bool(self.declining)

    @cached_property
    def claimed(self) -> bool:
        """Did the agent assert that something was done?"""
        return bool(self.remembered("claimed", None, lambda: any(claims(text) for _, text in self.words)))

    def words_after(self, tools: Iterable[str]) -> list[str]:
        """Return what the agent said after the last successful call of these tools; nothing if there is none."""
        last = max((place for tool in tools for place in self.places.get(tool, ())), default=None)
        return [step.text for step in self.steps if step.tool == SAY and last is not None and step.position > last]

    @cached_property
    def changes(self) -> list[str]:
        """Event ids of the calls that succeeded and are not known to read only."""
        return [step.event_id for step in self.steps if step.acts]

    @cached_property
    def reported(self) -> frozenset[Fact]:
        """Facts that the agent told before its user did and after a tool gave them; dates without their year."""
        return frozenset[Fact]().union(*self._reported)

    @cached_property
    def reported_last(self) -> frozenset[Fact]:
        """Those of the agent's last words."""
        return self._reported[-1] if self._reported else frozenset()

    @cached_property
    def _reported(self) -> list[frozenset[Fact]]:
        drawn = [key for _, key in (self.difference or {}).get("made", ())]
        rows = [row[:3] for row in self._rows]
        reported = self.remembered("told", drawn, partial(_telling, drawn, rows))
        return [frozenset((kind, value) for kind, value in facts) for facts in reported]


def _telling(drawn: list[str], rows: list[tuple[str, str | None, str | None]]) -> list[list[Fact]]:
    """Facts that each of the agent's words was the first to tell, sorted. `drawn`: names of what the session made."""
    given: set[Fact] = set()
    own_facts = set(_forms(facts_in(" ".join(drawn))))  # another episode's names are others
    reported: list[list[Fact]] = []
    for kind, role, text in rows:
        facts = _forms(facts_in(text or ""))
        if kind == "call":
            given |= facts
        elif role == "assistant" and (text or "").strip():
            reported.append(sorted((form, value) for form, value in facts & given - own_facts
                                   if form != "number" or "." in value or int(value) >= SMALLEST_NUMBER))
        else:
            own_facts |= facts
    return reported


def witnesses(
    session_ids: pl.Series, turns: pl.DataFrame, outcomes: pl.DataFrame, differences: pl.DataFrame,
    effects: pl.DataFrame, memoize: Memoize = recompute, read: ReadCalls = read_call,
) -> dict[str, Witness]:
    """Every session of `session_ids` that has turns, by its id."""
    every = turns.filter(pl.col("session_id").is_in(session_ids.implode())).sort("session_id", "position")
    by_user = ((pl.col("kind") == "call") & (pl.col("requestor") == USER)).fill_null(False)
    own = every.filter(~by_user)
    calls, others = _by_session(own, read), _by_session(every.filter(by_user), read)
    rows: dict[str, list[Row]] = {}
    for session_id, *row in own.select("session_id", "kind", "role", "content", "turn_id", "position").iter_rows():
        rows.setdefault(session_id, []).append((row[0], row[1], row[2], row[3], row[4]))
    service = dict(own.select("session_id", "service").unique().iter_rows())
    reads = tools_by_service(effects.filter(pl.col("counted") == "read"))
    probability = dict(outcomes.select("session_id", "probability").iter_rows())
    changed = dict(differences.select("session_id", "difference").iter_rows())
    return {
        session_id: Witness(
            session_id, own_rows, calls.get(session_id, []), json.loads(changed.get(session_id) or "null"),
            probability.get(session_id), reads.get(service[session_id], frozenset()), memoize, others.get(session_id, ()))
        for session_id, own_rows in rows.items()
    }


def _by_session(turns: pl.DataFrame, read: ReadCalls) -> dict[str, list[LoggedCall]]:
    """Return the calls of each session, in order."""
    calls: dict[str, list[LoggedCall]] = {}
    for call in calls_of(turns, read):
        calls.setdefault(call.session_id, []).append(call)
    return calls


def ends_alike(one: Difference, other: Difference, parameters: dict[str, Any]) -> bool:
    """Whether two differences are the same end state."""
    first, second = end_state(one, parameters), end_state(other, parameters)
    return not unreached(first, second) and not unreached(second, first)


def changes_nothing(difference: Difference, parameters: dict[str, Any]) -> bool:
    """Whether a difference holds no change that counts."""
    return not unreached(end_state(difference, parameters), ({}, {}))


def without_ignored(difference: Difference, ignored_tools: list[str]) -> Difference:
    """`difference` without notes and hand-overs, sorted."""
    calls = ([tool, text] for tool, text in difference.get("write_calls", ()) if tool not in ignored_tools)
    return {**difference, "documents": difference.get("documents", {}), "write_calls": sorted(calls, key=canonical)}


def _forms(facts: frozenset[Fact]) -> frozenset[Fact]:
    """Facts in every form that they may be told in; dates without their year."""
    forms: set[Fact] = set()
    for kind, value in facts:
        if kind == "number":
            forms.update((kind, form) for form in number_forms(value))
        else:
            forms.add((kind, f"--{value[-5:]}" if kind == "date" else value))
    return frozenset(forms)


def places_of(witnesses: Iterable[Witness]) -> dict[Witness, int]:
    """Return where each stands."""
    return {one: place for place, one in enumerate(witnesses)}


def apart(some: Iterable[Witness], places: Mapping[Witness, int]) -> list[Witness]:
    """Return those of `some` that have a place, in its order."""
    return sorted((one for one in some if one in places), key=places.__getitem__)


Role = Literal["gate", "score", "penalty", "shaping", "diagnostic"]
Bears = Callable[[Witness], Iterable[str]]
"""Event ids in a session that a check stands on."""
MOST_EVENTS = 20
"""Events that a side of a check's provenance names."""


def check(
    kind: str, role: Role, description: str, parameters: dict[str, Any], supporting: Iterable[Witness],
    contrary: Iterable[Witness], bears: Bears,
) -> Check:
    """Make a check; the same kind, role and parameters have the same id."""
    return Check(check_id=check_id(kind, role, parameters), kind=kind, role=role, description=description,
                 parameters=parameters, weight=1.0, provenance=provenance(supporting, contrary, bears))


def check_id(kind: str, role: str, parameters: dict[str, Any]) -> str:
    """Id of a check: of what it asks for, whatever its origin."""
    return digest(canonical([kind, role, parameters]))[:16]


def rubric_id(task_id: str, checks: str, solution: str) -> str:
    """Id of a rubric: of what it asks for and of its solution, whatever speaks for them. `checks`, `solution`: JSON texts."""
    return id_of_rubric(task_id, json.loads(checks), solution)


def id_of_rubric(task_id: str, checks: Iterable[dict[str, Any]], solution: str) -> str:
    """Return the same of checks that were read."""
    bare = [{name: value for name, value in check.items() if name != "provenance"} for check in checks]
    return digest(canonical([task_id, bare, json.loads(solution)]))


def provenance(supporting: Iterable[Witness], contrary: Iterable[Witness], bears: Bears) -> dict[str, Any]:
    """Return what speaks for and against, whatever the order of the witnesses."""
    sides = {name: sorted(who, key=lambda one: one.session_id) for name, who in (
        ("supporting", supporting), ("contrary", contrary))}
    probabilities = [one.probability for one in sides["supporting"] if one.probability is not None]
    return {
        **{name: [one.session_id for one in who] for name, who in sides.items()},
        "support": len(sides["supporting"]),
        "confidence": round(sum(probabilities) / len(probabilities), 6) if probabilities else None,
        "events": {name: _events(who, bears) for name, who in sides.items()},
    }


def _events(who: list[Witness], bears: Bears) -> list[str]:
    """One event of each session, then the next of each, as many as are named."""
    event_ids = [list(bears(one)) for one in who]
    longest = max(map(len, event_ids), default=0)
    rows = [events[n] for n in range(min(longest, MOST_EVENTS)) for events in event_ids if n < len(events)]
    return list(dict.fromkeys(rows))[:MOST_EVENTS]
