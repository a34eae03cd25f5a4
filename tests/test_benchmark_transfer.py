"""The benchmark of transfer keeps each grade with its verdict, and pools sets as it says."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))

import transfer
from real_services import Start
from truth_data import DataSet

from pipelines.rollouts.transfer import PlacedResult

SCORER = '''
"""A scorer with two tasks, of which the second has a script of each of two sessions."""
import json


def score(tasks, grade):
    return [grade(task, policy) for task, plays in tasks for policy in plays], None, None


def main(out, data):
    right, liar = {"policy": "right", "truth": True, "paid": None}, {"policy": "liar", "truth": False, "paid": True}
    paid = score([((None, "one"), [right]), ((None, "two"), [liar, liar])], lambda task, policy: policy["paid"])
    print(json.dumps(paid[0]))
'''


def test_each_grade_stands_beside_its_verdict(tmp_path: Path) -> None:
    (tmp_path / "verdicts.py").write_text(SCORER)
    assert transfer.graded_pairs(tmp_path, tmp_path, DataSet(tmp_path, "zoo")) == [
        PlacedResult("right", "one", 0, "environment", None), PlacedResult("right", "one", 0, "real", True),
        PlacedResult("liar", "two", 0, "environment", True), PlacedResult("liar", "two", 0, "real", False),
        PlacedResult("liar", "two", 1, "environment", True), PlacedResult("liar", "two", 1, "real", False)]


def test_the_zoo_is_a_mean_and_regret_the_worst() -> None:
    rows: list[dict[str, Any]] = [
        {"kind": "zoo", "spearman": 1.0, "regret": 0.0, "examined": True, "causes": {"reward_wrong": 3}},
        {"kind": "zoo", "spearman": 0.5, "regret": 0.25, "examined": True, "causes": {"answer_wrong": 1}},
        {"kind": "zoo", "spearman": None, "regret": None, "examined": True, "causes": {}},
        {"kind": "retail", "spearman": 0.9, "regret": 0.1, "examined": False, "causes": {"not_examined": 9}}]
    found = transfer.figures(rows)
    assert found["spearman_zoo"] == pytest.approx(0.75) and found["n_zoo"] == 2
    assert found["spearman_retail"] == pytest.approx(0.9) and found["choosing_regret"] == pytest.approx(0.25)
    assert found["cause_shares"] == {"answer_wrong": 0.25, "reward_wrong": 0.75} and found["n_examined"] == 4
    assert transfer.figures([])["choosing_regret"] is None


def test_moves_are_made_again_where_the_session_began() -> None:
    class Counting:
        def __init__(self, n: int = 0) -> None:
            self.n = n

        def fork(self) -> Counting:
            return Counting(self.n)

        def call(self, tool: str, arguments: dict[str, Any]) -> tuple[str, bool]:
            self.n += 1
            return f"{tool} {self.n}", tool == "fail"

    start = Start(Counting(4), [], None, [])
    journal = [{"kind": "call", "tool": "find", "arguments": {}, "content": "?", "is_error": True, "tier": "unknown"},
               {"kind": "say", "content": "Hm", "reply": "Well"},
               {"kind": "call", "tool": "fail", "arguments": {}, "content": "no", "is_error": False, "tier": "recorded"}]
    for _ in range(2):
        first, words, last = transfer.on_service(start, journal)
        assert (first["content"], first["is_error"], last["content"], last["is_error"]) == ("find 5", False, "fail 6", True)
        assert words == journal[1]
