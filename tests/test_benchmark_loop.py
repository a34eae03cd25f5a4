"""The benchmark of the loop: a service that changes, customers who answer, a policy that reads, and gains of the pairs."""

from __future__ import annotations

import argparse
import datetime
import json
import random
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))

import loop
from learning_training import choices_of, play
from loop_changes import RULES, change_rule
from loop_policy import Sharp, parsed, plain, stated


@pytest.fixture
def options(data: Path) -> argparse.Namespace:
    return argparse.Namespace(engines=data / "zoo" / "engine.py", sessions=12, base=60, customers=12, nights=3, every=3,
                              rounds=1)


@pytest.fixture
def month(options: argparse.Namespace, tmp_path: Path) -> loop.Month:
    return loop.Month("gym_classes", 3, options, tmp_path)


def test_a_day_is_logged_as_the_service_logs_it(month: loop.Month, tmp_path: Path) -> None:
    month._serve(1, None, None)
    (path,) = (tmp_path / "logs").iterdir()
    sessions = {json.loads(line)["metadata"]["session_id"] for line in path.read_text("utf-8").splitlines()}
    assert len(sessions) == 12 and month.desk.n_writes
    assert {session_id for session_id, *_ in month._new} == sessions
    assert {is_good for *_, is_good in month._new} == {True, False}, "some of the service's own agents fail"


def test_a_renamed_tool_works_by_its_new_name_alone(month: loop.Month) -> None:
    for night in (1, 2):
        month._serve(night, None, None)
    month.desk.change("name")
    (old, new), = month.desk.new_name.items()
    visit = month.desk.customer(random.Random(1), month.desk.base.now, on_fork=True)
    names = {tool["name"] for tool in visit.reset("").tools}
    assert new in names and old not in names
    assert "unknown tool" in visit.call(old, {}).content and "unknown tool" not in visit.call(new, {}).content
    month._serve(3, None, None)
    calls = max(month._logs.iterdir()).read_text("utf-8")
    assert new in calls and f'"name": "{old}"' not in calls, "the service's own agents call the new one"


@pytest.mark.parametrize("name", sorted(RULES))
def test_what_a_stricter_rule_forbids_is_declined_from_then_on(name: str, options: argparse.Namespace, tmp_path: Path) -> None:
    desk = loop.Month(name, 3, options, tmp_path).desk
    before = [desk.customer(random.Random(number), desk.base.now, on_fork=True) for number in range(60)]
    assert not any(visit.meets for visit in before)
    desk.reason = change_rule(desk.base)
    after = [desk.customer(random.Random(number), desk.base.now, on_fork=True) for number in range(60)]
    met = [visit for visit in after if visit.meets == {"rule"}]
    assert met and RULES[name].after in desk.base.policy and RULES[name].after not in desk.service_class.policy
    honest = [visit for visit in met if not any("verify" in goal.refuse for goal in visit._goals)]
    for visit in honest:
        visit.serve_by_script("perfect")
    assert honest and all(visit.grade().reward for visit in honest), "who declines is right"


def test_a_twin_meets_the_same_customer_and_changes_nothing(month: loop.Month) -> None:
    visit = month.desk.customer(random.Random(4), month.desk.base.now)
    twin = visit.twin()
    assert twin.reset("").messages[0]["content"].startswith(visit._goals[0].ask[:10])
    before = visit._service.end(())
    twin.serve_by_script("extra")
    assert visit._service.end(()) == before


def test_a_policy_that_imitates_good_sessions_serves(month: loop.Month) -> None:
    month.desk.next_day()
    when, sessions = month.desk.base.now, []
    for number in range(50):
        visit = month.desk.customer(random.Random(f"good {number}"), when, on_fork=True)
        visit.serve_by_script("perfect")
        sessions.append(visit.session())
    policy, imitated = loop.imitating(sessions, [1.0] * len(sessions), 0)
    assert len(imitated) == 50 and choices_of(plain(sessions)[0], policy)
    visits = [month.desk.customer(random.Random(f"new {number}"), when, on_fork=True) for number in range(20)]
    assert sum(play(policy, visit, "", None).reward for visit in visits) > 5


def test_answers_are_read_however_they_are_written() -> None:
    in_json = '{"status": 200, "body": {"level": "gold", "credit": 12}}'
    assert parsed("(True, {'level': 'gold', 'credit': 12})") == parsed(in_json) == {"level": "gold", "credit": 12}
    assert parsed("Noted.") == "Noted."
    facts = set(stated({"level": "gold", "credit": 12, "paused": None, "on": "2026-03-02", "bookings": [1, 2]}, ""))
    assert {"level=gold", "credit>=10", "paused=None", "on is given", "bookings>=2"} <= facts and "credit>=20" not in facts


def test_what_an_answer_states_counts_at_the_next_act() -> None:
    episode = Sharp([{"name": "member", "parameters": {"properties": {"number": {"type": "integer"}}}}],
                    {"member": ["number"]})
    episode.hear("Freeze my membership for 4 months")
    episode.answered("member", '{"level": "basic", "grants": [{"system": "months", "approved": false}]}')
    assert {"fact level=basic", "fact user>=4", "fact grants: approved=False"} <= episode.moment()
    assert episode.schemas["member"]["required"] == ["number"]


def test_a_session_weighs_its_chance_and_half_after_some_days() -> None:
    assert loop.chance_and_age(0.8, datetime.timedelta(0)) == pytest.approx(0.8)
    assert loop.chance_and_age(0.8, datetime.timedelta(days=loop.HALF)) == pytest.approx(0.4)


def test_a_failure_that_its_task_takes_for_right_is_no_task() -> None:
    assert loop.fate("a", True, ["a"], "verified") == "believed"
    assert loop.fate("a", True, ["a", "b"], "verified") == "published"
    assert loop.fate("a", False, [], "no_known_success") == "not published: no_known_success"


def test_gains_are_of_all_pairs_of_all_months() -> None:
    def row(end: list[tuple[float, float, list[str]]], failures: dict[str, int]) -> dict[str, object]:
        return {"service": "s", "seed": 0, "looks": {"before": [(1.0, 1.0, [])], "end": end}, "drawn": [(1.0, 0.0)],
                "failures": failures, "good": {"act": 2, "act, published": 1, "tell": 1}}

    found = loop.figures([row([(1.0, 0.0, ["rule"]), (0.0, 0.0, [])], {"n": 3, "in_review": 1, "published": 1}),
                          row([(0.0, 0.0, []), (0.0, 0.0, ["name"])], {"n": 1, "not published: no_known_success": 1})])
    assert found["loop_gain"] == pytest.approx(0.25) and found["n_customers"] == 4 and found["n_months"] == 2
    assert found["loop_gain_low"] <= 0.25 <= found["loop_gain_high"] and found["gain_before"] == 0
    assert (found["gain_met_rule"], found["n_met_rule"], found["gain_met_none"], found["met"]) == (1, 1, 0, 0.5)
    assert found["failures_become_tasks"] == 0.5 and found["failures"] == {"not published: no_known_success": 1}
    assert found["good_published"] == {"act": [2, 4], "tell": [0, 2]}
    assert found["gain_rule"] is None, "no look was between the changes"
