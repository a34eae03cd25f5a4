"""The benchmark of rewards counts what it says it counts."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))

from rewards_data import Tally


def test_a_grade_that_is_missing_counts_against_coverage_and_never_as_right() -> None:
    tally = Tally()
    for good, reward, has_room in (
        (True, 1.0, True), (True, 0.0, True), (True, None, True), (False, 0.5, True), (False, 0.6, True), (False, None, False)
    ):
        tally.add(good, reward, has_room, f"{good} {reward}")
    assert (tally.n("good", "reject"), tally.n("bad", "accept"), tally.n("bad")) == (1, 1, 3)
    assert tally.share("accept", "reject") == 0.6667 and tally.share("no room") == 0.1667
    assert tally.rate("bad", "accept") == 0.3333, "of all bad ones, whether they have a room or not"
    assert "false reject: True 0.0" in tally.table() and "false accept: False 0.6" in tally.table()
    assert "False 0.5" not in tally.table(), "half a reward is not a success"


def _first_days(data: Path, folder: Path, n: int) -> Path:
    """Return the first days of the data set, with the truth about their sessions."""
    for part in ("logs", "feedback", "truth"):
        (folder / part).mkdir(parents=True)
    for part in ("logs", "feedback"):
        for file in sorted((data / part).iterdir())[:n]:
            shutil.copy(file, folder / part)
    shutil.copy(data / "tools.json", folder)
    logged = {json.loads(line)["metadata"]["session_id"]
              for file in (folder / "logs").iterdir() for line in file.read_text("utf-8").splitlines()}
    told = [line for line in (data / "truth" / "sessions.jsonl").read_text("utf-8").splitlines()
            if json.loads(line)["session_id"] in logged]
    (folder / "truth" / "sessions.jsonl").write_text("\n".join(told) + "\n", "utf-8")
    return folder


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_three_days_of_a_desk_give_rewards_that_hold_and_tasks_from_failures(data: Path, tmp_path: Path) -> None:
    folder = _first_days(data / "retail_desk", tmp_path / "desk", 3)
    parts = [word for part in ("sessions", "mutants", "attackers", "variants") for word in ("--only", part)]
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "rewards.py"), str(folder), *parts], capture_output=True, text=True,
        timeout=1700, check=False)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])["figures"]
    assert figures["n_bad_sessions"] > 50 and figures["n_good_sessions"] > 150
    assert figures["false_accept"] <= 0.06 and figures["false_reject"] <= 0.06 and figures["coverage"] >= 0.8
    assert figures["mutants"] > 2000 and figures["mutants_killed"] >= 0.99 and figures["attacker_passes"] == 0
    assert figures["failures_as_tasks"] >= 0.29 and figures["failure_solutions_right"] >= 0.95
