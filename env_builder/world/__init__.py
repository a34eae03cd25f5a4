"""The world behind the tools, from what the calls saw of it.

In: sessions, turns and tools of all services; row changes of a database (`core.row_changes`) are kept and not read yet.
Out: facts (documents of records over time), answers on record, and for each tool its effect and its relations to the
others. No code is read, no model is asked, no domain is known.
What it sees and does not see stands in the modules: `begin`, `documents`, `effects`, `replay`, `spans`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

import polars as pl

from env_builder.runtime.programs import Programs, presumed_effect
from env_builder.runtime.tool_parts import CLOSE, METHODS, SAFE_METHODS, values_of, whole_of
from env_builder.runtime.world import SURE
from env_builder.runtime.writing import Consequence
from env_builder.world import (
    begin,
    changes,
    documents,
    effects,
    faults,
    hidden,
    history,
    joints,
    notations,
    replay,
    witnesses,
    worlds,
)
from env_builder.world.attributes import Separation, attributes_of, spread, tell
from env_builder.world.calls import LoggedCall, calls_of, split_openings, unwrap_answers
from env_builder.world.effects import Declared, Effect
from warehouse.records import Decision, Fact, Recorded, RowChange, empty, frame


class ServiceWorld(NamedTuple):
    """What was found of one service's tools; goes into their behaviour."""

    name: str
    starts_from: begin.Begin
    decided_by: begin.Evidence | None
    votes: dict[str, int]
    """What says how sessions begin, and how many looks spoke for each (`begin.Beginning`)."""
    programs: replay.Programs
    calls: list[LoggedCall]
    steps: list[replay.LoggedStep]
    documents: documents.Documents
    also: dict[str, list[Consequence]]
    """What the acts of each tool change besides the record that they show."""
    feeds: dict[str, changes.Feed]
    """Row changes that tell of a class, by class."""
    finals: changes.Finals
    """States that nothing leaves, by class and field; {} where each session starts from the same state."""


class OwnWays(NamedTuple):
    """How a service's tools write answers and name records, by tool."""

    notations: notations.Notations
    joint: joints.Joints


class SeveralWorlds(NamedTuple):
    """The worlds of a service whose sessions are of several."""

    of_session: dict[str, int]
    """Session -> its world, of those that can be told."""
    split: worlds.Split
    separation: Separation | None
    """What tells them apart, if anything does."""


class ServiceLog(NamedTuple):
    """The calls of one service, read."""

    calls: list[LoggedCall]
    lost: list[LoggedCall]
    """Those whose answers were replaced."""
    notations: notations.Notations
    starts: dict[str, datetime | None]
    """When each session began."""


class InducedWorld(NamedTuple):
    """All services' worlds."""

    facts: pl.DataFrame
    recorded: pl.DataFrame
    services: dict[str, ServiceWorld]
    decisions: pl.DataFrame


def read_logs(sessions: pl.DataFrame, turns: pl.DataFrame) -> dict[str, ServiceLog]:
    """Service -> its calls, without what is around their answers."""
    begun, starts = _with_openings(sessions, turns)
    logs: dict[str, ServiceLog] = {}
    for name in sessions["service"].unique().sort():
        calls, lost = unwrap_answers(calls_of(begun.filter(pl.col("service") == name)))
        in_notations = notations.find(calls, starts)
        logs[name] = ServiceLog(notations.applied(calls, in_notations), lost, in_notations, starts)
    return logs


def split_worlds(sessions: pl.DataFrame, turns: pl.DataFrame, log: ServiceLog) -> SeveralWorlds | None:
    """Find the worlds that the sessions of one service are of; None: one, as far as the log tells."""
    split = worlds.find(log.calls)
    if split is None:
        return None
    logged = set(sessions["session_id"])
    labels = {session: world for session, world in split.of_session.items() if session in logged}
    attributes = attributes_of(sessions, turns, [call for call in log.calls if call.session_id in logged])
    separation = tell(attributes, labels)
    return SeveralWorlds(spread(attributes[separation.attribute], labels) if separation else labels, split, separation)


def find_beginning(sessions: pl.DataFrame, turns: pl.DataFrame) -> begin.Beginning:
    """Decide how the sessions of one service begin."""
    log, = read_logs(sessions, turns).values()
    return begin.find(log.calls, documents.find(log.calls))


def _with_openings(sessions: pl.DataFrame, turns: pl.DataFrame) -> tuple[pl.DataFrame, dict[str, datetime | None]]:
    """Return (turns in which what opened a session's case is a session of its own, when each session began)."""
    own, openings = split_openings(turns, sessions)
    openings = openings.with_columns(pl.format("{}~{}", "session_id", "position").alias("session_id"))
    begins = pl.concat([sessions.select("session_id", "started_at"), openings.select("session_id", started_at="happened_at")])
    return pl.concat([own, openings]), dict(begins.iter_rows())


def build(
    sessions: pl.DataFrame, turns: pl.DataFrame, tools: pl.DataFrame, starts_from: dict[str, begin.Begin],
    row_changes: pl.DataFrame | None = None, logs: Mapping[str, ServiceLog] | None = None,
) -> InducedWorld:
    """Rebuild the world of every service. `starts_from`: what the configuration says per service; the rest is found.
    `row_changes`: `core.row_changes`; which table holds what the tools show is found, and a table may hold nothing of it.
    `logs`: what `read_logs` gives of these sessions."""
    fed = empty(RowChange) if row_changes is None else row_changes
    services: dict[str, ServiceWorld] = {}
    facts: list[history.Row] = []
    recorded: list[history.Row] = []
    decisions: list[Decision] = []
    for name, (calls, lost, in_notations, starts) in (read_logs(sessions, turns) if logs is None else logs).items():
        ways = OwnWays(in_notations, joints.find(calls))
        calls = joints.applied(calls, ways.joint)
        declared = parts_declared(_declared(tools, name), {call.tool for call in calls})
        service = _service(name, calls, declared, starts_from.get(name), ways)
        passed = faults.find_faults(calls, {tool: presumed_effect(program) for tool, program in service.programs.items()})
        if passed:
            decisions += [
                _rejected(call, "transient_fault", f"{call.tool} of {name} failed and worked soon after, with nothing done "
                          "between; it tells how often that happens, and no more")
                for call in calls if call.event_id in passed]
            calls = [call for call in calls if call.event_id not in passed]
            service = _service(name, calls, declared, starts_from.get(name), ways)
        shared = service.starts_from == "shared"
        if not shared:
            _mark_apart(service)
        feeds = changes.find(fed, service.steps) if shared and fed.height else {}
        listing = Programs(service.programs).listing  # of answers, a look at rows alone asks for those that list some
        records = history.SharedRecords(name, service.steps, starts, feeds) if shared else None
        first = history.first_world(
            name, service.steps, starts, feeds, {tool for rules in listing.values() for tool in rules}, records)
        began = {session_id: history.instant(at) for session_id, at in starts.items()}
        steps = list(replay.steps(service.calls, service.documents, service.programs, first, began))
        relation = {tool: program["relation"] for tool, program in service.programs.items()}
        links = hidden.links_of(steps, service.documents)
        also = hidden.find(steps, links, service.documents, shared, feeds, relation)
        for tool, kind in {(tool, one["class"]) for tool, own in also.items() for one in own}:
            if kind in relation[tool]:  # it is known which of these records it changes
                relation[tool][kind] = "changes"
        finals = changes.find_finals(steps, feeds) if shared else {}
        service = service._replace(steps=steps, also=also, feeds=feeds, finals=finals)
        unexplained = history.unexplained(steps, links, also, service.documents, relation) if shared else {}
        touched = history.touches(steps, also, service.documents, unexplained)
        for place, more in history.answer_touches(steps, relation, service.documents).items() if shared else ():
            touched[place] = [*touched.get(place, ()), *more]
        known_history = history.facts(name, steps, starts, shared, touched, feeds, None, records)
        services[name] = service
        facts += history.identified(known_history.facts, "fact_id")
        recorded += history.identified(known_history.recorded, "recorded_id")
        decisions += known_history.decisions
        replaced = f"several tools of {name} gave this text in the place of their own answers"
        decisions += [_rejected(call, "answer_replaced", replaced) for call in lost]
    return InducedWorld(
        frame(Fact, facts).unique("fact_id").sort("fact_id"),
        frame(Recorded, recorded).unique("recorded_id").sort("recorded_id"),
        services,
        frame(Decision, decisions).unique(["stage", "subject", "reason"]).sort("subject", "reason"))


def _service(
    name: str, calls: list[LoggedCall], declared: dict[str, Declared], configured: begin.Begin | None, ways: OwnWays,
) -> ServiceWorld:
    shown = documents.find(calls)
    starts_from, decided_by, votes = (
        begin.Beginning(configured, "configuration", {}) if configured else begin.find(calls, shown))
    if starts_from == "reset":
        calls = witnesses.marked(calls)
    does = effects.find(calls, shown, starts_from == "shared", declared)
    programs = replay.skeletons(calls, shown, does, starts_from == "shared")
    for tool, program in programs.items():
        program |= {name: by_tool[tool] for name, by_tool in ways._asdict().items() if tool in by_tool}
    steps = list(replay.steps(calls, shown, programs))
    return ServiceWorld(name, starts_from, decided_by, votes, programs, calls, steps, shown, {}, {}, {})


def _mark_apart(service: ServiceWorld) -> None:
    """Say of each tool whose first answers differ from session to session that they do: what an episode is taught is then its
    own. Whether another episode works on the same case is as likely as in the log."""
    begun = history.beginnings(service.steps, of_cases=False)
    for tool, program in service.programs.items():
        if min(begun.chances(program.get("class"), tool)) < SURE:
            program["alike"] = False


def _rejected(call: LoggedCall, reason: str, why: str) -> Decision:
    return Decision(stage="world", subject=call.event_id, kept=False, reason=reason, detail=f"{why}: {call.content[:80]!r}")


def parts_declared(declared: dict[str, Declared], names: Iterable[str]) -> dict[str, Declared]:
    """Return the same with what is known of the parts of tools among these names: that the whole tool only reads, and of parts
    that are all methods of HTTP, that the safe ones read (RFC 9110, 9.2.1). A description speaks of the whole tool."""
    siblings: dict[str, set[str]] = defaultdict(set)
    for name in names:
        for value in values_of(name)[-1:]:
            siblings[name.removesuffix(value + CLOSE)].add(value)
    parts: dict[str, Declared] = {}
    for before, values in siblings.items():
        whole = declared.get(whole_of(before), Declared()).hint
        are_methods = {value.upper() for value in values} <= METHODS
        for value in values:
            hint: Effect | None = ("read" if value.upper() in SAFE_METHODS else "unknown") if are_methods else None
            parts[f"{before}{value}{CLOSE}"] = Declared("read" if whole == "read" else hint, "")
    return declared | parts


def _declared(tools: pl.DataFrame, service: str) -> dict[str, Declared]:
    """Return what descriptors say of each tool: MCP's readOnlyHint (`unknown`: not read-only), and the description."""
    hints: dict[str | None, Effect] = {"true": "read", "false": "unknown"}
    rows = tools.filter(pl.col("service") == service).select(
        "tool", pl.col("annotations").str.json_path_match("$.readOnlyHint"), "description").sort(pl.all())
    declared: dict[str, Declared] = {}
    for tool, reads, description in rows.iter_rows():
        earlier = declared.get(tool, Declared())
        declared[tool] = Declared(hints.get(reads, earlier.hint), description or earlier.description)
    return declared
