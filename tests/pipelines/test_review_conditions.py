"""Conditions that the policy states and the logs do not settle: which are open, what to review, and what a case shows."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pipelines.inspection.views import StoreSource
from pipelines.reviewing.cases import case_of
from pipelines.reviewing.conditions import AGAINST, TO_REVIEW, UNSETTLED, conditions_of_case, open_conditions
from pipelines.reviewing.queue import conditions_to_settle, queue
from tests.pipelines.conftest import Traceroom
from warehouse.catalogs import published_path
from warehouse.records import ConditionRow, frame
from warehouse.store import Store

SENTENCE = "Sealed doors may not be opened."


def row(name: str, status: str, declined: list[str], acted: list[str], sentence: str = SENTENCE) -> dict[str, object]:
    return {"condition_id": name, "service": "main", "tool": "open", "status": status, "condition": f"look.{name} is sealed",
            "field": f"look.{name}", "sentence": sentence, "declined_session_ids": declined, "acted_session_ids": acted}


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return a warehouse with four conditions and a step."""
    made = Store.open(tmp_path / "warehouse.duckdb")
    made.replace("mart.conditions", frame(ConditionRow, [
        row("few", "stated", ["a", "b", "c"], ["d", "e", "f"]), row("settled", "stated", ["z"], []),
        row("learnt", "borne_out", ["a", "b"], ["f"]), row("silent", "borne_out", ["a"], ["f"], sentence=""),
        row("first", "step", [], [])]))
    return made


def test_stated_conditions_come_with_tasks_and_sessions_of_both_kinds(store: Store) -> None:
    waiting = {"c": ["t1", "t2"], "d": ["t1"], "x": ["t9"]}
    few, learnt = open_conditions(store, waiting, list("abcdef"))
    assert (few.condition_id, few.why, few.n_tasks, few.n_declined, few.n_acted) == ("few", UNSETTLED, 2, 3, 3)
    assert few.session_ids == ["d", "c", "e", "a"] and len(few.session_ids) == TO_REVIEW, "waiting ones first, both kinds"
    assert (learnt.why, learnt.session_ids) == (AGAINST, ["f"]), "who acted against what the logs bear out"


def test_a_condition_whose_sessions_are_settled_is_closed(store: Store) -> None:
    assert [each.condition_id for each in open_conditions(store, {}, ["a"])] == ["few"]
    assert open_conditions(store, {}, []) == []


def test_a_case_shows_the_sentences_that_apply_to_it(store: Store) -> None:
    source = StoreSource(store)
    shown = conditions_of_case(source, "a")
    assert [(each["sentence"], each["is_settled"], each["n_acted"]) for each in shown] == [
        (SENTENCE, False, 3), (SENTENCE, True, 1)]
    assert conditions_of_case(source, "nobody") == []


def test_the_command_prints_the_sentence_and_the_sessions(ran: Path, tmp_path: Path, traceroom: Traceroom) -> None:
    out = tmp_path / "out"
    shutil.copytree(ran, out)
    with Store.published(out / "warehouse.duckdb") as published:
        first = queue(published, 1)[0].session_id
        expected = [each.condition_id for each in conditions_to_settle(published)]
    database = Store.open(published_path(out / "warehouse.duckdb"))
    rows = database.table("mart.conditions").vstack(frame(ConditionRow, [row("few", "stated", [first], [])]))
    database.replace("mart.conditions", rows)
    database.close()
    done = traceroom("review", out, "--limit", "2", "--export", tmp_path / "cases.jsonl", "--json")
    document = json.loads(done.stdout)
    assert {each["condition_id"] for each in document["conditions"]} == {*expected, "few"}
    (stated,) = [each for each in document["conditions"] if each["condition_id"] == "few"]
    assert stated["session_ids"] == [first] and stated["n_tasks"] >= 1 and stated["sentence"] == SENTENCE
    assert SENTENCE in done.stderr and "1 declined, 0 acted" in done.stderr
    exported = [json.loads(line) for line in (tmp_path / "cases.jsonl").read_text().splitlines()]
    assert [each["sentence"] for each in exported[0]["conditions"] if each["tool"] == "open"] == [SENTENCE]
    with Store.published(out / "warehouse.duckdb") as published:
        assert SENTENCE in [each["sentence"] for each in case_of(StoreSource(published), first).conditions]
