"""Probabilities held to reviews: monotone, drawn toward what they were, in the same order."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from extractors.outcomes.calibration import FEWEST, between, calibrated, interval, steps

SEEN = st.lists(st.tuples(st.floats(0.0, 1.0), st.booleans()), min_size=1, max_size=40)


def test_too_sure_probabilities_are_drawn_to_what_reviewers_found() -> None:
    draw = random.Random(3)
    chances = {f"s{i}": 0.03 if i % 2 else 0.97 for i in range(400)}
    reviews = {name: draw.random() < (0.7 if chance > 0.5 else 0.3) for name, chance in list(chances.items())[:100]}
    held = calibrated(chances, reviews)
    assert 0.6 < held["s300"] < 0.85 and 0.15 < held["s301"] < 0.4
    assert all((held[name] > 0.5) == good for name, good in reviews.items())
    few = dict(list(reviews.items())[: FEWEST - 1])
    assert calibrated(chances, few)["s300"] == chances["s300"]


@given(SEEN, st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_order_is_kept_and_probabilities_stay_probabilities(seen: list[tuple[float, bool]], a: float, b: float) -> None:
    seen = sorted(seen)
    points = steps([chance for chance, _ in seen], [good for _, good in seen])
    low, high = sorted((a, b))
    assert 0.0 <= between(points, low) <= between(points, high) <= 1.0


@given(st.floats(0.0, 1.0), st.lists(st.floats(0.0, 1.0), max_size=30))
def test_an_interval_holds_its_probability_and_narrows_with_reviews(chance: float, seen: list[float]) -> None:
    low, high = interval(chance, sorted(seen))
    assert 0.0 <= low <= chance + 1e-6 and chance - 1e-6 <= high <= 1.0
    narrow_low, narrow_high = interval(chance, sorted([*seen, *[chance] * 50]))
    assert narrow_high - narrow_low < high - low
