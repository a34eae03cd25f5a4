"""Steps on pages: each row is one action after the ones before it; rewards are there where something graded the episode."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder.exports import DatasetSource, page_steps
from warehouse.records import SPLITS, Outcome, SiteStepRow, Task, Tool, Turn, empty, frame

BEGAN = datetime(2026, 3, 2, tzinfo=UTC)


def source(lengths: list[int], is_graded: bool, discount: float) -> DatasetSource:
    """Return episodes of so many steps; of every third nobody knows that it was right."""
    rows, tasks = [], []
    for number, length in enumerate(lengths):
        task_id, session, split = f"t{number}", f"s{number}", SPLITS[number % 3]
        tasks.append(Task.model_validate({
            "task_id": task_id, "service": "site", "family": "work", "slots": "{}", "goal": f"goal {number}",
            "segment_of": None, "derived_from": None, "session_ids": [session], "starts_at": None, "split": split,
            "succeeded_session_ids": [] if number % 4 == 3 else [session], "difficulty": None}))
        rows += [SiteStepRow(
            session_id=session, host="site", position=place, task_id=task_id, split=split, goal=f"goal {number}",
            happened_at=BEGAN + timedelta(seconds=place), tool="browser_click", arguments=json.dumps({"target": f"e{place}"}),
            content="", is_error=False, tier="derived", observation=f"page {place}", candidates=json.dumps([
                {"ref": f"e{each}", "role": "link", "name": f"to {each}", "positive": each == place}
                for each in range(length)]), element=json.dumps({"xpath": f"/a[{place}]"}) if place % 2 else None)
            for place in range(length)]
    grades = pl.DataFrame({"session_id": [f"s{number}" for number in range(len(lengths))]}, {"session_id": pl.String})
    return DatasetSource("site-x", None, frame(Task, tasks), empty(Turn), empty(Outcome), empty(Tool),
                         grades=grades.with_columns(reward=pl.lit(1.0)) if is_graded else None, discount=discount,
                         page_steps=frame(SiteStepRow, rows).reverse())


@given(st.lists(st.integers(1, 5), max_size=6), st.booleans(), st.sampled_from((1.0, 0.5)))
def test_every_step_of_what_was_right_is_a_row_in_its_order(lengths: list[int], is_graded: bool, discount: float) -> None:
    with TemporaryDirectory() as folder:
        page_steps.write(Path(folder), source(lengths, is_graded, discount))
        rows = {split: [json.loads(line) for line in (Path(folder) / f"steps.{split}.jsonl").read_text().splitlines()]
                for split in SPLITS}
    for number, length in enumerate(lengths):
        own = [row for row in rows[SPLITS[number % 3]] if row["session_id"] == f"s{number}"]
        assert len(own) == (0 if number % 4 == 3 else length)
        for place, row in enumerate(own):
            to_come = length - place - 1
            assert (row["step"], row["observation"], row["goal"]) == (place, f"page {place}", f"goal {number}")
            assert row["history"] == [each["action"] for each in own[:place]] and row["action"]["name"] == f"to {place}"
            assert row["action"]["element"] == ({"xpath": f"/a[{place}]"} if place % 2 else None)
            assert row["reward"] == ((0.0 if to_come else 1.0) if is_graded else None)
            assert row["return"] == (pytest.approx(discount ** to_come) if is_graded else None)
    assert sum(map(len, rows.values())) == sum(length for number, length in enumerate(lengths) if number % 4 != 3)
