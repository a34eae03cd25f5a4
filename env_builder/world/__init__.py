"""The world behind the tools, from what the calls saw of it.

In: sessions, turns and tools of all services; row changes of a database (`core.row_changes`) are kept and not read yet.
Out: facts (documents of things over time), answers on record, and for each tool its effect and its relations to the
others. No code is read, no model is asked, no domain is known.
What it sees and does not see stands in the modules: `documents`, `effects`, `begin`, `spans`.
"""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

import polars as pl

from env_builder.runtime.effects import Consequence
from env_builder.world import begin, changes, documents, effects, faults, finals, hidden, history, replay, touches, wrappers
from env_builder.world.calls import Call, calls_of
from env_builder.world.effects import Effect
from warehouse.records import Fact, Recorded, RowChange, Verdict, empty, frame


class Service(NamedTuple):
    """What was found of one service's tools; goes into their behaviour."""

    name: str
    starts_from: begin.Begin
    votes: dict[str, int]
    """How many looks spoke for `reset` and for `shared`; {} where the configuration says it."""
    programs: replay.Programs
    calls: list[Call]
    steps: list[replay.Step]
    documents: documents.Documents
    also: dict[str, list[Consequence]]
    """What the acts of each tool change besides the thing that they show."""
    feeds: dict[str, changes.Feed]
    """Row changes that tell of a class, by class."""
    finals: finals.Finals
    """States that nothing leaves, by class and field; {} where each session begins anew."""


class World(NamedTuple):
    """All services' worlds."""

    facts: pl.DataFrame
    recorded: pl.DataFrame
    services: dict[str, Service]
    verdicts: pl.DataFrame


def build(
    sessions: pl.DataFrame, turns: pl.DataFrame, tools: pl.DataFrame, starts_from: dict[str, begin.Begin],
    row_changes: pl.DataFrame | None = None,
) -> World:
    """Rebuild the world of every service. `starts_from`: what the configuration says per service; the rest is found.
    `row_changes`: `core.row_changes`; which table holds what the tools show is found, and a table may hold nothing of it."""
    fed = empty(RowChange) if row_changes is None else row_changes
    starts: dict[str, datetime | None] = dict(sessions.select("session_id", "started_at").iter_rows())
    services: dict[str, Service] = {}
    facts: list[history.Row] = []
    recorded: list[history.Row] = []
    verdicts: list[Verdict] = []
    for name in sessions["service"].unique().sort():
        calls, lost = wrappers.taken_off(calls_of(turns.filter(pl.col("service") == name)))
        service = _service(name, calls, _hints(tools, name), starts_from.get(name))
        passed = faults.find(calls, {tool: program["effect"] for tool, program in service.programs.items()})
        if passed:
            verdicts += [_fault(name, call) for call in calls if call.event_id in passed]
            calls = [call for call in calls if call.event_id not in passed]
            service = _service(name, calls, _hints(tools, name), starts_from.get(name))
        shared = service.starts_from == "shared"
        feeds = changes.find(fed, service.steps) if shared and fed.height else {}
        first = history.base_of(history.facts(name, service.steps, starts, shared, None, feeds))
        began = {session_id: history.instant(at) for session_id, at in starts.items()}
        steps = list(replay.steps(calls, service.documents, service.programs, first, began))
        relation = {tool: program["relation"] for tool, program in service.programs.items()}
        also = hidden.find(steps, service.documents, shared, feeds, relation)
        service = service._replace(steps=steps, also=also, feeds=feeds, finals=finals.find(steps, feeds) if shared else {})
        left = touches.unexplained(steps, also, service.documents, relation) if shared else {}
        told = history.facts(name, steps, starts, shared, touches.touches(steps, also, service.documents, left), feeds)
        services[name] = service
        facts += history.identified(told.facts, "fact_id")
        recorded += history.identified(told.recorded, "recorded_id")
        verdicts += told.verdicts + [_lost(name, call) for call in lost]
    return World(
        frame(Fact, facts).unique("fact_id").sort("fact_id"),
        frame(Recorded, recorded).unique("recorded_id").sort("recorded_id"),
        services,
        frame(Verdict, verdicts).unique(["stage", "subject", "reason"]).sort("subject", "reason"),
    )


def _service(
    name: str, calls: list[Call], hints: dict[str, Effect], told: begin.Begin | None
) -> Service:
    found = documents.find(calls)
    starts_from, votes = (told, {}) if told else begin.find(calls, found)
    does = effects.find(calls, found, starts_from == "shared", hints)
    programs = replay.skeletons(calls, found, does)
    return Service(name, starts_from, votes, programs, calls, list(replay.steps(calls, found, programs)), found, {}, {}, {})


def _lost(service: str, call: Call) -> Verdict:
    return Verdict(
        stage="world", subject=call.event_id, kept=False, reason="answer_replaced",
        detail=f"several tools of {service} gave this text in the place of their own answers: {call.content[:80]!r}",
    )


def _fault(service: str, call: Call) -> Verdict:
    return Verdict(
        stage="world", subject=call.event_id, kept=False, reason="transient_fault",
        detail=f"{call.tool} of {service} failed and worked soon after, with nothing done between; it tells how often that "
               f"happens, and no more: {call.content[:80]!r}",
    )


def _hints(tools: pl.DataFrame, service: str) -> dict[str, Effect]:
    """What declarations say of tools (MCP's readOnlyHint): `read`, or `unknown` where they say that it may change things."""
    said = tools.filter(pl.col("service") == service).select(
        "tool", pl.col("annotations").str.json_path_match("$.readOnlyHint").alias("reads")).drop_nulls()
    return {tool: "read" if reads == "true" else "unknown" for tool, reads in said.iter_rows()}
