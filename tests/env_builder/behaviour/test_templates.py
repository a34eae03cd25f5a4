"""Sentences that tools answer with: slots told from text, numbers written in more than one way, and what is not answered."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder.behaviour import templates
from env_builder.runtime.episode import EpisodeState
from env_builder.runtime.world import View, World
from env_builder.world.replay import LoggedStep
from tests.env_builder.world.calls import call

WORDS = st.text("abcdefgh é\"\\", min_size=1, max_size=8)


def step(tool: str, arguments: dict[str, Any], content: str) -> LoggedStep:
    return LoggedStep(call(tool, arguments, content), (), None, True, True, None, ())


def say(rule: dict[str, Any], arguments: dict[str, Any]) -> str | None:
    return room(rule).call("hoist", arguments).content if room(rule).call("hoist", arguments).tier == "induced" else None


def room(rule: dict[str, Any]) -> EpisodeState:
    program = {"tool": "hoist", "effect": "unknown", "class": None, "relation": {}, "rules": [rule]}
    return EpisodeState(World([], []), {"hoist": program}, View(None, frozenset()))


def sails(n: int) -> list[LoggedStep]:
    return [
        step("hoist", {"mast": f"mast {index}", "metres": float(index)}, f"Sail on mast {index} hoisted {float(index)} m.")
        for index in range(1, n + 1)]


def test_slots_are_told_from_text() -> None:
    rule = templates.text_rule(sails(6))
    assert rule is not None
    assert rule["pieces"] == ["Sail on ", ["argument", "mast"], " hoisted ", ["argument", "metres"], " m."]
    assert say(rule, {"mast": "mast 77", "metres": 2.5}) == "Sail on mast 77 hoisted 2.5 m."


def test_too_few_questions_or_an_answer_that_no_slot_explains_give_no_sentence() -> None:
    assert templates.text_rule(sails(1)) is None
    again = step("hoist", {"mast": "mast 1", "metres": 5.5}, "Sail on mast 1 hoisted 5.5 m.")
    assert templates.text_rule([*sails(3), again]) is None
    assert templates.text_rule([*sails(6), step("hoist", {"mast": "mast 9", "metres": 1.0}, "Torn.")]) is None


def test_two_questions_that_share_no_value_are_enough_for_the_first_call_where_all_that_was_given_is_repeated() -> None:
    """What such a tool says the second time may have another number in it."""
    rule = templates.text_rule(sails(2))
    assert rule is not None
    here, asked = room(rule), {"mast": "mast 7", "metres": 2.5}
    assert here.call("hoist", asked).content == "Sail on mast 7 hoisted 2.5 m."
    assert here.call("hoist", {**asked, "metres": 3.5}).tier == "unknown"
    assert templates.text_rule([one._replace(call=one.call._replace(content="Hoisted.")) for one in sails(2)]) is None


def test_where_two_ways_of_writing_a_number_were_seen_only_what_both_write_alike_is_said() -> None:
    given_whole = [step("hoist", {"mast": "mast 1", "metres": 3}, f"Sail on mast 1 hoisted {text} m.") for text in ("3", "3.0")]
    rule = templates.text_rule([*sails(6), *given_whole])
    assert rule is not None
    assert say(rule, {"mast": "mast 1", "metres": 4}) is None
    assert say(rule, {"mast": "mast 1", "metres": 4.5}) == "Sail on mast 1 hoisted 4.5 m."
    told = room(rule)
    told.call("hoist", {"mast": "mast 1", "metres": 2})
    told.learn("hoist", {"mast": "mast 1", "metres": 2}, "Sail on mast 1 hoisted 2.0 m.")
    assert told.call("hoist", {"mast": "mast 1", "metres": 4}).content == "Sail on mast 1 hoisted 4.0 m."
    assert told.next_episode(told.view, from_reset=True).call("hoist", {"mast": "mast 1", "metres": 4}).tier == "unknown"


@pytest.mark.parametrize("arguments", [{"mast": "mast 2"}, {"mast": None, "metres": 1.0}, {"mast": "mast 2", "metres": "1"}])
def test_arguments_unlike_those_that_worked_are_not_answered(arguments: dict[str, Any]) -> None:
    rule = templates.text_rule(sails(6))
    assert rule is not None and say(rule, arguments) is None


def test_a_failure_takes_the_freedom_of_a_slot_away() -> None:
    few = [step("hoist", {"mast": f"mast {index % 2}", "metres": float(index)}, f"Sail on mast {index % 2} hoisted.")
           for index in range(8)]
    failed = step("hoist", {"mast": "mast 5", "metres": 1.0}, "Error: no such mast")
    free, bound = templates.text_rule(few), templates.text_rule([*few, failed])
    assert free is not None and say(free, {"mast": "mast 5", "metres": 1.0}) == "Sail on mast 5 hoisted."
    assert bound is not None and say(bound, {"mast": "mast 5", "metres": 1.0}) is None


@given(st.lists(st.tuples(WORDS, WORDS), min_size=6, max_size=8, unique_by=lambda pair: pair[0]))
def test_what_is_found_gives_every_answer_back(pairs: list[tuple[str, str]]) -> None:
    seen = [step("note", {"of": one, "by": other}, f"<{one}> was noted by <{other}>.") for one, other in pairs]
    rule = templates.text_rule(seen)
    assert rule is not None
    assert all(say(rule, one.call.arguments) == one.call.content for one in seen)


def berths(names: list[str]) -> list[LoggedStep]:
    return [step("moor", {"at": name}, f"Moored at {name}.") for name in names]


def test_a_name_with_signs_that_were_never_seen_is_not_answered() -> None:
    rule = templates.text_rule(berths(["east1", "west", "north22", "south", "inner"]))
    assert rule is not None
    assert rule["when"]["signs"] == {"at": ["w"]}
    assert say(rule, {"at": "outer9"}) == "Moored at outer9."
    assert [say(rule, {"at": name}) for name in ("outer/9", "outer.9", "..", "")] == [None] * 4


def test_prose_and_names_of_many_kinds_may_have_any_signs() -> None:
    rule = templates.text_rule(berths(["east.1", "west/b", "north-2", "south+c", "inner_", "a=b"]))
    assert rule is not None
    assert say(rule, {"at": "o'er"}) == "Moored at o'er."
    rule = templates.text_rule(berths([f"quay {name}" for name in "abcdef"]))
    assert rule is not None
    assert say(rule, {"at": "quay g, at the end!"}) == "Moored at quay g, at the end!."


def test_the_sentence_of_the_usual_names_answers_no_others() -> None:
    usual = berths(["east1", "west", "north22", "south", "inner"])
    back = step("moor", {"at": ".."}, "Gone.")
    rule = templates.text_rule([*usual, back, back])
    assert rule is not None
    assert (say(rule, {"at": "outer"}), say(rule, {"at": ".."}), say(rule, {"at": "."})) == ("Moored at outer.", None, None)
    others = [step("moor", {"at": f"..{name}"}, "Gone.") for name in "abcd"]
    assert templates.text_rule([*usual, *others]) is None, "five of nine are too few to be the usual ones"
    assert templates.text_rule([*usual, step("moor", {"at": "wreck"}, "Gone.")]) is None, "its signs do not tell it apart"


def test_an_empty_text_has_its_place_in_the_sentence() -> None:
    bare = step("hoist", {"mast": "", "metres": 7.0}, "Sail on  hoisted 7.0 m.")
    rule = templates.text_rule([*sails(6), bare])
    assert rule is not None and say(rule, {"mast": "", "metres": 8.0}) == "Sail on  hoisted 8.0 m."
    other = step("hoist", {"mast": "", "metres": 7.0}, "Sail on nothing hoisted 7.0 m.")
    assert templates.text_rule([*sails(6), other]) is None
