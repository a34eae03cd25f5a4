"""The world as of an instant, asked of the tables, is the world that a room sees."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from env_builder import world
from env_builder.world.history import instant
from tests.lockers import EPOCH, Logged
from warehouse.records import Tool, empty
from warehouse.store import Store


@pytest.mark.parametrize("fed", [False, True])
def test_the_tables_and_the_room_agree_at_every_instant(tmp_path: Path, fed: bool) -> None:
    logged = Logged(4, 80, shared=True)
    built = world.build(logged.sessions, logged.turns, empty(Tool), {}, logged.changes if fed else None)
    shared = built.facts.filter(built.facts["session_id"].is_null())
    with Store.open(tmp_path / "warehouse.duckdb") as store:
        store.replace("mart.facts", built.facts)
        for hours in (-5, 0, 3, 20, 55, 500):
            at = EPOCH + timedelta(hours=hours, seconds=1)
            found = {(kind, key): (value, known) for kind, key, value, known, *_ in store.world_at("main", at).iter_rows()}
            holds = {
                (row["entity_class"], row["key"]): (row["value"], row["derivation"]) for row in shared.iter_rows(named=True)
                if (row["valid_from"] is None or row["valid_from"] <= at) and (row["valid_to"] is None or at < row["valid_to"])}
            assert found == holds, instant(at)
        assert store.world_at("elsewhere", EPOCH).is_empty()
