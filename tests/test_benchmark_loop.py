"""The benchmark of the loop: a service that changes, customers who answer, and gains that are those of the months."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

sys.path.insert(0, str(ROOT / "benchmarks"))

import loop
from real_services import engines


@pytest.fixture
def desk(data: Path) -> loop.Desk:
    return loop.Desk(engines(data / "zoo" / "engine.py"), "gym_classes", 3)


def test_a_day_is_logged_as_the_service_logs_it(desk: loop.Desk) -> None:
    lines, _ = loop.serve_day(desk, desk.next_day(), 12, None, 0)
    sessions = {json.loads(line)["metadata"]["session_id"] for line in lines}
    assert len(sessions) == 12 and desk.n_writes
    again = loop.Desk(desk.engine, "gym_classes", 3)
    assert loop.serve_day(again, again.next_day(), 12, None, 0)[0] == lines, "the same seed, the same day"


def test_a_renamed_tool_works_by_its_new_name_alone(desk: loop.Desk) -> None:
    when = desk.next_day()
    loop.serve_day(desk, when, 40, None, 0)
    desk.restyle()
    desk.rename()
    (old, new), = desk.new_name.items()
    visit = desk.customer(random.Random(1), when, on_fork=True)
    names = {tool["name"] for tool in visit.reset("").tools}
    assert new in names and old not in names
    assert "unknown tool" in visit.call(old, {}).content and "unknown tool" not in visit.call(new, {}).content
    assert json.loads(visit.call("member", {"number": 200}).content)["member"] == 200, "answers are JSON now"
    loop.serve_day(desk, when, 40, None, 0)
    assert desk.n_writes[new], "the service's own agents call the new one"


def test_who_serves_as_the_policy_says_is_judged(desk: loop.Desk) -> None:
    desk.next_day()
    verdicts = []
    for number in range(12):
        visit = desk.customer(random.Random(number), desk.base.now, on_fork=True)
        visit.reset("")
        visit.say("Your member number, please?")
        for goal in visit._goals:
            for tool, arguments in (*goal.look, *goal.act):
                visit.call(tool, arguments)
        verdicts.append(visit.grade().reward)
    assert 0.0 in verdicts, "a customer whose calls were made without a lookup of who it is, or without a word"


def test_gains_are_of_all_customers_of_all_months() -> None:
    rows = [{"gains": [1.0, 0.0], "on": 0.5, "off": 0.0, "first": 0.0},
            {"gains": [0.0, 0.0], "on": 0.0, "off": 0.0, "first": 0.2}]
    found = loop.figures(rows)
    assert found["loop_gain"] == pytest.approx(0.25) and found["n_customers"] == 4 and found["n_months"] == 2
    assert found["loop_gain_low"] <= 0.25 <= found["loop_gain_high"]
