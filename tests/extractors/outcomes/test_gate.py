"""Families whose outcomes do not hold against what people found get no reward, and the decision says why."""

from __future__ import annotations

import polars as pl
import pytest

from extractors.outcomes.calibration import FEWEST_KNOWN, Measure, auroc, ece, measure, withhold_untrusted
from warehouse.records import Feedback, Outcome, Rubric, Task, frame

N = 30


def task(family: str, sessions: list[str]) -> Task:
    return Task(
        task_id=f"t-{family}", service="shop", family=family, slots="{}", goal="paint it", session_ids=sessions,
        segment_of=None, derived_from=None, starts_at=None, succeeded_session_ids=[], split="train", difficulty=None)


def case(told: dict[str, list[float]], n_known: int = N) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Families with the blind probability of good and of bad sessions; half of each family's sessions were good."""
    tasks, outcomes, said = [], [], []
    for family, (of_good, of_bad) in told.items():
        names = [f"{family}{i}" for i in range(N)]
        tasks.append(task(family, names))
        for i, name in enumerate(names):
            outcomes.append(Outcome(session_id=name, probability=0.5, blind=of_bad if i % 2 else of_good, signals="[]"))
            if i < n_known:
                said.append({"feedback_id": name, "session_id": name, "name": "audit", "value": "bad" if i % 2 else "good",
                             "source": "main", "happened_at": None})
    return frame(Task, tasks), frame(Outcome, outcomes), frame(Feedback, said)


def test_a_family_that_outcomes_fail_on_is_held_back_and_the_others_go_on() -> None:
    tasks, outcomes, said = case({"told": [0.9, 0.1], "blurred": [0.5, 0.5], "turned": [0.2, 0.8]})
    rubrics = frame(Rubric, [
        {"rubric_id": each, "task_id": each, "service": "shop", "checks": "[]", "solution": "[]"} for each in tasks["task_id"]])
    measures = measure(tasks, outcomes, said, ["audit"])
    assert {each.family: each.auroc for each in measures} == {"told": 1.0, "blurred": 0.5, "turned": 0.0}
    kept, decisions = withhold_untrusted(rubrics, tasks, measures, 0.7, None)
    assert kept["task_id"].to_list() == ["t-told"]
    assert [(each.subject, each.kept, each.reason) for each in decisions] == [
        ("t-blurred", False, "outcomes_not_trusted"), ("t-turned", False, "outcomes_not_trusted")]
    assert "AUROC 0.50" in decisions[0].detail and "30 sessions of its family" in decisions[0].detail
    assert withhold_untrusted(rubrics, tasks, measures, None, 0.2)[0]["task_id"].to_list() == ["t-told", "t-blurred"]
    assert withhold_untrusted(rubrics, tasks, measures, None, None)[0].equals(rubrics)


def test_a_family_with_few_known_sessions_stands_on_its_service_and_a_service_with_few_on_none() -> None:
    tasks, outcomes, said = case({"a": [0.9, 0.1], "b": [0.5, 0.5]}, n_known=FEWEST_KNOWN // 2 + 4)
    of_service = measure(tasks, outcomes, said, ["audit"])
    assert [(each.n, each.of_service) for each in of_service] == [(FEWEST_KNOWN + 8, True)] * 2
    assert of_service[0].auroc == of_service[1].auroc == 0.875
    unmeasured = measure(tasks, outcomes, said.head(10), ["audit"])
    assert [(each.n, each.auroc, each.ece) for each in unmeasured] == [(0, None, None)] * 2
    assert all(each.holds(0.99, 0.01) for each in unmeasured)


def test_reviews_go_before_ratings() -> None:
    tasks, outcomes, said = case({"a": [0.9, 0.1]})
    rated = said.with_columns(pl.lit("thumbs").alias("name"), pl.lit("up").alias("value"))
    both = pl.concat([said, rated])
    assert measure(tasks, outcomes, both, ["audit"])[0].auroc == 1.0
    assert measure(tasks, outcomes, rated, [])[0].auroc is None, "one kind alone tells nothing apart"


def test_figures_are_those_of_the_definitions() -> None:
    pairs = [(0.9, True), (0.1, False), (0.4, True), (0.4, False)]
    assert auroc(pairs) == 0.875 and ece(pairs) == pytest.approx((0.1 + 0.1 + 0.2) / 4)
    assert not Measure("s", "f", 4, 0.6, 0.1, False).holds(0.7, None)
    assert not Measure("s", "f", 4, 0.9, 0.3, False).holds(0.7, 0.2)
