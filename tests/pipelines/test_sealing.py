"""The ledger of epochs: sealed by arrivals, taken over by other runs, and rid of who is forgotten."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from extractors.tasks.sealed import TIED
from pipelines.building.sealing import ENOUGH, ledger_of, rename_sealed, seal_epoch, seal_sides, take_over_sides
from pipelines.settings import Settings
from warehouse.errors import InputError
from warehouse.records import SealedSide, frame
from warehouse.store import Store


def sides(*names: str, first: str = "", split: str = "train") -> pl.DataFrame:
    return frame(SealedSide, [
        SealedSide(session_id=name, service="desk", first_session_id=first or name, component=first or name, split=split,
                   method="component") for name in names])


def names(begin: int, end: int) -> pl.Series:
    return pl.Series("session_id", [f"s{n:03}" for n in range(begin, end)])


@pytest.fixture
def given(tmp_path: Path) -> Settings:
    return Settings(logs=(), out=str(tmp_path / "out"))


def test_few_sessions_stay_open_and_each_later_arrival_is_an_epoch(given: Settings) -> None:
    with Store.open(given.warehouse) as store:
        seal_epoch(store, given, names(0, ENOUGH - 1))
        assert store.count("raw.epochs") == 0
        seal_sides(store, sides("s000"))
        assert store.count("raw.sides") == 0, "what is not sealed has no side for good"
        seal_epoch(store, given, names(0, ENOUGH))
        seal_epoch(store, given, names(0, ENOUGH))
        version = store.version("raw.epochs")
        seal_epoch(store, given, names(50, ENOUGH + 3))
        assert store.version("raw.epochs") != version, "stages that read it see that it grew"
        assert store.table("raw.epochs")["epoch"].value_counts(sort=True).rows() == [(1, ENOUGH), (2, 3)]
        seal_sides(store, sides("s000", "s101", split=TIED))
        assert ledger_of(store).drop_nulls().select("session_id", "epoch", "split").rows() == [
            ("s000", 1, TIED), ("s101", 2, TIED)]


def test_another_run_takes_a_ledger_over_where_it_has_none(given: Settings, tmp_path: Path) -> None:
    with Store.open(given.warehouse) as store:
        seal_epoch(store, given, names(0, ENOUGH))
        seal_epoch(store, given, names(0, ENOUGH + 1))
        seal_sides(store, sides("s000", "s100"))
        store.publish()
    other = Settings(logs=(), out=str(tmp_path / "other"), ledger=given.out)
    with Store.open(other.warehouse) as store, Store.published(given.warehouse) as source:
        seal_epoch(store, other, names(0, ENOUGH + 1))
        take_over_sides(store, other)
        assert ledger_of(store).equals(ledger_of(source))
        seal_epoch(store, other, names(ENOUGH + 1, ENOUGH + 2))
        take_over_sides(store, other)
        assert ledger_of(store).height == ENOUGH + 2 and ledger_of(store)["epoch"].max() == 3
    with pytest.raises(InputError, match="--ledger"):
        given.model_copy(update={"ledger": str(tmp_path / "nowhere")}).checked()


def test_what_is_named_after_a_forgotten_session_is_named_after_the_next(given: Settings) -> None:
    with Store.open(given.warehouse) as store:
        seal_epoch(store, given, names(0, ENOUGH))
        seal_epoch(store, given, pl.Series(["a"]))
        seal_sides(store, pl.concat([sides("s001", "a", "s007", first="s001", split="held_out"), sides("s002")]))
        rename_sealed(store, ["s001"])
        store.change("delete from raw.sides where session_id = 's001'")
        assert store.table("raw.sides").equals(pl.concat([
            sides("a", "s007", first="s007", split="held_out"), sides("s002")]).sort("session_id"))
