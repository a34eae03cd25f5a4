"""Rooms made straight from frames: the rows that a bundle holds, and what every session changed when played in its room.

In: facts, answers on record and behaviours of the warehouse. Out: rows as docs/environment.md defines them, and for each
session its difference, null where the environment cannot tell (a write call that it does not answer as recorded).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import polars as pl

from env_builder.runtime.canonical import canonical
from env_builder.runtime.episode import EpisodeState
from env_builder.runtime.programs import FEWEST_TRANSITIONS, Program
from env_builder.runtime.world import View, World

INSTANT = "%Y-%m-%dT%H:%M:%S%.6fZ"
DIFFERENCE = {"session_id": pl.String(), "difference": pl.String()}
SUPPORT = ("for", "against", "held_out_exact", "held_out_abstains", "cassette_exact", "cassette_abstains")
"""What ships beside a program: calls it was found from, those it gets wrong, how it did on sessions it was not found from."""

Row = dict[str, Any]


class Rows(NamedTuple):
    """What an environment of one service is made of, in canonical order."""

    facts: list[Row]
    recorded: list[Row]
    programs: list[Program]
    support: Mapping[str, Row] = {}
    """Tool -> what speaks for its program: no part of it, as it moves with every call."""


def rows_of(service: str, facts: pl.DataFrame, recorded: pl.DataFrame, behaviours: pl.DataFrame) -> Rows:
    """Rows of one service's room. Several views of one entity stand in order of session, then of time."""
    own = pl.col("service") == service
    fact_rows = (
        facts.filter(own)
        .select(
            pl.col("entity_class").alias("class"), "key", "value", _instant("valid_from").alias("from"),
            _instant("valid_to").alias("to"), pl.col("session_id").alias("session"), "derivation",
            pl.col("event_id").alias("event"))
        .sort("class", "key", "session", "from", "event", nulls_last=False)
    )
    recorded_rows = recorded.filter(own).select(
        "tool", "arguments", "content", "is_error", _instant("valid_from").alias("from"), _instant("valid_to").alias("to"),
        pl.col("session_id").alias("session"), "after", "effects", pl.col("event_id").alias("event"),
    ).sort("tool", "arguments", "after", "session", "from", "event", nulls_last=False)
    behaviour_rows = behaviours.filter(own).sort("tool").select(
        "program", "n_support", "n_against", "fidelity", "abstains", "cassette_fidelity", "cassette_abstains")
    return Rows(
        fact_rows.to_dicts(),
        [row | {"after": json.loads(row["after"]), "effects": json.loads(row["effects"])} for row in recorded_rows.to_dicts()],
        [_program(json.loads(program), says[0]) for program, *says in behaviour_rows.iter_rows()],
        {row["tool"]: dict(zip(SUPPORT, says, strict=True)) | {name: row[name] for name in ("written_by",) if name in row}
         for program, *says in behaviour_rows.iter_rows() for row in (json.loads(program),)})


def _program(program: Program, n_calls: int) -> Program:
    """Return the program as it is played: not who wrote it, and whether enough calls bear it out instead of how many."""
    borne_out = {"borne_out": True} if n_calls >= FEWEST_TRANSITIONS else {}
    return {name: value for name, value in program.items() if name != "written_by"} | borne_out


def differences(
    sessions: pl.DataFrame, turns: pl.DataFrame, facts: pl.DataFrame, recorded: pl.DataFrame, behaviours: pl.DataFrame
) -> pl.DataFrame:
    """(session_id, difference) of all sessions, each played in its own room as it was logged; sorted by session_id."""
    played: list[tuple[str, str | None]] = []
    of_calls = pl.when(pl.col("kind") == "call").then(pl.struct("tool", "arguments", "content")).drop_nulls().alias("calls")
    for service in sessions["service"].unique().sort():
        rows = rows_of(service, facts, recorded, behaviours)
        programs = {row["tool"]: row for row in rows.programs}
        room = EpisodeState(World(rows.facts, rows.recorded), programs, View(None, frozenset()))
        here = sessions.filter(pl.col("service") == service)
        starts = dict(here.select("session_id", _instant("started_at")).iter_rows())
        own = turns.join(here, on="session_id", how="semi").sort("session_id", "position")
        for session_id, calls in own.group_by("session_id", maintain_order=True).agg(of_calls).iter_rows():
            played.append((session_id, _played(room, View(starts[session_id], frozenset((session_id,))), calls)))
    return pl.DataFrame(played, schema=DIFFERENCE, orient="row").sort("session_id")


def _played(empty: EpisodeState, view: View, calls: list[Row]) -> str | None:
    """Return the difference that the calls make, None if a write call is not answered as it was logged."""
    room = empty.fork(view)
    for call in calls:
        if call["arguments"] is None or call["content"] is None:
            continue
        result = room.call(call["tool"], json.loads(call["arguments"]))
        if result.content != call["content"] and room.is_simulated_write(call["tool"]):
            return None
    return canonical(room.difference())


def _instant(name: str) -> pl.Expr:
    return pl.col(name).dt.strftime(INSTANT)
