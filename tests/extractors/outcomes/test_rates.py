"""A task's rate of success from the probabilities of a few sessions."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors.outcomes.rates import Prior, in_band, mass, prior_of

CHANCES = st.lists(st.floats(0.0, 1.0), max_size=6)


def test_certain_sessions_give_the_posterior_of_beta_and_binomial() -> None:
    # Beta(1 + 2, 1 + 1) over [0, 1/2]: the integral of 12 x^2 (1 - x)
    assert mass([1.0, 1.0, 0.0], 0.0, 0.5, Prior(1.0, 1.0)) == pytest.approx(12 * (1 / 24 - 1 / 64), abs=0.01)


def test_tasks_of_mixed_sessions_are_in_the_band_and_those_that_always_go_one_way_are_not() -> None:
    tasks = {f"good{i}": [0.98] * 3 for i in range(4)} | {f"bad{i}": [0.02] * 3 for i in range(4)}
    tasks |= {"mixed": [0.98, 0.02, 0.98], "unknown": []}
    assert in_band(tasks, 0.2, 0.8) == {"mixed"}
    spread = prior_of(tasks)
    alike = prior_of({f"t{i}": [0.98, 0.02, 0.98] for i in range(9)})
    assert spread.good + spread.bad < alike.good + alike.bad, "tasks that differ say less of each other"


@given(CHANCES, st.floats(0.2, 9.0), st.floats(0.2, 9.0), st.floats(0.05, 0.95))
def test_what_lies_below_and_above_is_everything(chances: list[float], good: float, bad: float, cut: float) -> None:
    prior = Prior(good, bad)
    below, above = mass(chances, 0.0, cut, prior), mass(chances, math.nextafter(cut, 1.0), 1.0, prior)
    assert below + above == pytest.approx(1.0) and mass(chances, 0.0, 1.0, prior) == pytest.approx(1.0)
