"""The benchmark of tuning: shares of gains, and verdicts of real services where their engines are at hand."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from pipelines.rollouts.transfer import transfer
from tests.conftest import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))

import tuning
from real_services import Real, agreement, engines, record


def tuned(environment: list[list[float]], real: list[list[float]]) -> tuning.Tuned:
    """Success by stage and task in both places, of one seed."""
    success = np.array([environment, real])[:, :, None, :]
    return tuning.Tuned("a", success, 0.0, [tuning.Refused("call", False)], (1, 1))


def test_the_share_of_a_gain_that_arrives_is_of_the_same_tasks() -> None:
    environment = [[0.0] * 4, [0.0] * 4, [1.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [1.0] * 4, [1.0] * 4]
    environment += [[1.0] * 4] * (len(tuning.STAGES) - len(environment))
    half = [[value if task % 2 else 0.0 for task, value in enumerate(stage)] for stage in environment]
    found = tuning.figures([tuned(environment, half)])
    assert found["gain_transferred"] == pytest.approx(0.5) and found["total_environment"] == pytest.approx(1.0)
    assert found["gain_transferred_low"] <= 0.5 <= found["gain_transferred_high"]
    assert found["paid_wrongly"] > 0 and found["refused_wrongly"] == 0
    assert found["refused_founded"] == 0 and found["refused_by"] == {"call": 1}
    assert tuning.figures([tuned(environment, environment)])["tuning_regret"] == 0


def test_choosing_a_stage_that_only_the_environment_pays_is_regretted() -> None:
    assert tuning.regret(np.array([[0.2, 0.9], [0.6, 0.1]])) == pytest.approx(0.5)
    assert tuning.regret(np.array([[0.9, 0.9], [0.6, 0.2]])) == pytest.approx(0.2)   # of several that are best, their mean


def test_the_command_gets_the_same_regret_from_the_matrix() -> None:
    environment = [[0.0] * 4, [1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 1.0], [1.0] * 4]
    real = [[0.0] * 4, [1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 1.0], [1.0, 1.0, 0.0, 0.0]]
    one = tuned(*([*each, *([[0.0] * 4] * (len(tuning.STAGES) - len(each)))] for each in (environment, real)))
    (row,) = transfer(tuning.placed(one)).tuning
    assert row.regret == pytest.approx(tuning.figures([one])["tuning_regret"]) == pytest.approx(0.25)
    assert row.first == "seed 0 cloned" and row.chosen == ["seed 0 offline"] and row.arrives == pytest.approx(1 / 3)


def test_a_real_service_judges_its_own_scripts_as_it_says(data: Path, tmp_path: Path) -> None:
    engine = engines(data / "zoo" / "engine.py")
    starts = record(engine, "gym_classes", tmp_path, "7", 60)
    scripts = [json.loads(line) for line in (tmp_path / "data" / "gym_classes" / "truth" / "policies.jsonl").open()]
    n_right, n_all, _ = agreement(engine, starts, scripts)
    assert n_right / n_all > 0.98
    twice = next(start for start in starts.values() if len({goal.refuse for goal in start.goals if goal.refuse}) == 2)
    for n_times, is_right in ((1, False), (2, True)):
        real = Real(engine, twice)
        for _ in range(n_times):
            real.say("I'm sorry, I can't do that: it is late.")
        assert (not real.verdict()) == is_right and not real.is_founded(), "a refusal without the reason is of one request"
    nothing = [Real(engine, start).verdict() for start in starts.values()]
    assert sum(map(bool, nothing)) > 0.9 * len(nothing)   # a wish that is taken back is served by doing nothing
