"""Off-policy evaluation on problems whose answer is known."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from env_builder.evaluation import METHODS, Estimate, Logged, evaluate

CHANCES = (0.5, 0.3, 0.2)
WANTED = (0.1, 0.2, 0.7)
REWARDS = (1.0, 0.0, 0.5)
"""Of a task with one turn of three kinds: who acted, the policy in question, what each is worth."""
TRUTH = sum(chance * reward for chance, reward in zip(WANTED, REWARDS, strict=True))


def logged(n: int, seed: int, modelled: tuple[float, ...] = REWARDS) -> list[Logged]:
    """Episodes of one turn, and what a room gives for each kind of turn."""
    acts = random.Random(seed).choices(range(3), CHANCES, k=n)
    return [Logged(f"t{place % 40}", REWARDS[act], [math.log(CHANCES[act])], [math.log(WANTED[act])], modelled[act])
            for place, act in enumerate(acts)]


def in_room(modelled: tuple[float, ...] = REWARDS) -> dict[str, list[float | None]]:
    """Return the worth of the policy's own episodes in a simulator that gives each call this: ten a task, by its rates."""
    return {f"t{place}": [modelled[0], *2 * [modelled[1]], *7 * [modelled[2]]] for place in range(40)}


def by_method(found: list[Estimate]) -> dict[str, Estimate]:
    assert [estimate.method for estimate in found] == list(METHODS)
    return {estimate.method: estimate for estimate in found}


def test_known_answer() -> None:
    log = [Logged("a", 1.0, [math.log(0.5)], [math.log(0.75)], 1.0), Logged("b", 0.0, [math.log(0.5)], [math.log(0.25)], 0.5)]
    found = by_method(evaluate(log, {"a": [1.0, 0.5], "b": [0.25, None]}, least_ess=1))
    usual = (1.0 + 0.5 + 0.25) / 3
    direct = (0.75 + (0.25 + usual) / 2) / 2
    assert found["direct"].value == pytest.approx(direct)
    assert found["wis"].value == pytest.approx(0.75)
    assert found["wis"].ess == pytest.approx(4 / 2.5)
    assert found["wis"].support == pytest.approx(1.0)
    assert found["dr"].value == pytest.approx(direct + 0.5 * (0.0 - 0.5) / 2)


def test_who_acted_is_worth_what_the_log_says() -> None:
    log = [episode._replace(target=episode.behaviour) for episode in logged(200, 0)]
    found = by_method(evaluate(log, {}))
    assert found["wis"].value == pytest.approx(sum(episode.reward or 0.0 for episode in log) / 200)
    assert found["wis"].ess == pytest.approx(200)
    assert "not played" in (found["direct"].refused or "") and "not played" in (found["dr"].refused or "")


def test_a_wrong_room_is_put_right_by_the_log() -> None:
    """Over many logs `wis` and `dr` are right on average, the room alone is wrong; the better the room, the surer `dr`."""
    wrong = (0.4, 0.9, 0.1)
    means = {"direct": 0.0, "wis": 0.0, "dr": 0.0}
    for seed in range(60):
        for estimate in evaluate(logged(200, seed, wrong), in_room(wrong), draws=2):
            means[estimate.method] += (estimate.value or 0.0) / 60
    assert abs(means["direct"] - TRUTH) > 0.15
    assert means["wis"] == pytest.approx(TRUTH, abs=0.01)
    assert means["dr"] == pytest.approx(TRUTH, abs=0.01)
    found = by_method(evaluate(logged(200, 0), in_room()))
    assert found["dr"].value == pytest.approx(TRUTH)
    assert (found["dr"].high or 0) - (found["dr"].low or 0) < 1e-9 < (found["wis"].high or 0) - (found["wis"].low or 0)


def test_intervals_hold_the_truth() -> None:
    held = {"wis": 0, "dr": 0}
    for seed in range(100):
        found = by_method(evaluate(logged(160, seed, (0.4, 0.9, 0.1)), in_room((0.4, 0.9, 0.1)), draws=200))
        for method in held:
            held[method] += (found[method].low or 9) <= TRUTH <= (found[method].high or -9)
    assert min(held.values()) >= 88


@pytest.mark.parametrize(("log", "reason"), [
    ([], "no log"),
    ([Logged("t", None, [0.0], [0.0])], "what came of it"),
    ([Logged("t", 1.0, [None], [0.0])] * 30, "log-probabilities of its turns"),
    ([Logged("t", 1.0, None, [0.0])] * 30, "log-probabilities of its turns"),
    ([Logged("t", 1.0, [0.0], None)] * 30, "does not say how likely"),
    ([Logged("t", 1.0, [-0.1], [-math.inf])] * 30, "effective sample size"),
    ([Logged("t", 1.0, [-0.1], [-0.1])] * 5, "effective sample size"),
    ([Logged("t", 1.0, [math.log(0.9)], [math.log(0.3)])] * 30, "is in the log"),
])
def test_refuses_where_support_is_missing(log: list[Logged], reason: str) -> None:
    found = by_method(evaluate(log, {"t": [1.0, 0.0]}))
    assert found["direct"].value == 0.5
    for method in ("wis", "dr"):
        estimate = found[method]
        assert estimate.value is None and estimate.low is None and reason in (estimate.refused or "")


def test_refuses_what_the_room_cannot_tell() -> None:
    found = by_method(evaluate(logged(80, 0), {f"t{place}": [None, None, 1.0] for place in range(40)}))
    assert "could not score 80 of the policy's 120" in (found["direct"].refused or "")
    assert found["dr"].value is not None
    assert found["wis"].value is not None
    nothing = by_method(evaluate(logged(80, 0), {f"t{place}": [None] for place in range(40)}))
    assert nothing["dr"].refused == nothing["direct"].refused
    assert "could not score 40 of" in (nothing["direct"].refused or "")
    elsewhere = by_method(evaluate(logged(80, 0), {"another": [1.0]}))
    assert "none of the log's tasks" in (elsewhere["direct"].refused or "")
    assert "40 tasks of the log" in (elsewhere["dr"].refused or "")
    with pytest.raises(ValueError, match="give one a turn"):
        evaluate([Logged("t", 1.0, [0.0], [0.0, 0.0])], {})
    with pytest.raises(ValueError, match="never takes"):
        evaluate([Logged("t", 1.0, [-math.inf], [0.0])], {})


@given(st.lists(st.tuples(
    st.sampled_from("abc"), st.floats(0, 1), st.floats(-3, 0), st.floats(-3, 0), st.none() | st.floats(0, 1)),
    min_size=1, max_size=30), st.floats(0, 1))
@settings(max_examples=60, deadline=None)
def test_stays_within_what_was_seen(rows: list[tuple[str, float, float, float, float | None]], worth: float) -> None:
    log = [Logged(task, reward, [own], [other], model) for task, reward, own, other, model in rows]
    found = by_method(evaluate(log, {task: [worth] for task in "abc"}, least_ess=0, draws=50))
    rewards = [episode.reward or 0.0 for episode in log]
    assert found["direct"].value == pytest.approx(worth)
    wis = found["wis"]
    if wis.value is not None and wis.low is not None and wis.high is not None:
        assert min(rewards) - 1e-9 <= wis.low <= wis.high <= max(rewards) + 1e-9
        assert min(rewards) - 1e-9 <= wis.value <= max(rewards) + 1e-9
        assert 1 - 1e-9 <= (wis.ess or 0) <= len(log) + 1e-9
    again = evaluate(log[::-1], {task: [worth] for task in "cba"}, least_ess=0, draws=50)
    for one, other in zip(found.values(), again, strict=True):
        assert one.refused == other.refused
        assert (one.value, one.low, one.high) == pytest.approx((other.value, other.low, other.high), nan_ok=True)
