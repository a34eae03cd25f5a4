"""How alike the sides of a split are is what comparing every pair of goals would say."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from extractors.tasks.splits import _highest_jaccard

_GOALS = st.lists(st.tuples(
    st.sampled_from(["train", "validation", "held_out"]),
    st.lists(st.sampled_from([f"word{number}" for number in range(12)]), max_size=9).map(" ".join)), min_size=1, max_size=30)


@given(_GOALS)
def test_the_highest_share_is_that_of_all_pairs(goals: list[tuple[str, str]]) -> None:
    rows = [{"task": f"t{number:02}", "split": split, "goal": goal} for number, (split, goal) in enumerate(goals)]
    words = [(split, set(goal.split())) for split, goal in goals if goal]
    shares = [len(one & other) / len(one | other) for side, one in words if side == "train"
              for another, other in words if another != "train"]
    found = _highest_jaccard(pl.DataFrame(rows))
    assert (found or 0.0) == round(max(shares, default=0.0), 6)
