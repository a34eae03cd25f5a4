"""The training cut: nothing that held-out sessions alone hold is in what goes out."""

from __future__ import annotations

import json
import re
from pathlib import Path

import polars as pl
import pytest

from env_builder.exports.adapters import play
from env_builder.exports.kit import kit_of, lay
from pipelines.building.cut import cut, left_out
from warehouse.store import Store

WORD = re.compile(r"[^\W_][\w.:@#-]*\w")
LEAST = 4
"""Signs of a word that is looked for: shorter ones are anywhere."""

OUR_OWN = {"records", "family", "others", "order", "speaking", "hour"}
"""Words of ours: a kind of app, of check and of time, and what the audit and checks say."""


@pytest.mark.slow
def test_no_word_of_held_out_sessions_alone_is_in_a_cut(sample_run: Path, sample_environment: Path, tmp_path: Path) -> None:
    kit = cut(sample_environment, ("train", "validation"))
    assert {task["split"] for task in kit.tasks} <= {"train", "validation"} and kit.tasks
    assert cut(sample_environment, ("validation", "train")) == kit
    held, known = _words(sample_run)
    only = {word for word in held - known - OUR_OWN if len(word) >= LEAST}
    assert len(only) > 100
    published = kit_of(sample_environment, sample_run / "rewards" / sample_environment.name)
    assert published.digest != kit.digest
    assert len(only & _said(published.room, published.grader)) > 20, "there is something to cut"
    assert sorted(only & _said(kit.room, kit.grader)) == []
    asked = {row["task_id"] for row in published.tasks if row["split"] != "held_out"}
    left = left_out(sample_environment, kit, ("train", "validation"))
    assert set(left["subject"]) == asked - {row["task_id"] for row in kit.tasks}
    lay(kit, tmp_path)
    room = play.open(tmp_path)
    assert {room.begin(task["task_id"]).play(room.solution(task["task_id"])).reward() for task in room.tasks} == {1.0}


def test_all_sides_are_the_environment_as_it_stands(sample_run: Path, sample_environment: Path) -> None:
    kit = cut(sample_environment, ("train", "validation", "held_out"))
    assert (kit.room, kit.grader) == (sample_environment, sample_run / "rewards" / sample_environment.name)


def test_row_changes_that_a_left_session_may_have_made_are_left() -> None:
    from datetime import UTC, datetime, timedelta

    from pipelines.building.cut import _elsewhere

    noon = datetime(2026, 1, 1, 12, tzinfo=UTC)
    changes = pl.DataFrame({
        "change_id": ["before", "within", "of another row", "just after", "later"],
        "happened_at": [noon + timedelta(minutes=minutes) for minutes in (-60, 0, 0, 5.5, 60)],
        "key": ['{"id":"A-1"}', '{"id":"A-1"}', '{"id":"B-2"}', '{"id":"A-1"}', '{"id":"A-1"}']})
    sessions = pl.DataFrame({"started_at": [noon - timedelta(minutes=5)], "ended_at": [noon + timedelta(minutes=5)]})
    turns = pl.DataFrame({"arguments": ['{"order":"A-1"}', None], "content": ['{"state":"open"}', None]})
    left = _elsewhere(changes, sessions, turns)
    assert sorted(left["change_id"]) == ["before", "later", "of another row"]
    assert left.columns == changes.columns


def test_an_environment_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(Exception, match="nowhere"):
        cut(tmp_path / "environments" / "nowhere", ("train",))


def _words(run: Path) -> tuple[set[str], set[str]]:
    """Words of the sessions of held-out tasks; of all others, and of what tools are declared as."""
    with Store.published(run / "warehouse.duckdb") as store:
        tasks = store.read("select session_ids, split from mart.tasks")
        turns = store.read("select session_id, content, arguments, tool from core.turns")
        declared = store.read("select description, input_schema from core.tools where declared")
    outside = set(tasks.filter(pl.col("split") == "held_out")["session_ids"].explode())
    sides: dict[bool, set[str]] = {True: set(outside), False: set(tasks["session_ids"].explode()) - outside}
    for session_id, *texts in turns.iter_rows():
        for text in texts:
            sides[session_id in outside].update(WORD.findall(text or ""))
    sides[False].update(word for row in declared.iter_rows() for text in row for word in WORD.findall(text or ""))
    return sides[True], sides[False]


def _said(*folders: Path) -> set[str]:
    """Words of all values in all files: the names of fields and the runtime are ours."""
    found: set[str] = set()
    for path in (path for folder in folders for path in folder.rglob("*.json*") if path.name != "rubric.schema.json"):
        for line in [path.read_text("utf-8")] if path.suffix == ".json" else path.read_text("utf-8").splitlines():
            for text in _values(json.loads(line)):
                found.update(WORD.findall(text))
    return found


def _values(value: object) -> list[str]:
    if isinstance(value, dict):
        return [text for each in value.values() for text in _values(each)]
    if isinstance(value, list):
        return [text for each in value for text in _values(each)]
    return [value] if isinstance(value, str) else []
