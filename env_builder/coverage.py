"""How much of what may be asked around its tasks a room can answer, and what should be logged to answer more.

In: a service's rows of the room, its tasks and turns. Out: the `coverage` of a manifest (docs/environment.md). Around a task
are the calls that any session of the log made and that name a record which the task's own session named or was shown, and a
read of each record of a known class that was named to it; the task's own calls are left out. Each is asked on its own at the
task's beginning. Names are keys of records if tools show records, else all ids. Sees: what was asked somewhere. Does not
see: calls that no session made, and whether answers are right.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import polars as pl

from env_builder.rooms import Rows
from env_builder.runtime.answers import parse
from env_builder.runtime.canonical import canonical, digest
from env_builder.runtime.episode import EpisodeState
from env_builder.runtime.programs import Program
from env_builder.runtime.relevance import ids, ids_in
from env_builder.runtime.world import View, World
from warehouse.records import Memoize, recompute

N_TASKS = 60
"""Tasks that are asked around, by the hash of their id."""
N_CALLS = 4
"""Calls of one tool asked around one task, by their hash."""
N_ADVICE = 5
_TOKEN = re.compile(r"[^\W_]+")


class PossibleCall(NamedTuple):
    """A question that may be asked."""

    tool: str
    key: str
    """Canonical JSON of the arguments."""


class SessionQuestions(NamedTuple):
    """What sessions asked, and what names they saw."""

    calls: dict[str, set[PossibleCall]]
    """Session -> its calls."""
    named: dict[str, frozenset[str]]
    """Session -> ids in its calls and their answers."""
    naming: dict[str, set[PossibleCall]]
    """Id -> calls of the log that name it."""


def coverage(
    rows: Rows, tasks: pl.DataFrame, turns: pl.DataFrame, world: World | None = None, memoize: Memoize = recompute
) -> dict[str, Any]:
    """{"n_tasks", "n_calls", "answered", "by_tool": {tool: {tier: n}}, "never_called": [tools], "advice": […]}.

    `answered`: share of the calls whose tier is not `unknown`, None where there is nothing to ask. `world`: of these rows,
    where it is loaded; then facts and answers of `rows` are not needed.
    """
    programs = {row["tool"]: row for row in rows.programs}
    world = world or World(rows.facts, rows.recorded)
    showing = {
        rule["class"]: (row["tool"], rule["argument"]) for row in reversed(rows.programs) for rule in row["rules"]
        if rule["rule"] == "document"}
    around, looks = _around(turns, memoize), {(showing[kind], key) for kind, key in world.facts if kind in showing}
    keys = {key for _, key in looks}
    if keys:
        around = around._replace(naming={name: calls for name, calls in around.naming.items() if name in keys})
    room = EpisodeState(world, programs, View(None, frozenset()))
    named = Counter(_shape(name) for name in frozenset().union(*around.named.values()))
    rules_of: dict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    for rule, key in looks:
        rules_of[_shape(key)][rule] += 1
    shapes = {shape: rule for shape, rules in sorted(rules_of.items()) for rule, n in rules.items() if 2 * n >= named[shape]}
    by_tool: dict[str, Counter[str]] = defaultdict(Counter)
    reasons: Counter[tuple[str, str, str]] = Counter()
    chosen = sorted(tasks.iter_rows(named=True), key=lambda task: digest(task["task_id"]))[:N_TASKS]
    for task in chosen:
        starts_at = task["starts_at"].strftime("%Y-%m-%dT%H:%M:%S.%fZ") if task["starts_at"] else None
        for call in _candidates(task["session_ids"], around, shapes):
            ask = room.fork(View(starts_at, frozenset(task["session_ids"])))
            arguments = json.loads(call.key)
            tier = ask.call(call.tool, arguments).tier
            by_tool[call.tool][tier] += 1
            if tier == "unknown":
                reasons[_reason(programs[call.tool], arguments, world, ask)] += 1
    n = sum(counts.total() for counts in by_tool.values())
    n_unknown = reasons.total()
    return {
        "n_tasks": len(chosen), "n_calls": n, "answered": round(1 - n_unknown / n, 4) if n else None,
        "by_tool": {tool: dict(sorted(counts.items())) for tool, counts in sorted(by_tool.items())},
        "never_called": sorted(tool for tool in programs if not rows.support[tool]["for"]),
        "advice": [_advice(reason, count, n_unknown) for reason, count in sorted(
            reasons.items(), key=lambda item: (-item[1], item[0]))[:N_ADVICE]]}


def _around(turns: pl.DataFrame, memoize: Memoize) -> SessionQuestions:
    around = SessionQuestions(defaultdict(set), defaultdict(frozenset), defaultdict(set))
    calls = turns.filter((pl.col("kind") == "call") & pl.col("arguments").is_not_null() & pl.col("content").is_not_null())
    by_session: dict[str, list[tuple[str, str, str]]] = defaultdict(list)
    for session_id, *call in calls.select("session_id", "tool", "arguments", "content").iter_rows():
        by_session[session_id].append((call[0], call[1], call[2]))
    for session_id, own_calls in by_session.items():
        questions, shown = json.loads(memoize(["asked", own_calls], partial(_questions, own_calls)))
        for tool, key, own in questions:
            around.calls[session_id].add(PossibleCall(tool, key))
            for name in own:
                around.naming[name].add(PossibleCall(tool, key))
        around.named[session_id] = frozenset(shown)
    return around


def _questions(calls: list[tuple[str, str, str]]) -> str:
    """Return the questions of a session, each with the ids in it, and the ids in all of them and their answers, as JSON in
    ASCII: half a character may stand in an answer. `calls`: tool, arguments, answer."""
    read = [(tool, json.loads(text)) for tool, text, _ in calls]
    questions = [[tool, canonical(arguments), sorted(ids(arguments))] for tool, arguments in read]
    shown = frozenset().union(*(own for *_, own in questions), *(ids_in(content) for *_, content in calls))
    return json.dumps([questions, sorted(shown)])


def _candidates(session_ids: list[str], around: SessionQuestions, shapes: dict[str, tuple[str, str]]) -> list[PossibleCall]:
    own = set().union(*(around.calls.get(name, ()) for name in session_ids))
    names = frozenset().union(*(around.named.get(name, ()) for name in session_ids))
    session_candidates = set().union(*(around.naming.get(name, ()) for name in names))
    for name in names:
        if rule := shapes.get(_shape(name)):
            session_candidates.add(PossibleCall(rule[0], canonical({rule[1]: name})))
    by_tool: dict[str, list[PossibleCall]] = defaultdict(list)
    for call in sorted(session_candidates - own, key=lambda call: digest("\0".join(call))):
        by_tool[call.tool].append(call)
    return [call for _, calls in sorted(by_tool.items()) for call in calls[:N_CALLS]]


def _shape(name: str) -> str:
    """Return what names of one kind have in common: their signs, and the length of what has digits between them."""
    return _TOKEN.sub(lambda token: "a" if token[0].isalpha() else f"{'9' if token[0].isdigit() else 'x'}{len(token[0])}", name)


def _reason(program: Program, arguments: dict[str, Any], world: World, room: EpisodeState) -> tuple[str, str, str]:
    """(kind, of what, field): why a call is not answered at a task's beginning."""
    tool = program["tool"]
    rule = next((rule for rule in program["rules"] if rule.get("class") and rule.get("argument") in arguments), None)
    if rule is None:
        return ("answers" if program["effect"] in ("read", "pure", "constant") else "program"), tool, ""
    name = (rule["class"], str(arguments[rule["argument"]]))
    facts = world.facts.get(name, ())
    if not facts:
        return "never_seen", rule["class"], ""
    if room.document(name) is None:
        documents = [value for fact in facts if isinstance(value := parse(fact["value"]), dict)]
        apart = Counter(
            field for one, other in pairwise(documents) for field in sorted({*one, *other})
            if one.get(field) != other.get(field))
        return "stale", rule["class"], (min(apart, key=lambda field: (-apart[field], field)) if apart else "")
    return "program", tool, ""


_SAYS = {
    "answers": "{what} answers only what was asked of it before: log the rows that it reads, or more of its calls",
    "program": "what {what} does here was not found: log the rows that it changes, or a read before and after it",
    "never_seen": "no read of this entity of {what} was logged: log changes of such rows from a first snapshot on",
    "stale": "{what} was not seen near enough to this instant{field}: log changes of such rows",
}


def _advice(reason: tuple[str, str, str], count: int, n_unknown: int) -> dict[str, Any]:
    kind, what, field = reason
    says = _SAYS[kind].format(what=what, field=f", and its {field} changes by itself" if field else "")
    return {"kind": kind, "of": what, "field": field or None, "n": count, "share": round(count / n_unknown, 4), "says": says}
