"""Logs whose arguments and answers change their types pass every stage, play and grading."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

from env_builder.world.documents import _around
from tests.conftest import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))

from generality_fuzz import build_and_play, changed, sessions_of

SETS = ("airline", "office", "desks", "lamp_shop")


@pytest.mark.parametrize(("seed", "name"), [
    *enumerate(SETS), pytest.param(4, "airline", marks=pytest.mark.slow), pytest.param(5, "lamp_shop", marks=pytest.mark.slow)])
def test_no_stage_fails_on_logs_with_other_types(tmp_path: Path, seed: int, name: str) -> None:
    counts = build_and_play(sessions_of(ROOT / "tests" / "logs" / name / "logs"), random.Random(seed), tmp_path, 8)
    assert counts["calls"] > 0, "something was played"


def test_a_changed_log_is_another_one_and_the_same_for_the_same_seed() -> None:
    sessions = sessions_of(ROOT / "tests" / "logs" / "airline" / "logs")
    assert changed(sessions, 1.0) == changed(sessions, 1.0)
    assert len({str(changed(sessions, float(seed))) for seed in range(4)}) == 4


def test_an_empty_key_is_no_part_of_a_value() -> None:
    assert _around("", "x") is None and _around("x", "#x") == ("#", "")
    assert _around("x", {"x": 1}) is None and _around(["x"], "x") is None
