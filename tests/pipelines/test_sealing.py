"""The ledger of epochs: sealed by arrivals, taken over by other runs, and rid of who is forgotten."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import polars as pl
import pytest

from extractors.tasks.sealed import TIED
from pipelines.building.sealing import ENOUGH, ledger_of, rename_sealed, seal, seal_epoch, seal_work, take_over
from pipelines.building.worlds import relearn
from pipelines.erasing.forgetting import forget
from pipelines.releases.releasing import registry_of
from pipelines.running.stage import carry_out
from pipelines.settings import Settings
from pipelines.stages import STAGES
from warehouse.errors import InputError
from warehouse.records import LearntProgram, SealedSide, WorkEventRow, WorkItemRow, frame
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
        seal(store, "raw.sides", sides("s000"))
        assert store.count("raw.sides") == 0, "what is not sealed has no side for good"
        seal_epoch(store, given, names(0, ENOUGH))
        seal_epoch(store, given, names(0, ENOUGH))
        version = store.version("raw.epochs")
        seal_epoch(store, given, names(50, ENOUGH + 3))
        assert store.version("raw.epochs") != version, "stages that read it see that it grew"
        assert store.table("raw.epochs")["epoch"].value_counts(sort=True).rows() == [(1, ENOUGH), (2, 3)]
        seal(store, "raw.sides", sides("s000", "s101", split=TIED))
        assert ledger_of(store).drop_nulls("split").select("session_id", "epoch", "split").rows() == [
            ("s000", 1, TIED), ("s101", 2, TIED)]


def put_work(store: Store, *items: tuple[str, ...]) -> None:
    """Put these pieces of work, each by its acts, in the place of those that are there; they end one after another."""
    day = datetime(2026, 3, 2, tzinfo=UTC)
    acts = sorted({ref for refs in items for ref in refs})
    store.replace("core.work_events", frame(WorkEventRow, [WorkEventRow(
        position=number, ref=ref, happened_at=day, entity_class="note", entity_id=ref, verb="note created", container="note",
        actor="", place="", thread="", addressees=[], texts=[], changes="[]", record="") for number, ref in enumerate(acts)]))
    store.replace("mart.work_items", frame(WorkItemRow, [WorkItemRow(
        work_item_id=refs[0], refs=list(refs), kind="", probability=1.0, success=None, opened_at=day,
        closed_at=day + timedelta(hours=number), reason="", slots="{}", votes="[]", corrections="[]")
        for number, refs in enumerate(items)]))


def test_acts_of_work_keep_their_side_when_more_work_comes(given: Settings) -> None:
    items = [(f"a{number:03}", f"b{number:03}") for number in range(ENOUGH + 20)]
    with Store.open(given.warehouse) as store:
        put_work(store, *items[:ENOUGH - 1])
        assert seal_work(store, given) == [] and store.count("raw.work_sides") == 0
        put_work(store, *items[:ENOUGH])
        assert seal_work(store, given) == []
        before = dict(store.table("raw.work_sides").iter_rows())
        assert Counter(before.values()) == {"train": 140, "validation": 20, "held_out": 40}
        put_work(store, *items[1:ENOUGH - 1], (*items[0], *items[ENOUGH - 1]), *items[ENOUGH:])
        assert seal_work(store, given) == ["a000"], "it has acts of train and of what is held out"
        after = dict(store.table("raw.work_sides").iter_rows())
        assert {ref: after[ref] for ref in before} == before
        assert [after[first] for first, _ in items[-4:]] == ["held_out"] * 4 and after[items[ENOUGH][0]] == "train"
        put_work(store, *items[5:])
        seal_work(store, given)
        assert store.count("raw.work_sides") == 2 * (ENOUGH + 15), "acts that are no more have no side"


def test_another_run_takes_a_ledger_over_where_it_has_none(given: Settings, tmp_path: Path) -> None:
    with Store.open(given.warehouse) as store:
        seal_epoch(store, given, names(0, ENOUGH))
        seal_epoch(store, given, names(0, ENOUGH + 1))
        seal(store, "raw.sides", sides("s000", "s100"))
        store.publish()
    other = Settings(logs=(), out=str(tmp_path / "other"), ledger=given.out)
    with Store.open(other.warehouse) as store, Store.published(given.warehouse) as source:
        seal_epoch(store, other, names(0, ENOUGH + 1))
        take_over(store, other, "raw.sides")
        assert ledger_of(store).equals(ledger_of(source))
        seal_epoch(store, other, names(ENOUGH + 1, ENOUGH + 2))
        take_over(store, other, "raw.sides")
        assert ledger_of(store).height == ENOUGH + 2 and ledger_of(store)["epoch"].max() == 3
    with pytest.raises(InputError, match="--ledger"):
        given.model_copy(update={"ledger": str(tmp_path / "nowhere")}).checked()


def test_what_is_named_after_a_forgotten_session_is_named_after_the_next(given: Settings) -> None:
    with Store.open(given.warehouse) as store:
        seal_epoch(store, given, names(0, ENOUGH))
        seal_epoch(store, given, pl.Series(["a"]))
        seal(store, "raw.sides", pl.concat([sides("s001", "a", "s007", first="s001", split="held_out"), sides("s002")]))
        seal(store, "raw.word_groups", pl.DataFrame({
            "session_id": ["a", "s001", "s002", "s007"], "word_group": ["s001", "s001", "", "s001"]}))
        rename_sealed(store, ["s001"])
        assert dict(store.table("raw.word_groups").filter(pl.col("session_id") != "s001").iter_rows()) == {
            "a": "s007", "s002": "", "s007": "s007"}
        store.change("delete from raw.sides where session_id = 's001'")
        assert store.table("raw.sides").equals(pl.concat([
            sides("a", "s007", first="s007", split="held_out"), sides("s002")]).sort("session_id"))


N_USERS = 40
MINED = ("extract", "sessions", "starts", "code_tasks", "code_rooms", "world", "goals", "outcomes", "tasks")
"""Stages of the split and those that it stands on."""
DECIDED = ("raw.epochs", "raw.sides", "mart.goals", "mart.tasks", "mart.families", "mart.leakage", "mart.decisions")


def talk(number: int) -> str:
    """Return the line of a conversation about a thing that two users share with nobody."""
    user, thing = f"user_{1000 + 7 * number % N_USERS}", f"lamp{2000 + number // 2}"
    calls = [{"id": f"c{number}", "type": "function", "function": {
        "name": "paint", "arguments": json.dumps({"user": user, "thing": thing})}}]
    answer, day = json.dumps({"user": user, "thing": thing, "painted": number}), f"2026-03-{1 + number // 10:02}"
    return json.dumps({"session_id": f"s{number * 37 % 1000:03}", "created_at": f"{day}T10:00:00Z", "messages": [
        {"role": "user", "content": f"I am {user}, please paint {thing} in colour number {number}"},
        {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "tool", "tool_call_id": f"c{number}", "content": answer},
        {"role": "assistant", "content": "It is painted."}]}) + "\n"


def mined(given: Settings) -> dict[str, pl.DataFrame]:
    """Run the stages, and return what they decided."""
    for stage in STAGES:
        if stage.name in MINED:
            carry_out(stage, given, with_samples=False)
    with Store.open(given.warehouse, write=False) as store:
        return {table: store.table(table) for table in DECIDED}


def sides_of(tables: dict[str, pl.DataFrame]) -> dict[str, str]:
    return dict(tables["raw.sides"].select("session_id", "split").iter_rows())


@pytest.mark.slow
def test_nights_give_what_one_build_with_their_ledger_gives_and_forgetting_moves_nobody_else(tmp_path: Path) -> None:
    inbox = tmp_path / "logs"
    inbox.mkdir()
    given = Settings(logs=(str(inbox),), out=str(tmp_path / "out"), privacy=False)
    nights = []
    for name, begin, end in (("c", 0, 110), ("a", 110, 118), ("b", 118, 126)):
        (inbox / f"{name}.jsonl").write_text("".join(map(talk, range(begin, end))), "utf-8")
        nights.append(mined(given))
    assert nights[2]["raw.epochs"]["epoch"].value_counts().sort("epoch")["count"].to_list() == [110, 8, 8]
    for one, two in pairwise(nights):
        assert sides_of(one).items() <= sides_of(two).items()
        assert set(one["mart.tasks"]["task_id"]) <= set(two["mart.tasks"]["task_id"])
    assert {"train", "validation", "held_out"} <= set(sides_of(nights[2]).values())
    with Store.open(given.warehouse) as store:
        store.publish()
    (tmp_path / "one").mkdir()
    (tmp_path / "one" / "all.jsonl").write_text("".join(map(talk, reversed(range(126)))), "utf-8")
    alone = given.model_copy(update={"logs": (str(tmp_path / "one"),), "out": str(tmp_path / "alone")})
    whole = mined(alone.model_copy(update={"out": str(tmp_path / "whole"), "ledger": given.out}))
    assert [table for table in DECIDED[:-1] if not whole[table].equals(nights[2][table])] == []
    assert not mined(alone)["mart.tasks"].equals(whole["mart.tasks"]), "without the ledger it is another split"
    forget(given, registry_of(given), "user_1007")
    left = mined(given)
    gone = sides_of(nights[2]).keys() - sides_of(left).keys()
    assert gone and sides_of(left).items() <= sides_of(nights[2]).items()
    names_left = pl.concat([left["raw.epochs"]["session_id"], *left["raw.sides"].select("component", "first_session_id")])
    assert not gone & {*names_left}


def test_programs_are_forgotten_by_service_and_their_partition_is_made_again(given: Settings) -> None:
    programs = frame(LearntProgram, [LearntProgram(
        service=service, tool="hire", epoch=1, n_examples=400, grounds="", learnt="{}", n_against=0, fidelity=None,
        abstains=None, cassette_fidelity=None, cassette_abstains=None) for service in ("yard", "desk")])
    with Store.open(given.warehouse) as store:
        store.append("raw.programs", programs)
        store.append("raw.partitions", pl.DataFrame([
            {"stage": stage, "service": service, "digest": "", "decisions": "[]"}
            for stage in ("world", "goals") for service in ("yard", "desk")]))
        store.change("insert into raw.stages select unnest(['world', 'goals']), '', '', 0, '{}', now()")
        assert relearn(store, ["yard"]) == 1
        assert store.read("select stage from raw.stages")["stage"].to_list() == ["goals"], "the stage runs again"
        assert store.table("raw.programs")["service"].to_list() == ["desk"]
        assert store.read("select stage, service from raw.partitions order by all").rows() == [
            ("goals", "desk"), ("goals", "yard"), ("world", "desk")]
        assert relearn(store, []) == 1 and store.count("raw.programs") == 0
