"""Sessions that are assembled by parts are, row by row, those that are assembled at once."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from extractors.inventory import discover
from extractors.reading import read
from pipelines.building.sessions import sessions
from pipelines.settings import Settings
from tests.pipelines.conftest import ROOT
from warehouse.records import Declaration, Event, empty, frame
from warehouse.store import Store

TABLES = ("core.sessions", "core.turns", "core.feedback", "core.row_changes", "core.corrections", "core.reviews", "core.tools",
          "raw.epochs")
N_PARTS = (1, 3, 16)


def rows_by_parts(events: pl.DataFrame, declarations: pl.DataFrame, folder: Path, monkeypatch: pytest.MonkeyPatch
                  ) -> list[dict[str, list[Any]]]:
    """Assemble events in so many parts; gives the rows of each table as they lie in it."""
    made = []
    (folder / ".parts" / "events").mkdir(parents=True)   # of a killed run
    with Store.open(folder / "warehouse.duckdb") as store:
        store.append("core.events", events)
        store.append_new("raw.declarations", declarations)
        for n in N_PARTS:
            monkeypatch.setattr("pipelines.building.sessions.n_parts", lambda *_, n=n: n)
            counts = sessions(store, Settings(logs=(), out=str(folder)))
            rows = {table: store.read(f"select * from {table}").rows() for table in TABLES}
            decisions = store.read("select * from mart.decisions order by all").rows()
            made.append(rows | {"decisions": decisions, "counts": sorted(counts.items())})
    assert not (folder / ".parts").exists()
    return made


def test_real_logs_give_the_same_in_any_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = [path for path in sorted((ROOT / "tests/logs/retail_desk").iterdir()) if path.name != "otlp"]   # the same twice
    readings = [read(source) for source in discover(folders)[0]]
    events, declarations = pl.concat([each.events for each in readings]), pl.concat([each.declarations for each in readings])
    whole, *others = rows_by_parts(events, declarations, tmp_path, monkeypatch)
    assert all(whole[f"core.{table}"] for table in ("sessions", "turns", "feedback", "row_changes", "tools"))
    assert all(each == whole for each in others)


@pytest.mark.parametrize("seed", range(2))
def test_conversations_of_one_log_that_are_alike_give_the_same_in_any_parts(
        seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole, *others = rows_by_parts(one_log(random.Random(seed)), empty(Declaration), tmp_path, monkeypatch)
    reasons = {row[3] for row in whole["decisions"]}
    assert {"same_conversation", "maybe_same_conversation", "conflicting_link", "repeated_history", "orphan_result"} <= reasons
    assert not any("###STOP###" in (turn[7] or "") for turn in whole["core.turns"])
    assert all(each == whole for each in others)


def one_log(chance: random.Random) -> pl.DataFrame:
    """Conversations of one log in a few words: single ones, requests with the history so far, forks that share a call's id,
    records that were delivered twice, results without a call, ids that links replace, opinions on all."""
    rows: list[dict[str, Any]] = []
    for number in range(40):
        name, at, parts_of = f"s{number}", 1_700_000_000 + 3000 * number, _parts(chance, number)
        if number % 5 == 0:   # each request anew, with all before it
            for end in range(2, len(parts_of) + 1, 2):
                rows += _record(f"{name}-{end}", f"r{number}-{end}", at + 20 * end, parts_of[:end])
        elif number % 5 == 1:   # a fork
            rows += _record(name, f"r{number}", at, parts_of)
            rows += _record(f"{name}-again", f"f{number}", at + 500, [*parts_of[:-1], ("message", "user", f"no {number}")])
        elif number % 5 == 2:   # under several names
            rows += _record(f"alias-{number}", f"r{number}", at, parts_of)
            rows += [_event(f"l{number}-{n}", "link", name if n else f"other-{number}", at, value=f"alias-{number}")
                     for n in range(2 if number % 2 else 1, -1, -1)]
        else:
            rows += _record(name, f"r{number}", at, parts_of)
            if number % 2:
                rows += _record(name, f"r{number}b", at, parts_of)
        rows.append(_event(f"o{number}", "feedback", name, at + 900, name="rating", value=str(chance.randrange(5))))
        rows.append(_event(f"c{number}", "row_change", None, at, name="update", tool="orders", arguments=f'{{"id":{number}}}',
                           value=f'{{"before":{{"n":{number}}},"after":{{"n":{chance.random()}}}}}'))
    return frame(Event, [Event(**row) for row in rows]).sample(fraction=1.0, shuffle=True, seed=chance.randrange(1000))


def _parts(chance: random.Random, number: int) -> list[tuple[str, str | None, str]]:
    spoken: list[tuple[str, str | None, str]] = []
    for turn in range(chance.randrange(2, 5)):
        spoken += [("message", "user", f"please look at thing {number * chance.randrange(9)} {turn} ###STOP###"),
                   ("message", "assistant", f"it is {chance.randrange(9)} of {number}")]
    if number % 5 != 0:
        spoken[1:1] = [("call", None, f"call_{number:04d}_0123456789"), ("result", None, f"call_{number:04d}_0123456789")]
    if number % 4 == 3:
        spoken.append(("result", None, f"call_{number:04d}_9999999999"))
    return spoken


def _record(session: str, record: str, at: int, spoken: list[tuple[str, str | None, str]]) -> list[dict[str, Any]]:
    rows = []
    for place, (kind, role, text) in enumerate(spoken):
        call = {} if kind == "message" else {"call_id": text, "tool": "look", "name": None}
        given = {"arguments": f'{{"thing":"{text[-12:]}"}}'} if kind == "call" else {"content": f"seen {text}"}
        rows.append(_event(f"{record}-{place}", kind, session, at + place, record_id=record, position=place, role=role,
                           **(call | (given if call else {"content": text}))))
    return rows


def _event(event_id: str, kind: str, session: str | None, at: int, **more: Any) -> dict[str, Any]:
    return dict.fromkeys(Event.model_fields) | {
        "event_id": event_id, "record_id": event_id, "file_id": "f", "source": "main", "format": "x", "kind": kind,
        "session_id": session, "position": 0, "happened_at": datetime.fromtimestamp(at, UTC)} | more
