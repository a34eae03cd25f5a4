"""Answers with one part for each name: put together for names that nobody asked for together."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import combinations
from typing import Any

import pytest

from env_builder.behaviour import parts
from env_builder.runtime.episode import EpisodeState
from env_builder.runtime.lists import put_together
from env_builder.runtime.world import View, World
from env_builder.world.replay import LoggedStep
from tests.env_builder.world.calls import call

INNS = {"Mill": "4.1 stars\nquiet", "Anchor": "3.0 stars", "Swan": "4.8 stars", "Crown": None}
Answers = Callable[[list[str]], dict[str, Any]]


def fixed(names: list[str]) -> dict[str, Any]:
    return {name: said for name, said in INNS.items() if name in names}


def given(names: list[str]) -> dict[str, Any]:
    return {name: INNS[name] for name in names if name in INNS}


def steps(answers: Answers, asked: list[list[str]], write: Callable[[Any], str]) -> list[LoggedStep]:
    calls = [call("rate", {"inns": names}, write(answers(names)), f"s{n}") for n, names in enumerate(asked)]
    return [LoggedStep(each, (), None, False, False, None, ()) for each in calls]


ASKED = [list(names[::-1]) for n in (1, 2) for names in combinations([*INNS, "Nowhere"], n)] + [["Swan", "Mill"]]


@pytest.mark.parametrize(("answers", "order"), [(fixed, "fixed"), (given, "given")])
@pytest.mark.parametrize("write", [json.dumps, repr])
def test_puts_parts_together(answers: Answers, order: str, write: Callable[[Any], str]) -> None:
    seen = steps(answers, ASKED, write)
    rule = parts.parts_rule(seen)
    assert rule is not None and rule["order"] == order
    known = [(step.call.arguments, step.call.content) for step in seen]
    for names in (["Crown", "Mill", "Anchor"], ["Nowhere", "Swan", "Anchor"], list(INNS)):
        assert put_together(rule, {"inns": names}, known) == write(answers(names))
    assert put_together(rule, {"inns": ["Mill", "Bell"]}, known) is None


def test_is_silent_where_parts_depend_on_each_other() -> None:
    ranked = steps(lambda names: {name: f"place {n}" for n, name in enumerate(names)}, ASKED, json.dumps)
    assert parts.parts_rule(ranked) is None


def after_acts(answers: Answers) -> list[LoggedStep]:
    asked = ASKED + [list(names) for names in combinations(INNS, 3)]
    return [step._replace(after=(("move", "{}"),)) for step in steps(answers, asked, json.dumps)]


def test_parts_on_which_all_sessions_agree_hold_whatever_came_before() -> None:
    rule = parts.always_rule(after_acts(fixed))
    assert rule is not None and rule["always"]
    assert parts.always_rule([*after_acts(fixed), *after_acts(lambda names: dict.fromkeys(names, "closed"))[:1]]) is None
    assert parts.always_rule(steps(fixed, ASKED, json.dumps)) is None


def test_parts_that_always_hold_are_put_together_after_an_act() -> None:
    seen = after_acts(fixed)
    recorded = [{"tool": "rate", "arguments": step.call.key, "content": step.call.content, "is_error": False,
                 "after": [["move", "{}"]], "effects": [], "event": "", "session": None, "from": None, "to": None}
                for step in seen]
    unknown = {"effect": "unknown", "class": None, "relation": {}}
    programs = {"rate": {**unknown, "tool": "rate", "rules": [parts.always_rule(seen)]},
                "move": {**unknown, "tool": "move", "rules": []}}
    here = EpisodeState(World([], recorded), programs, View(None, frozenset()))
    here.call("move", {})
    assert here.call("rate", {"inns": list(INNS)}).content == json.dumps(fixed(list(INNS)))
