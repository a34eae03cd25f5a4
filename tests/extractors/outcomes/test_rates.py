"""A task's rate of success from the probabilities of a few sessions."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors.outcomes.rates import Prior, distribution, family_rate, prior_of, rate_of, rates

CHANCES = st.lists(st.floats(0.0, 1.0), max_size=6)


def mass(chances: list[float], low: float, high: float, prior: Prior) -> float:
    heights = distribution(chances, prior)
    return sum(height for step, height in enumerate(heights) if low <= (step + 0.5) / len(heights) <= high)


def test_certain_sessions_give_the_posterior_of_beta_and_binomial() -> None:
    # Beta(1 + 2, 1 + 1) over [0, 1/2]: the integral of 12 x^2 (1 - x)
    assert mass([1.0, 1.0, 0.0], 0.0, 0.5, Prior(1.0, 1.0)) == pytest.approx(12 * (1 / 24 - 1 / 64), abs=0.01)


def test_the_prior_of_tasks_that_differ_counts_for_fewer_sessions() -> None:
    tasks = {f"good{i}": [0.98] * 3 for i in range(4)} | {f"bad{i}": [0.02] * 3 for i in range(4)}
    tasks |= {"mixed": [0.98, 0.02, 0.98], "unknown": []}
    spread = prior_of(tasks)
    alike = prior_of({f"t{i}": [0.98, 0.02, 0.98] for i in range(9)})
    assert spread.good + spread.bad < alike.good + alike.bad, "tasks that differ say less of each other"


def test_a_task_is_told_by_its_family_and_sessions_of_one_task_count_for_fewer() -> None:
    easy, hard = ({f"{name}{i}": [chance] for i in range(20)} for name, chance in (("easy", 0.95), ("hard", 0.1)))
    families, tasks = rates({"easy": {**easy, "new": [0.5]}, "hard": {**hard, "other": [0.5]}, "none": {"unseen": []}})
    assert set(families) == {"easy", "hard"} and "unseen" not in tasks
    assert families["easy"].difficulty_band == "mostly" and families["hard"].difficulty_band == "rarely"
    assert tasks["new"].rate > 0.6 > 0.4 > tasks["other"].rate, "what is known of a task seen once is its family"
    apart = family_rate([[0.95]] * 12, Prior(1.0, 1.0), 0.3)
    together = family_rate([[0.95] * 12], Prior(1.0, 1.0), 0.3)
    assert apart.high - apart.low < together.high - together.low


@given(CHANCES.filter(bool), st.floats(0.2, 9.0), st.floats(0.2, 9.0))
def test_a_rate_lies_within_its_interval_and_moves_with_its_sessions(chances: list[float], good: float, bad: float) -> None:
    prior = Prior(good, bad)
    told, better = rate_of(chances, prior), rate_of([*chances, 1.0], prior)
    assert 0.0 <= told.low <= told.high <= 1.0 and told.low - 0.1 <= told.rate <= told.high + 0.1
    assert better.rate >= told.rate and better.low >= told.low - 1e-4 and better.high >= told.high - 1e-4


@given(CHANCES, st.floats(0.2, 9.0), st.floats(0.2, 9.0), st.floats(0.05, 0.95))
def test_what_lies_below_and_above_is_everything(chances: list[float], good: float, bad: float, cut: float) -> None:
    prior = Prior(good, bad)
    below, above = mass(chances, 0.0, cut, prior), mass(chances, math.nextafter(cut, 1.0), 1.0, prior)
    assert below + above == pytest.approx(1.0) and mass(chances, 0.0, 1.0, prior) == pytest.approx(1.0)
