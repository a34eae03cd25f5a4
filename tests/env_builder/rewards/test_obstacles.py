"""Sessions that are no example of what an agent could do give no reward, and the decision says why."""

from __future__ import annotations

import json
from typing import Any

import pytest

from env_builder.runtime.canonical import canonical
from tests.env_builder.rewards.test_mine import ASK, CLOSED, OPENED, Desk, Step

DONE: Step = ("agent", "Done.")


def reasons(desk: Desk) -> list[tuple[bool, str]]:
    return desk.mined().decisions.select("kept", "reason").rows()


def test_a_value_that_nobody_stated_is_no_task_and_the_decision_names_it() -> None:
    desk = Desk()
    desk.session("good", 0.9, OPENED, ("user", "The side door please"), ("open", {"door": 7731}, "done"), DONE)
    decision = desk.mined().decisions.row(0, named=True)
    assert (decision["kept"], decision["reason"]) == (False, "value_from_nowhere")
    assert "'7731' to door of open" in decision["detail"] and "hint:" in decision["detail"]


@pytest.mark.parametrize("steps", [
    (("user", "Door #7731 please"),),
    (("user", "My door please"), ("look", {"person": 4}, '{"door": 7731}')),
    (("system", "All visitors go to door 7731."), ("user", "Let me in")),
])
def test_a_value_that_user_instructions_or_an_answer_state_is_known(steps: tuple[Step, ...]) -> None:
    desk = Desk()
    desk.session("good", 0.9, OPENED, *steps, ("open", {"door": 7731}, "done"), DONE)
    assert reasons(desk) == [(True, "rubric_mined")]


@pytest.mark.parametrize("steps", [
    (("look", {"door": 7731}, '{"door": 7731}'),),
    (("agent", "Door 7731?"), ("user", "yes please, go ahead")),
])
def test_an_answer_that_repeats_its_question_and_the_agents_own_words_teach_nothing(steps: tuple[Step, ...]) -> None:
    desk = Desk()
    desk.session("good", 0.9, OPENED, ("user", "My door please"), *steps, ("open", {"door": 7731}, "done"), DONE)
    assert reasons(desk) == [(False, "value_from_nowhere")]


@pytest.mark.parametrize(("door", "reason"), [
    ("red-2024-03-11", "value_from_nowhere"), ("blue-2024-03-11", "rubric_mined"),
    ("the blue one on 2024-03-11", "rubric_mined"), ("blue-2024-03-12", "value_from_nowhere"),
])
def test_all_parts_of_a_name_must_have_been_stated(door: str, reason: str) -> None:
    desk = Desk()
    asked = ("user", "The blue one on 2024-03-11 please")
    desk.session("good", 0.9, OPENED, asked, ("open", {"door": door}, "done"), DONE)
    assert [each for _, each in reasons(desk)] == [reason]


def test_another_good_session_that_knows_its_values_carries_the_task() -> None:
    desk = Desk()
    desk.session("best", 0.95, OPENED, ("user", "My door please"), ("open", {"door": 7731}, "done"), DONE)
    desk.session("good", 0.9, OPENED, ("user", "Door 7731 please"), ("open", {"door": 7731}, "done"), DONE)
    mined = desk.mined()
    assert mined.decisions["reason"].to_list() == ["rubric_mined"]
    assert "7731" in mined.rubrics["checks"][0] and '"best"' not in mined.rubrics["checks"][0]


def test_a_change_that_the_user_makes_is_no_step_of_an_agent() -> None:
    desk = Desk()
    desk.session("good", 0.9, OPENED, ASK, ("agent", "Push it, please."), ("open", {"door": 7}, "done"), DONE)
    desk.turns[2]["requestor"] = "user"
    assert reasons(desk) == [(False, "step_of_another_person")]
    desk.turns[2] |= {"tool": "look"}
    desk.turns.insert(3, {**desk.turns[2], "turn_id": "x", "position": 9, "tool": "open", "requestor": None})
    assert reasons(desk) == [(True, "rubric_mined")], "a look of the user's own is no change"


def test_a_change_that_the_user_reports_is_an_event_and_no_step_of_the_agent() -> None:
    desk = Desk()
    desk.session("good", 0.9, OPENED, ASK, ("agent", "Push it, please."),
                 ("open", {"door": 7}, "done"), ("user", "I did"), DONE)
    desk.turns[2]["requestor"] = "user"
    mined = desk.mined()
    assert mined.decisions["reason"].to_list() == ["rubric_mined"]
    checks = json.loads(mined.rubrics["checks"][0])
    assert "state" in {each["kind"] for each in checks}, "what the user changed is part of the end"
    assert not any(each["kind"] in ("call", "order", "not_denied") and "open" in canonical(each["parameters"])
                   for each in checks if each["role"] == "gate"), "and no step that is asked of the agent"


def test_a_service_whose_sessions_run_programs_gives_no_reward() -> None:
    def run(command: Any) -> Step:
        return "escalate", {"command": command}, "ok"

    desk = Desk()
    runs = [run("make -k all && make test"), run(["bash", "-lc", "ls"]), run("git commit -m fix"), run("date")]
    desk.session("good", 0.9, CLOSED | {"documents": OPENED["documents"]}, ASK, *runs, ("open", {"door": 7}, "done"), DONE)
    assert reasons(desk) == [(False, "runs_programs")]


@pytest.mark.parametrize(("door", "reason"), [("B7", "rubric_mined"), ("C9", "value_from_nowhere")])
def test_of_a_statement_only_what_is_quoted_or_has_a_digit_must_have_been_stated(door: str, reason: str) -> None:
    desk = Desk()
    statement = f"UPDATE doors SET state = 'open' WHERE name = '{door}' AND locked = 'yes'"
    desk.session("good", 0.9, OPENED, ("user", "Open door B7, locked yes"), ("open", {"sql": statement}, "UPDATE 1"), DONE)
    assert [each for _, each in reasons(desk)] == [reason]


@pytest.mark.parametrize(("statement", "kept"), [
    ("SELECT * FROM doors WHERE door = 7", False), ("UPDATE doors SET open = 7", True)])
def test_a_claim_after_statements_that_change_nothing_is_no_example(statement: str, kept: bool) -> None:
    desk = Desk()
    end = {"documents": {}, "write_calls": [["escalate", json.dumps({"sql": statement})]]}
    desk.session("good", 0.9, end, ASK, ("escalate", {"sql": statement}, "1 row"), ("agent", "Door 7 is now open."))
    assert reasons(desk) == [(True, "rubric_mined") if kept else (False, "no_known_success")]
