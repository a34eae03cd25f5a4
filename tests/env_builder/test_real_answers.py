"""Accepted answers of real tools become answers on record of one session, or have a reason why not."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import polars as pl
import pytest

from env_builder.real_answers import with_answers
from env_builder.rooms import Rows

DAY = datetime(2026, 3, 9, tzinfo=UTC)
READ: dict[str, Any] = {"tool": "look", "effect": "read", "rules": [{"rule": "recorded"}], "relation": {}, "class": None}
PUT = READ | {"tool": "put", "effect": "write", "relation": {"put": "acts"}}
ON_RECORD: dict[str, Any] = {
    "tool": "look", "arguments": '{"id":1}', "content": "8", "is_error": False, "from": None, "to": None, "session": None,
    "after": [], "effects": [], "event": "e"}
TASKS = pl.DataFrame({"session_ids": [["s1", "s2"]], "starts_at": [DAY]})


SHOWS = READ | {"rules": [{"rule": "document", "argument": "id", "class": "look", "before": "", "after": ""}]}
FACT = {"class": "look", "key": "1", "value": '{"a": 1}', "from": None, "to": None, "session": None}


def answers(
    *sequences: list[tuple[str, int, str]], session_id: str = "s1", accepted: bool = True, n_looks: int = 0
) -> pl.DataFrame:
    """Return events of sequences of (tool, id, content), each decided a second after the one before it; `n_looks`: how many at
    the end of each are looks."""
    return pl.DataFrame([{
        "event_id": f"{number}.{place}", "file_id": "f", "session_id": session_id, "call_id": f"c{number}", "position": place,
        "happened_at": DAY.replace(second=number), "tool": tool, "arguments": json.dumps({"id": key}), "content": content,
        "is_error": "error" in content, "name": "Ada", "value": json.dumps({
            "accepted": accepted, "as_of": "start", **({"look": True} if place >= len(sequence) - n_looks else {})})}
        for number, sequence in enumerate(sequences) for place, (tool, key, content) in enumerate(sequence)])


def taken(decided: pl.DataFrame) -> tuple[list[dict[str, Any]], list[str]]:
    rows, decisions = with_answers(Rows([], [ON_RECORD], [READ, PUT]), TASKS, decided)
    return [row for row in rows.recorded if row is not ON_RECORD], decisions["reason"].to_list()


def test_an_answer_holds_for_its_session_after_the_write_calls_before_it() -> None:
    rows, reasons = taken(answers([("look", 2, "9"), ("put", 2, "error: full")]))
    assert reasons == ["answer_taken"]
    assert [(row["session"], row["tool"], row["content"], row["is_error"], row["after"]) for row in rows] == [
        ("s1", "look", "9", False, []), ("s1", "put", "error: full", True, [])]


def test_what_worked_and_may_have_changed_something_is_not_taken() -> None:
    rows, reasons = taken(answers([("look", 2, "9"), ("put", 1, "done"), ("put", 2, "error: full")]))
    assert [row["tool"] for row in rows] == ["look"] and reasons == ["answer_changes_unseen"]


@pytest.mark.parametrize(("decided", "reason"), [
    (answers([("look", 1, "8")]), "answer_known"), (answers([("look", 1, "9"), ("put", 1, "done")]), "answered_otherwise"),
    (answers([("put", 1, "done")]), "answer_changes_unseen"),
    (answers([("look", 2, "9")], session_id="s9"), "no_task_of_session"),
    (answers([("look", 2, "9")], accepted=False), "answer_declined")])
def test_what_is_not_taken_has_a_reason(decided: pl.DataFrame, reason: str) -> None:
    assert taken(decided) == ([], [reason])


@pytest.mark.parametrize(("relation", "shown", "effects"), [
    ("changes", '{"a": 2}', [{"class": "look", "key": "1", "value": '{"a": 2}'}]), ("changes", '{"a": 1}', None),
    ("keeps", '{"a": 1}', None), ("changes", "error: gone", None)])
def test_what_looks_show_is_what_a_call_that_worked_changed(relation: str, shown: str, effects: Any) -> None:
    """A call that changed nothing of what was looked at changed something else."""
    put = PUT | {"relation": {"look": relation}}
    decided = answers([("put", 1, "done"), ("look", 1, shown)], n_looks=1)
    rows, decisions = with_answers(Rows([FACT], [], [SHOWS, put]), TASKS, decided)
    assert [row["effects"] for row in rows.recorded] == ([] if effects is None else [effects])
    assert decisions["reason"].to_list() == ["answer_changes_unseen" if effects is None else "answer_taken"]


def test_all_that_a_call_names_is_looked_at() -> None:
    put = PUT | {"relation": {"look": "changes"}}
    decided = answers([("put", 1, "done"), ("look", 1, '{"a": 2}')], n_looks=1).with_columns(
        pl.when(pl.col("tool") == "put").then(pl.lit('{"id": 1, "to": "two"}')).otherwise("arguments").alias("arguments"))
    other = FACT | {"key": "two"}
    for facts, n_taken in (([FACT], 1), ([FACT, other], 0)):
        rows, _ = with_answers(Rows(facts, [], [SHOWS, put]), TASKS, decided)
        assert len(rows.recorded) == n_taken, "it may have changed the other one, too"


def test_looks_show_what_the_last_call_changed_alone() -> None:
    put = PUT | {"relation": {"look": "changes"}}
    decided = answers([("put", 1, "done"), ("put", 2, "done"), ("look", 1, '{"a": 2}')], n_looks=1)
    rows, decisions = with_answers(Rows([FACT], [], [SHOWS, put]), TASKS, decided)
    assert rows.recorded == [] and decisions["reason"].to_list() == ["answer_changes_unseen"]


def test_the_latest_decision_on_the_same_calls_counts() -> None:
    first, later = answers([("look", 2, "9")]), answers([("look", 2, "7")], [("look", 2, "7")])
    rows, _ = taken(pl.concat([first, later.filter(pl.col("call_id") == "c1")]))
    assert [row["content"] for row in rows] == ["7"]


def test_nothing_changes_without_answers() -> None:
    rows = Rows([], [ON_RECORD], [READ, PUT])
    same, decisions = with_answers(rows, TASKS, answers().clear())
    assert same is rows and decisions.is_empty()


def test_a_read_after_a_write_call_shows_what_never_was() -> None:
    on_record = ON_RECORD | {"tool": "put", "arguments": '{"id":3}', "content": "done"}
    rows, decisions = with_answers(
        Rows([], [ON_RECORD, on_record], [READ, PUT]), TASKS, answers([("put", 3, "done"), ("look", 3, "9")]))
    assert len(rows.recorded) == 2 and decisions["reason"].to_list() == ["answer_of_no_real_state"]
