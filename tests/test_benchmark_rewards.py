"""The benchmark of rewards counts what it says it counts."""

from __future__ import annotations

import sys

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
