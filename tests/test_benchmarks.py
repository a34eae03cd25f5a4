"""A benchmark ends by printing one JSON object of figures on its last line."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.stages import STAGES
from tests.conftest import ROOT
from tests.pipelines.conftest import part_of_sample

JOURNEY = ROOT / "benchmarks" / "journey.py"


@pytest.mark.slow
def test_the_journey_is_measured(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    logs = part_of_sample(tmp_path_factory.mktemp("part") / "airline")
    done = subprocess.run(
        [sys.executable, str(JOURNEY), str(logs), "--no-image"], capture_output=True, text=True,
        cwd=tmp_path, timeout=500, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told.keys() == {"benchmark", "data", "figures"} and (told["benchmark"], told["data"]) == ("journey", "airline")
    figures = told["figures"]
    assert {"seconds", "n_sessions", "n_tasks", "n_published", "peak_memory_mb"} < figures.keys()
    assert figures["n_sessions"] == 20 and figures["n_tasks"] >= figures["n_published"] >= 3
    stages = [value for name, value in figures.items() if name.startswith("seconds_")]
    assert len(stages) == len(STAGES) and 0 < sum(stages) < figures["seconds"]
    assert list(tmp_path.iterdir()) == [], "it leaves nothing behind"


def test_it_says_what_it_wants_where_it_is_given_nothing() -> None:
    done = subprocess.run([sys.executable, str(JOURNEY)], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 2 and done.stdout == "" and JOURNEY.name in done.stderr


@pytest.mark.slow
def test_ingestion_is_measured_beside_its_peers(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "ingest.py"), "--gb", "0.001", "--rounds", "1", "--folder", str(tmp_path)],
        capture_output=True, text=True, cwd=tmp_path, timeout=500, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["benchmark"] == "ingest" and told["gb"] == 0.001
    figures = told["figures"]
    for name in ("completions", "otlp", "access_log", "debezium"):
        expected = {"mb_s", "two_core_speedup", "peak_memory_mb", "growth_10x", "again_share",
                    "over_parser" if name == "completions" else "over_duckdb"}
        assert {f"{name}_{figure}" for figure in expected} <= figures.keys()
    assert figures["over_duckdb"] == max(figures[f"{name}_over_duckdb"] for name in ("otlp", "access_log", "debezium"))
    assert all(value > 0 for value in figures.values())
    assert list(tmp_path.iterdir()) == [], "it leaves nothing behind"


@pytest.mark.slow
def test_the_browser_is_timed_on_all_its_lists(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-m", "benchmarks.browser", "--sessions", "2000"], capture_output=True, text=True,
                          cwd=ROOT, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout.splitlines()[-1])["figures"]
    assert figures["n_sessions"] == 2000 and 0 < figures["slowest_ms"] == max(figures["pages_ms"].values())
    assert len(figures["pages_ms"]) > 12 and figures["growth"] < 20


def test_scores_of_success_are_those_of_the_definitions() -> None:
    sys.path.insert(0, str(ROOT))
    from benchmarks import scoring

    good = [True, False, True, False]
    assert scoring.auroc(good, [0.9, 0.1, 0.4, 0.4]) == 0.875 and scoring.auroc(good, [0.5] * 4) == 0.5
    assert scoring.ece(good, [0.9, 0.1, 0.45, 0.45]) == pytest.approx((0.1 + 0.1 + 0.1) / 4)
    assert scoring.ece_excess(good, [1.0, 0.0, 1.0, 0.0]) == 0.0 < scoring.ece_excess(good, [0.0, 1.0, 0.0, 1.0])
    assert scoring.brier_skill(good, [1.0, 0.0, 1.0, 0.0]) == 1.0 and scoring.brier_skill(good, [0.5] * 4) == 0.0
    low, high = scoring.interval(good * 5, [0.9, 0.1, 0.4, 0.6] * 5, [str(i // 2) for i in range(20)], scoring.auroc)
    assert 0.0 <= low < scoring.auroc(good * 5, [0.9, 0.1, 0.4, 0.6] * 5) < high <= 1.0
    texts = ["it went well", "it broke badly"] * 20
    tasks = [str(place // 4) for place in range(40)]
    chances = scoring.trained_tfidf(texts, [True, False] * 20, tasks)
    assert min(chances[::2]) > max(chances[1::2]) and 0.0 < min(chances) < max(chances) < 1.0


def test_the_user_is_measured_against_people() -> None:
    script = ROOT / "benchmarks" / "users.py"
    done = subprocess.run([sys.executable, str(script), str(ROOT / "tests" / "logs" / "human_desk")], capture_output=True,
                          text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    figures = told["figures"]
    assert told["benchmark"] == "users" and figures["n_sessions"] > 0 and figures["n_turns"] > 0
    assert figures["invented"] == figures["early"] == 0 and 0 < figures["say_us_recorded"] < figures["say_us_other"]
