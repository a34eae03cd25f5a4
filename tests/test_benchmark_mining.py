"""The mining benchmark: its scores against values known by hand, and its figures on a real data set."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.asked import both_ways, of_names
from benchmarks.mining_data import load
from benchmarks.mining_scores import ari, atoms, f1_of, interval, matched
from tests.conftest import ROOT
from tests.endpoint import answering, worded

MINING = ROOT / "benchmarks" / "mining.py"


def test_the_adjusted_rand_index_is_one_for_the_same_groups_and_near_nothing_for_chance() -> None:
    assert ari([1, 1, 2, 2, 3], ["b", "b", "a", "a", "c"]) == 1.0
    assert ari([0, 0, 1, 1], [0, 1, 0, 1]) == pytest.approx(-0.5)
    assert ari([0, 0, 1, 2], [0, 0, 1, 1]) == pytest.approx(4 / 7)  # scikit-learn says the same
    assert abs(ari([i % 7 for i in range(5000)], [i * i % 11 for i in range(5000)])) < 0.02


def test_a_prediction_matches_one_boundary_and_no_farther_than_is_allowed() -> None:
    assert matched([3, 9], [5, 20], within=2) == 1
    assert matched([4, 5, 6], [5], within=2) == 1
    assert matched([4], [3, 5], within=2) == 1
    assert matched([], [1]) == matched([1], []) == 0


def test_atoms_are_counted_as_often_as_they_occur() -> None:
    assert atoms(["a", "a", "b"], ["a", "c"]) == (1, 3, 2)
    assert f1_of([(1, 3, 2), (2, 2, 2)]) == pytest.approx(6 / 9)
    low, high = interval([(1, 1, 1)] * 8 + [(0, 1, 1)] * 2, f1_of)
    assert 0.4 <= low < 0.8 < high <= 1.0


@pytest.mark.slow
def test_mining_is_scored_on_what_the_pipeline_publishes(data: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(MINING), str(data / "airline")], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert (told["benchmark"], told["data"]) == ("mining", "airline")
    figures = told["figures"]
    assert figures["task_ari"] > 0.75 and figures["task_ari_twins_merged"] > figures["task_ari"]
    assert figures["task_ari_interval"][0] < figures["task_ari"] < figures["task_ari_interval"][1]


@pytest.mark.slow
def test_with_a_model_all_is_mined_again_and_membership_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "tests/logs/office", tmp_path / "office")
    (tmp_path / "office" / "truth").mkdir()
    (tmp_path / "office" / "truth" / "sessions.jsonl").write_text('{"session_id": "s", "success": true, "task_id": "t"}\n')
    monkeypatch.delenv("TRACEROOM_MODEL", raising=False)
    assert load(tmp_path / "office").asked is None and both_ways({"x": 1}, lambda: {"x": 2}) == {"x": 1}
    with answering(worded) as endpoint:
        monkeypatch.setenv("TRACEROOM_MODEL", "small")
        monkeypatch.setenv("TRACEROOM_MODEL_URL", endpoint.url)
        found = load(tmp_path / "office")
    assert found.asked is not None and endpoint.asked
    for table in ("mart.goals", "mart.tasks", "mart.outcomes"):
        assert found.asked.tables[table].equals(found.tables[table])
    shares = of_names(found.asked.tables["mart.names"], found.asked.tables["mart.sentences"])
    assert shares["names_written"] > of_names(found.tables["mart.names"], found.tables["mart.sentences"])["names_written"] == 0
    assert both_ways({"x": 1, "x_interval": 2}, lambda: {"x": 1, "x_interval": 2}) == {
        "x": 1, "x_interval": 2, "x_asked": 1, "x_asked_interval": 2}


def test_it_says_what_it_wants_where_it_is_given_nothing() -> None:
    done = subprocess.run([sys.executable, str(MINING)], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 2 and done.stdout == "" and MINING.name in done.stderr
