"""The benchmark of serving counts what it says it counts."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from env_builder.runtime import Environment
from env_builder.runtime.relevance import ids_in
from tests.conftest import ROOT
from tests.rooms import TASK, write_room

sys.path.insert(0, str(ROOT / "benchmarks"))

import serving
import serving_containers

SOLVED = {TASK: [{"tool": "open_door", "arguments": {"door": "7"}}, {"say": "It is open."}]}


def test_a_state_that_is_not_the_first_one_is_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room = Environment.load(write_room(tmp_path / "room"))
    figures = serving.resets(room, SOLVED, 250)
    assert figures["reset_differences"] == 0 and figures["resets"] == 250

    reset = Environment.reset

    def leaks(self: Environment, task_id: str | None) -> None:  # a room that keeps what the last episode did
        done = self.difference()["write_calls"] or self.difference()["documents"]
        reset(self, task_id)
        if done:
            self.call("open_door", {"door": "7"})

    monkeypatch.setattr(Environment, "reset", leaks)
    assert serving.resets(room, SOLVED, 250)["reset_differences"] == 250


def test_a_solution_that_is_worth_less_than_1_stops_it(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="not worth 1"):
        serving.timed(Environment.load(write_room(tmp_path / "room")), SOLVED, graded=True)


@pytest.mark.slow
def test_what_is_kept_is_dropped_and_forks_are_timed_in_both_worlds() -> None:
    ids_in("[1]")
    serving.forget()
    assert ids_in.cache_info().currsize == 0
    figures = serving.forks(0.002)
    assert set(figures) == {f"fork_{quantile}_us{world}" for quantile in ("p50", "p99") for world in ("", "_1mb", "_large")}
    assert 0 < figures["fork_p50_us"] <= figures["fork_p99_us"]


@pytest.mark.docker
@pytest.mark.slow
def test_containers_are_measured(base_image: str, tmp_path: Path) -> None:
    room, grader = write_room(tmp_path / "environments" / "hall"), tmp_path / "rewards" / "hall"
    grader.mkdir(parents=True)
    (grader / "solutions.jsonl").write_text(json.dumps({"task_id": TASK, "steps": SOLVED[TASK]}) + "\n", "utf-8")
    figures = serving_containers.figures(room, runs=1)
    assert figures["base_start_ms"] > 0 and figures["first_line_ms"] <= figures["cold_start_ms"]
    assert figures["cold_start_ratio"] == pytest.approx(figures["cold_start_ms"] / figures["base_start_ms"], rel=0.02)
    assert 0 < figures["warm_start_ms"] <= figures["warm_start_max_ms"]
    assert (figures["layers"], figures["layers_shared"], figures["layers_touched"]) == (3, 2, 0)
