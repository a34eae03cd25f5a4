"""Pieces of work keep the side of the split that they were sealed with, however many come later."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from env_builder.work.sides import TIED, sides_of

NIGHTS = st.lists(st.integers(1, 30), min_size=1, max_size=8)


@given(st.integers(10, 60), NIGHTS)
def test_sides_stay_and_shares_are_kept_night_by_night(n_first: int, nights: list[int]) -> None:
    ends = [(f"item {number}", number) for number in range(n_first)]
    sides = sides_of(ends)
    for n_new in nights:
        ends += [(f"item {len(ends) + number}", len(ends) + number) for number in range(n_new)]
        grown = sides_of(ends, {item: {side} for item, side in sides.items()})
        assert {item: grown[item] for item in sides} == sides
        n_of, n = Counter(grown.values()), len(ends)
        assert n_of["held_out"] <= n * 2 // 10 + 1 and n_of["validation"] <= n // 10 + 1
        assert n_of["held_out"] >= min(n * 2 // 10, Counter(sides.values())["held_out"] + n_new)
        sides = grown


def test_the_latest_of_the_new_ones_are_held_out_and_what_is_on_several_sides_is_on_none() -> None:
    sealed = {f"old {number}": {"train"} for number in range(8)} | {"torn": {"train", "held_out"}}
    ends = [(item, 0) for item in sealed] + [("new 1", 1), ("new 2", 2), ("new 3", 3), ("new 4", 4)]
    sides = sides_of(ends, sealed)
    assert sides["torn"] == TIED
    assert [sides[f"new {number}"] for number in (1, 2, 3, 4)] == ["train", "validation", "held_out", "held_out"]
