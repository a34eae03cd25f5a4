"""A device whose answers end with a line about its state: what a call answers at what that line said last."""

from __future__ import annotations

import random
from typing import Any

from env_builder.behaviour.carried import pasts
from env_builder.behaviour.statuses import status_rule
from env_builder.runtime.precedents import PastCall, PastCalls
from env_builder.runtime.statuses import fields_shown, status_answer, statuses
from env_builder.world.replay import LoggedStep
from tests.env_builder.world.calls import call

LIGHTS = ("green", "amber", "crimson")


class Device:
    """The real backend of one session."""

    def __init__(self, choose: random.Random) -> None:
        self.light, self.is_lying = choose.choice(LIGHTS), False

    def answer(self, tool: str) -> str:
        """Return what the real tool says."""
        if tool == "step":
            self.light = LIGHTS[(LIGHTS.index(self.light) + 1) % len(LIGHTS)]
        texts = {"look": "Seen.", "step": "Stepped.", "note": "Noted.", "ask": f"It takes {len(self.light)} minutes."}
        return texts[tool] + ("" if tool == "ask" else f"\nLamp: {self.light}")


def logged(tools: tuple[str, ...] = ("look", "step", "note", "ask"), n_sessions: int = 60) -> list[LoggedStep]:
    """Return calls of sessions that begin in several states."""
    choose = random.Random(3)
    steps: list[LoggedStep] = []
    for session in range(n_sessions):
        device = Device(choose)
        for position in range(choose.randrange(2, 7)):
            tool = choose.choice(tools)
            one = call(tool, {}, device.answer(tool), f"s{session:03}", position)
            steps.append(LoggedStep(one, (), None, tool != "look", tool != "look", None, ()))
    return steps


def rule_of(tool: str, steps: list[LoggedStep]) -> dict[str, Any] | None:
    return status_rule([step for step in steps if step.call.tool == tool], pasts(steps))


def past(*calls: tuple[str, str | None]) -> PastCalls:
    return tuple(PastCall(tool, "{}", content, False) for tool, content in calls)


def said(rule: dict[str, Any], tool: str, calls: PastCalls) -> str | None:
    answer = status_answer(rule, tool, "{}", calls)
    return None if answer is None else answer.content


def test_what_was_shown_last_tells_the_answer() -> None:
    rule = rule_of("ask", logged())
    assert rule is not None and rule["field"] == "Lamp"
    assert said(rule, "ask", past(("look", "Seen.\nLamp: amber"))) == "It takes 5 minutes."
    assert said(rule, "ask", past(("look", "Seen.\nLamp: amber"), ("note", "Noted.\nLamp: green")))
    assert said(rule, "ask", past(("look", "Seen.\nLamp: violet"))) is None, "a value that nobody met"
    assert said(rule, "ask", ()) is None


def test_nothing_is_said_after_an_answer_that_nobody_knows_or_a_tool_that_never_came_between() -> None:
    rule = rule_of("ask", logged())
    assert rule is not None
    assert said(rule, "ask", past(("look", "Seen.\nLamp: amber"), ("step", None))) is None
    assert said(rule, "ask", past(("look", "Seen.\nLamp: amber"), ("kick", "Done."))) is None


def test_a_field_that_the_answer_repeats_counts() -> None:
    rule = rule_of("note", logged())
    assert rule is not None
    assert said(rule, "note", past(("look", "Seen.\nLamp: crimson"))) == "Noted.\nLamp: crimson"


def test_a_field_that_tells_nothing_apart_is_no_reason() -> None:
    steps = logged(("look", "ask"))
    same = [step._replace(call=step.call._replace(content="Done.")) if step.call.tool == "ask" else step for step in steps]
    assert rule_of("ask", same) is None
    choose = random.Random(5)
    drawn = [step._replace(call=step.call._replace(content=f"It takes {choose.randrange(3)} minutes."))
             if step.call.tool == "ask" else step for step in steps]
    assert rule_of("ask", drawn) is None


def test_fields_are_those_of_objects_and_lines_with_a_name() -> None:
    assert fields_shown('{"level": 3, "parts": [1], "name": "x"}') == {"level": "3", "name": "x"}
    assert fields_shown("Done.\nLamp: green | 3\nhttp://a.b: no") == {"Lamp": "green | 3"}
    assert dict(statuses(past(("a", '{"level": 1}'), ("b", '{"level": 2}'), ("c", "x"))))["level"] == ("2", {"c"}, "b")


def test_an_act_leaves_the_document_that_its_answer_shows() -> None:
    steps = [step._replace(shown=("lamp", "only", step.call.content)) for step in logged()]
    rule = rule_of("note", steps)
    assert rule is not None
    answer = status_answer(rule, "note", "{}", past(("look", "Seen.\nLamp: crimson")))
    assert answer is not None and answer.documents == ((("lamp", "only"), answer.content),)
