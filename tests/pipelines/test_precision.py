"""The statement of precision: exact intervals, known rewards, and estimates that are as wide as few reviews demand."""

from __future__ import annotations

import random

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors.outcomes.combining import odds
from pipelines.quality.precision import (
    VERIFIED,
    RewardEstimate,
    _estimate,
    at_least,
    clopper_pearson,
    sentence_on,
    share_interval,
    stated_precision,
)
from warehouse.records import Review, frame


def reward(number: int, chance: float | None = 0.8, is_right: bool | None = None) -> RewardEstimate:
    return RewardEstimate(f"t{number}", "desk", chance, (f"s{number}",), is_right)


def review(number: int, right: bool = True, sampled: bool = True, stands: bool = True, reviewer: str = "Ada") -> Review:
    return Review(review_id=f"r{number}{reviewer}", session_id=f"s{number}", happened_at=None, reviewer=reviewer,
                  is_right=right, reason="", task_id=None, is_sampled=sampled, stands=stands)


def reviews(*rows: Review) -> pl.DataFrame:
    return frame(Review, rows)


def test_the_exact_interval_is_that_of_the_tables() -> None:
    assert [round(bound, 4) for bound in clopper_pearson(8, 10)] == [0.4439, 0.9748]   # Clopper and Pearson 1934
    assert [round(bound, 4) for bound in clopper_pearson(0, 10)] == [0.0, 0.3085]
    assert [round(bound, 4) for bound in clopper_pearson(30, 30)] == [0.8843, 1.0]


@given(n=st.integers(1, 60), share=st.floats(0.01, 0.99))
def test_the_exact_interval_holds_the_true_share_in_95_of_100_samples(n: int, share: float) -> None:
    missed = sum(at_least(k, n, share) - (at_least(k + 1, n, share) if k < n else 0.0) for k in range(n + 1)
                 if not clopper_pearson(k, n)[0] <= share <= clopper_pearson(k, n)[1])
    assert missed <= 0.05 + 1e-9


def test_nothing_published_is_stated_as_nothing() -> None:
    assert stated_precision([], reviews()) is None
    assert sentence_on(None, 0) == "No reward is published."


def test_without_reviews_the_statement_is_an_estimate_with_a_wide_interval() -> None:
    stated = stated_precision([reward(n) for n in range(200)], reviews())
    assert stated is not None and (stated.estimate, stated.n_reviews) == (0.8, 0)
    assert stated.low < 0.7 and stated.high > 0.88
    assert sentence_on(stated, 200).startswith("Not reviewed: of the 200 published rewards an estimated 80 % are right (95 %")
    anchors = [True] * 128 + [False] * 32
    anchored = stated_precision([reward(n) for n in range(200)], reviews(review(340, sampled=False)), anchors)
    assert anchored is not None and stated.low < anchored.low < 0.8 < anchored.high < stated.high
    assert "160 reviews that are no random sample" in anchored.basis
    worse = stated_precision([reward(n) for n in range(200)], reviews(), [False] * 120)
    assert worse is not None and worse.estimate == pytest.approx(0.4)


def test_the_interval_of_estimates_covers_the_share_of_services_that_stray_and_of_few_rewards() -> None:
    rng = random.Random(11)
    for n in (8, 40, 300):
        low, high = share_interval(0.9, 60.0, n)
        n_held = 0
        for _ in range(400):
            of_service = rng.betavariate(54, 6)
            n_held += low <= sum(rng.random() < of_service for _ in range(n)) / n <= high
        assert n_held >= 0.92 * 400
        assert high - low < 0.4
    assert share_interval(0.9, 60.0, 300)[0] > share_interval(0.9, 8.0, 300)[0] > 0.5


def test_sessions_that_came_to_the_same_end_make_it_surer() -> None:
    gate = {"role": "gate", "kind": "state", "provenance": {"supporting": ["a", "b", "c"], "confidence": 0.7}}
    chances = {"a": 0.7, "b": 0.7, "c": 0.2}
    alone, several = (_estimate("t", "desk", [gate], {name: chances[name] for name in names}, {}) for names in ("a", "abc"))
    assert alone.probability is not None and several.probability is not None and alone.probability < several.probability < 1


def test_a_passed_audit_makes_an_end_surer_and_nothing_else_does_where_a_review_found_it_wrong() -> None:
    gate = {"role": "gate", "kind": "state", "provenance": {"supporting": ["a"], "confidence": 0.7}}
    audited = [_estimate("t", "desk", [gate], {"a": chance}, {}).probability for chance in (0.5, 0.7, 0.9)]
    added = [odds(each or 0.0) - odds(chance) for each, chance in zip(audited, (0.5, 0.7, 0.9), strict=True)]
    assert added == pytest.approx(3 * [VERIFIED])
    wrong = _estimate("t", "desk", [gate], {"a": 0.01}, {"a": False})
    assert wrong.is_right is False and wrong.probability == pytest.approx(0.01)


def test_random_reviews_bound_the_share_whatever_the_estimates_say() -> None:
    published = [reward(n, 0.99) for n in range(1000)]
    stated = stated_precision(published, reviews(*(review(n, n % 2 == 0) for n in range(2000, 2040))))
    assert stated is not None and stated.n_reviews == 40
    assert (stated.low, stated.high) == tuple(round(bound, 4) for bound in clopper_pearson(20, 40))
    assert stated.low <= stated.estimate <= stated.high
    assert sentence_on(stated, 1000) == (
        "Of the 1,000 published rewards at least 33 % are right (95 % confidence), by 40 random reviews.")


def test_reviewers_who_disagree_on_a_sampled_session_do_not_make_it_right() -> None:
    torn = reviews(review(1, True, stands=False), review(1, False, stands=False, reviewer="Grace"), review(2), review(3))
    stated = stated_precision([reward(n) for n in range(100, 200)], torn)
    assert stated is not None and stated.high == round(clopper_pearson(2, 3)[1], 4)


def test_settled_rewards_are_known_and_only_the_others_are_estimated() -> None:
    half = [reward(n, 0.99, True) for n in range(50)] + [reward(n) for n in range(50, 100)]
    stated, unsettled = stated_precision(half, reviews()), stated_precision(half[50:], reviews())
    assert stated is not None and unsettled is not None
    assert stated.low == pytest.approx((1 + unsettled.low) / 2, abs=1e-4)


def test_the_stated_lower_bound_holds_for_random_samples_of_a_known_population() -> None:
    rng = random.Random(7)
    n_published, n_tries, n_held = 300, 200, 0
    right = [rng.random() < 0.85 for _ in range(n_published)]
    for _ in range(n_tries):
        drawn = rng.sample(range(n_published), 30)
        published = [reward(n, 0.99 if n in drawn else 0.95, True if n in drawn else None)
                     for n in range(n_published) if n not in drawn or right[n]]   # those found wrong are published no more
        stated = stated_precision(published, reviews(*(review(n, right[n]) for n in drawn)))
        assert stated is not None
        truth = sum(right[int(each.task_id[1:])] for each in published) / len(published)
        n_held += stated.low <= truth <= stated.high
    assert n_held / n_tries >= 0.93


def test_rewards_of_generated_solutions_are_estimated_beside_a_sample_of_the_others() -> None:
    generated = [RewardEstimate(f"g{n}", "desk", 0.5, (), None) for n in range(100)]
    sample = reviews(*(review(n) for n in range(500, 530)))
    stated = stated_precision([*(reward(n) for n in range(100)), *generated], sample)
    alone = stated_precision(generated, sample)
    assert stated is not None and alone is not None and alone.estimate == 0.5
    assert stated.low == pytest.approx((clopper_pearson(30, 30)[0] + alone.low) / 2, abs=1e-4)
