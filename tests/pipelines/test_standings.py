"""Where tasks stand by what policies did in them, and what follows: the regression set, and what a person looks at."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.reviewing.queue import queue
from pipelines.rollouts.standings import FEWEST_SOLVED, FEWEST_UNSOLVED, of_standing, standings, unsolved_of
from tests.pipelines.conftest import Traceroom
from warehouse.store import Store


def row(task_id: str, n_succeeded: int, n: int, policy: str = "a") -> dict[str, Any]:
    return {"policy": policy, "task_id": task_id, "n": n, "n_succeeded": n_succeeded}


def folder_of(out: Path, rows: list[dict[str, Any]]) -> Path:
    folder = out / "rollouts" / "shop-refunds"
    folder.mkdir(parents=True)
    (folder / "difficulty.jsonl").write_text("".join(
        json.dumps({**each, "rate": 0.5, "difficulty_band": None}) + "\n" for each in rows), "utf-8")
    return folder


@pytest.mark.parametrize(("rows", "name"), [
    ([row("t", 4, 4)], "solved"), ([row("t", 3, 3)], "open"), ([row("t", 4, 5)], "open"),
    ([row("t", 4, 4), row("t", 2, 2, "b")], "open"), ([row("t", 4, 4), row("t", 0, 4, "b")], "open"),
    ([row("t", 0, 7)], "open"), ([row("t", 0, 8)], "unsolved"), ([row("t", 0, 4), row("t", 0, 4, "b")], "unsolved")])
def test_a_task_is_solved_by_all_or_by_none_or_open(rows: list[dict[str, Any]], name: str) -> None:
    assert [one.name for one in standings(rows)] == [name]


@given(st.lists(st.tuples(st.sampled_from("xyz"), st.sampled_from("abc"), st.integers(0, 9), st.integers(0, 9))))
def test_no_success_is_in_an_unsolved_task_and_no_failure_in_a_solved_one(tries: list[tuple[str, str, int, int]]) -> None:
    rows = [row(task_id, good, good + bad, policy) for task_id, policy, good, bad in tries if good + bad]
    for one in standings(rows):
        if one.name == "solved":
            assert one.n == one.n_succeeded >= FEWEST_SOLVED * one.n_policies
        if one.name == "unsolved":
            assert one.n_succeeded == 0 and one.n >= FEWEST_UNSOLVED


def test_what_no_policy_solves_is_reviewed_first_until_somebody_settles_it(lamp_run: Path, tmp_path: Path) -> None:
    with Store.published(lamp_run / "warehouse.duckdb") as store:
        usual = queue(store, 50)
        published = store.read("select subject from mart.decisions where stage = 'verify' and kept order by subject")["subject"]
        folder_of(tmp_path, [row(published[0], 0, FEWEST_UNSOLVED), row(published[1], 4, 4), row("gone", 0, 9)])
        first, *others = queue(store, 50, unsolved=unsolved_of(tmp_path))
    assert first.task_id == published[0] and "8 episodes of 1 policies" in first.why
    assert others == [item for item in usual if item.session_id != first.session_id][:49]
    assert of_standing(tmp_path / "rollouts" / "shop-refunds", "open", published) == list(published[2:])


def test_the_regression_set_is_what_all_policies_solve(lamp_run: Path, tmp_path: Path, traceroom: Traceroom) -> None:
    out = Path(shutil.copytree(lamp_run, tmp_path / "out"))
    path = out / "environments" / "shop-refunds"
    task_ids = [json.loads(line)["task_id"] for line in (path / "tasks.jsonl").read_text("utf-8").splitlines()]
    folder_of(out, [row(task_ids[0], 4, 4), row(task_ids[1], 0, 8)])
    listed = json.loads(traceroom("tasks", path, "--json").stdout)
    assert [each.get("standing") for each in listed[:3]] == ["solved", "unsolved", None]
    other = tmp_path / "others"
    shutil.copytree(out / "rollouts" / "shop-refunds", other)
    done = traceroom("test", path, "--policy", "oracle", "--standing", "solved", "--out", other, "--json")
    assert done.returncode == 0, done.stderr
    episodes = [json.loads(line) for line in (other / "trajectories.jsonl").read_text("utf-8").splitlines()]
    assert [each["extra"]["traceroom"]["task_id"] for each in episodes] == [task_ids[0]]
    done = traceroom("rollout", path, "--policy", "oracle", "--standing", "unsolved", "--task", task_ids[0])
    assert done.returncode == 2 and "--standing" in done.stderr
