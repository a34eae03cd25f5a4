"""What the benchmark of nights says: of a tiny growing log, and of figures that are known."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.nightly import Night, Placed, figures_of, sessions_of, stayed

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "tests" / "logs" / "airline" / "logs"


@pytest.fixture
def few(tmp_path: Path) -> Path:
    """Eight sessions in one file."""
    lines = [line for file in sorted(SAMPLE.glob("*.jsonl")) for line in file.read_text("utf-8").splitlines(keepends=True)]
    (tmp_path / "few.jsonl").write_text("".join(lines[:8]), "utf-8")
    return tmp_path / "few.jsonl"


@pytest.mark.slow
@pytest.mark.parametrize("more", [[], ["--beside", "--first", "8"]], ids=["in_turn", "beside"])
def test_nights_are_measured_and_give_what_a_full_build_gives(few: Path, tmp_path: Path, more: list[str]) -> None:
    script = ROOT / "benchmarks" / "nightly.py"
    nights = ["--nights", "1", "--measured", "1", "--share", "0.13", "--folder", str(tmp_path), *more]
    done = subprocess.run(
        [sys.executable, str(script), str(few), *nights],
        capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    figures = told["figures"]
    assert (told["benchmark"], figures["n_sessions"], figures["n_measured"]) == ("nightly", 8, 1)
    assert figures["equal"], done.stderr
    assert figures["idle_computes"] == 0 and not figures["rubric_rebuilds_world"]
    assert 0 < figures["idle_share"] < figures["incremental_share"]


def test_shares_are_of_the_full_build() -> None:
    def night(name: str, seconds: float, cpu: float, **stages: float) -> Night:
        return Night(name, seconds, cpu, stages, 9)

    last = {"idle": night("idle", 2.0, 1.0), "rubric": night("rubric", 4.0, 3.0, rewards=1.0),
            "deploy": night("deploy", 3.0, 2.0)}
    full = night("full", 40.0, 50.0, world=10.0, rewards=4.0)
    found = figures_of([night("news", 4.0, 10.0, world=1.0), night("news", 8.0, 5.0, world=2.0, rewards=4.0)], last, full, [])
    assert (found["incremental_share"], found["incremental_cpu_share"], found["worst_share"]) == (0.15, 0.15, 0.2)
    assert (found["idle_share"], found["rubric_share"]) == (0.05, 0.1)
    assert (found["idle_cpu_share"], found["deploy_share"], found["deploy_computes"]) == (0.02, 0.04, 0)
    assert (found["share_world"], found["share_rewards"]) == (0.15, 0.5)
    assert found["equal"] and not found["rubric_rebuilds_world"] and found["idle_computes"] == 0
    last["rubric"] = night("rubric", 4.0, 3.0, world=1.0)
    worse = figures_of([last["idle"]], last, full, ["mart.tasks"])
    assert worse["rubric_rebuilds_world"] and not worse["equal"]


def test_what_leaves_its_side_or_loses_its_id_is_counted() -> None:
    def night(tasks: str, sides: str, groups: str) -> Placed:
        names = "abcd"[:len(tasks)]
        return Placed(dict(zip(names, tasks, strict=True)),
                      {name: {"t": "train", "h": "held_out"}[side] for name, side in zip(names, sides, strict=True)},
                      dict.fromkeys(names, "family"), dict(zip(names, groups, strict=True)), 2)

    base = night("123", "thh", "123")
    assert stayed([base, base]) == {
        "heldout_in_train": 0, "train_in_heldout": 0, "n_heldout": 2, "ids_moved": 0, "ids_moved_tasks": 0,
        "ids_moved_clusters": 0, "ids_moved_groups": 0, "tied_across_sides": 2}
    worse = stayed([base, night("1234", "htht", "1134"), base])
    assert (worse["heldout_in_train"], worse["train_in_heldout"]) == (1, 1), "on any later night"
    assert worse["ids_moved"] == 0, "a group that became part of an older one did not move"
    moved = stayed([base, night("5234", "thht", "6234")])
    assert (moved["ids_moved_tasks"], moved["ids_moved_groups"], moved["ids_moved"]) == (1, 1, 2)


def test_sessions_are_dealt_to_services_by_their_names(few: Path) -> None:
    alone, dealt = list(sessions_of([few], 1)), list(sessions_of([few], 3))
    assert len(alone) == len(dealt) == 8
    services = {json.loads(line).get("metadata", json.loads(line)).get("service") for lines in dealt for line in lines}
    assert services <= {"desk-0", "desk-1", "desk-2"} and len(services) > 1
    assert dealt == list(sessions_of([few], 3)), "a session is always of the same service"
