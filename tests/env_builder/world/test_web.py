"""A web application rebuilt from its request log: what one request makes, later ones show, whoever asks."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path

import orjson
import polars as pl
import pytest

from env_builder import behaviour, world
from env_builder.perturbations import perturbations
from env_builder.rooms import rows_of
from env_builder.runtime import Environment
from env_builder.runtime.apps.records import RecordsApp
from env_builder.runtime.perturbations import Perturbations
from env_builder.runtime.world import World
from extractors.inventory import SourceFile
from extractors.reading import read
from extractors.sessions import AssembledSessions, assemble
from tests.library import log

N_VISITS = 260
N_SEEN = 200
Counts = dict[str, Counter[str]]


def made_of(folder: Path, lines: list[dict[str, object]]) -> AssembledSessions:
    path = folder / "requests.ndjson"
    path.write_bytes(b"\n".join(map(orjson.dumps, lines)))
    return assemble(read(SourceFile(path, path.name)).events)


def room_of(seen: AssembledSessions) -> Environment:
    """Return an open room of what was seen."""
    built = world.build(seen.sessions, seen.turns, seen.tools, {})
    rows = rows_of("main", built.facts, built.recorded, behaviour.induce(built, seen.tools))
    programs = {row["tool"]: row for row in rows.programs}
    drawn = perturbations(seen.turns, {tool: row["effect"] for tool, row in programs.items()})
    app = RecordsApp("main", programs, World(rows.facts, rows.recorded))
    return Environment({"starts_from": "shared"}, [], [], [app], {}, Perturbations(drawn))


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Counts:
    """Of each tool how many of the later requests were answered how, each told after it was asked for."""
    folder = tmp_path_factory.mktemp("library")
    lines = list(log(5, N_VISITS))
    every = made_of(folder, lines)
    cut = every.turns["happened_at"].sort()[int(len(lines) * N_SEEN / N_VISITS)]
    earlier = [line for line in lines if line["time"] < cut.timestamp() * 1000]
    room, counts = room_of(made_of(folder, earlier)), defaultdict(Counter)
    session = None
    for row in every.turns.filter(pl.col("happened_at") >= cut).sort("happened_at").iter_rows(named=True):
        if row["session_id"] != session:
            room.reset(None, at=row["happened_at"].strftime("%Y-%m-%dT%H:%M:%S.%fZ"))
            session = row["session_id"]
        arguments = json.loads(row["arguments"])
        got = room.call(row["tool"], arguments)
        decision = "unknown" if got.tier == "unknown" else "exact" if got.content == row["content"] else "wrong"
        counts[row["tool"]][decision] += 1
        room.learn(row["tool"], arguments, row["content"])
    return dict(counts)


def test_nothing_is_answered_wrongly(played: Counts) -> None:
    """Neither what shows a thing nor a page of a listing whose rows were changed since it was last seen."""
    assert {tool: counts["wrong"] for tool, counts in played.items() if counts["wrong"]} == {}
    assert played["GET /books"]["exact"] >= 0.5 * played["GET /books"].total() > 10


@pytest.mark.parametrize(
    "tool", ["GET /members/{members_1}", "GET /notes/{notes_1}", "GET /loans/{loans_1}", "GET /books/{books_1}",
             "POST /loans/{loans_1}/back", "POST /notes/{notes_1}/mark"])
def test_what_was_made_is_known_where_it_shows(played: Counts, tool: str) -> None:
    assert played[tool]["exact"] >= 0.9 * played[tool].total() > 10, played[tool]
