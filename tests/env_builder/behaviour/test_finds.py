"""Things found by what stands in them, and rows that lists of answers hold."""

from __future__ import annotations

import json
from typing import Any

from env_builder.behaviour import finds
from env_builder.runtime.episode import EpisodeState
from env_builder.runtime.programs import Program
from env_builder.runtime.tables import Table, agreed, rows_in
from env_builder.runtime.world import View, World
from env_builder.world import documents
from env_builder.world.replay import LoggedStep
from tests.env_builder.world.calls import call

KEEPERS = {f"K-{n}": {"name": {"first": f"First{n}", "last": f"Last{n % 3}"}, "tower": n} for n in range(8)}
TIDES = [{"port": f"P{n % 4}", "height": n, "tide": ["low", "high"][n % 2]} for n in range(8)]


def step(tool: str, arguments: dict[str, Any], content: str, shown: tuple[str, str, str] | None = None) -> LoggedStep:
    return LoggedStep(call(tool, arguments, content), (), shown, False, False, None, ())


def looks() -> list[LoggedStep]:
    return [step("look", {"keeper": key}, json.dumps(one), ("look", key, json.dumps(one))) for key, one in KEEPERS.items()]


def asked(key: str) -> LoggedStep:
    name = KEEPERS[key]["name"]
    assert isinstance(name, dict)
    return step("who_is", {"given": name["first"], "family": name["last"]}, f'{{"keeper":"{key}"}}')


def room(programs: dict[str, list[dict[str, Any]]], recorded: list[dict[str, Any]]) -> EpisodeState:
    facts = [{"class": "look", "key": key, "value": json.dumps(one), "session": None, "from": None, "to": None}
             for key, one in KEEPERS.items()]
    made: dict[str, Program] = {
        tool: {"tool": tool, "effect": "read", "class": None, "relation": {}, "rules": rules}
        for tool, rules in programs.items()}
    return EpisodeState(World(facts, recorded), made, View(None, frozenset()))


def test_finds_a_thing_by_the_fields_that_hold_the_arguments() -> None:
    (rule,) = finds.find_rules([asked(f"K-{n}") for n in range(6)], finds.ShownRecords(looks(), {}))
    assert rule["by"] == [[["name", "last"], "family"], [["name", "first"], "given"]] and rule["stable"]
    answers = room({"who_is": [rule]}, [])
    assert answers.call("who_is", {"given": "First7", "family": "Last1"}) == ('{"keeper":"K-7"}', False, "derived")
    assert answers.call("who_is", {"given": "First7", "family": "Last2"}).tier == "unknown"
    assert answers.call("who_is", {"given": "First7"}).tier == "unknown"


def test_says_nothing_where_two_things_hold_the_arguments_or_too_few_were_known() -> None:
    by_family = [step("kin", {"family": f"Last{n % 3}"}, f'{{"keeper":"K-{n}"}}') for n in range(6)]
    rules = finds.find_rules([one._replace(call=one.call._replace(key=f"{n}")) for n, one in enumerate(by_family)],
                         finds.ShownRecords(looks(), {}))
    assert room({"kin": rules}, []).call("kin", {"family": "Last1"}).tier == "unknown"
    assert finds.find_rules([asked(f"K-{n}") for n in range(4)], finds.ShownRecords(looks(), {})) == []


def test_speaks_of_rows_that_other_tools_listed_and_of_those_it_was_taught() -> None:
    listed = [step("tides", {"day": f"day {day}"}, json.dumps(TIDES)) for day in range(3)]
    rule = documents.find_rows([one.call for one in listed])["tides"]
    assert rule == {"rule": "rows", "class": "tides[]", "depth": 1, "columns": ["day"]}
    known = finds.ShownRecords([], documents.tables([one.call for one in listed], {"tides": rule}))
    told = [step("tide_at", {"harbour": f"P{n % 4}", "metres": n, "when": "day 1"}, ["low", "high"][n % 2]) for n in range(8)]
    (find,) = finds.find_rules(told, known)
    answers = room({"tide_at": [find], "tides": [rule]}, [])
    question = {"harbour": "P9", "metres": 77, "when": "day 9"}
    assert answers.call("tide_at", question).tier == "unknown"
    answers.learn("tides", {"day": "day 9"}, json.dumps([{"port": "P9", "height": 77, "tide": "spring"}]))
    assert answers.call("tide_at", question) == ("spring", False, "derived")


def test_a_list_of_records_within_a_list_is_no_row_of_cells() -> None:
    ways = [step("ways", {"day": f"day {day}"}, json.dumps([TIDES, TIDES[:1]])) for day in range(3)]
    assert documents.find_rows([one.call for one in ways])["ways"]["depth"] == 2
    cells = [step("cells", {"day": f"day {day}"}, json.dumps([["P1", 3, None], ["P2", 4, ["high"]]])) for day in range(3)]
    assert documents.find_rows([one.call for one in cells])["cells"]["depth"] == 1


def test_of_a_row_only_that_is_known_which_all_answers_agree_on() -> None:
    rule = {"depth": 2, "columns": ["day"]}
    shown = [*rows_in(rule, {"day": "d1"}, [[{"port": "P1", "left": {"a": 3, "b": 1}, "day": None}]]),
             *rows_in(rule, {"day": "d1"}, [[{"port": "P1", "left": {"a": 2, "b": 1}}], [{"port": "P2", "day": "d2"}]])]
    assert agreed(Table(shown).matching([(("port",), "P1"), (("day",), "d1")])) == {"port": "P1", "left": {"b": 1}, "day": "d1"}
    assert Table(shown).matching([(("day",), "d2")]) == [{"port": "P2", "day": "d2"}]
    assert agreed([]) is None


def test_a_real_answer_of_a_tool_that_nothing_explains_is_understood() -> None:
    """By the argument that names the thing, or, of a tool that makes things, by the thing's own field."""
    document = {"rule": "document", "class": "look", "argument": "keeper", "before": "", "after": ""}
    shows = {"rule": "shows", "class": "look", "field": "id", "before": "<", "after": ">"}
    answers = room({"look": [document], "hire": [{**shows, "argument": None}], "move": [{**shows, "argument": "who"}]}, [])
    for tool in ("hire", "move"):
        answers._programs[tool]["effect"] = "write"
    assert answers.call("look", {"keeper": "K-77"}).tier == "unknown"
    answers.call("hire", {"name": "Eve"})
    answers.learn("hire", {"name": "Eve"}, '<{"id": "K-77", "tower": 1}>')
    assert answers.call("look", {"keeper": "K-77"}).content == '{"id": "K-77", "tower": 1}'
    answers.call("move", {"who": "K-77"})
    answers.learn("move", {"who": "K-77"}, '<{"id": "K-77", "tower": 2}>')
    assert answers.call("look", {"keeper": "K-77"}).content == '{"id": "K-77", "tower": 2}'
    answers.learn("move", {"who": "K-77"}, "no such keeper")
    assert answers.call("look", {"keeper": "K-77"}).tier == "unknown"
