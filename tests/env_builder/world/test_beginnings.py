"""Whether sessions that begin anew are told the same, and what speaks for all of them."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder import behaviour
from env_builder.behaviour.always import sure_by_tool
from env_builder.rooms import rows_of
from env_builder.runtime.episode import EpisodeState
from env_builder.runtime.world import View, World
from env_builder.world import build as build_world
from env_builder.world import documents, effects, replay
from env_builder.world.beginnings import Beginnings, FirstLook, foretold
from env_builder.world.calls import LoggedCall
from env_builder.world.replay import LoggedStep
from tests.env_builder.world.calls import call
from tests.lockers import turn
from warehouse.records import Session, Tool, Turn, empty, frame


def looks(kind: str, *texts: str, subject: str = "x") -> list[FirstLook]:
    return [FirstLook(kind, subject, f"s{n}", text) for n, text in enumerate(texts)]


@pytest.mark.parametrize(("texts", "expected"), [("a", (0, 0)), ("aa", (2, 2)), ("ab", (2, 0)), ("aab", (3, 0)),
                                                 ("a" * 9 + "b", (10, 9))])
def test_each_session_is_held_against_all_others(texts: str, expected: tuple[int, int]) -> None:
    assert foretold(Counter(texts)) == expected


def test_what_one_session_saw_is_judged_by_the_looks_of_its_kind() -> None:
    begun = Beginnings([*looks("rules", *"a" * 12), *looks("status", *"abcabcabc"), *looks("status", "z", subject="y")])
    assert begun.speak_for_all("rules", 1, 1) and not begun.speak_for_all("status", 1, 1)
    assert not begun.speak_for_all("never called", 1, 1), "the kinds of the service differ"
    assert begun.speak_for_all("status", 20, 20), "these agree, whatever the rest of the kind"


def test_what_a_write_call_answers_is_judged_beside_the_looks_of_the_class_that_it_shows() -> None:
    begun = Beginnings([*looks("locker", *"a" * 12), *looks("rent", *"abcabc"), *looks("rules", *"a" * 9)])
    assert min(begun.chances("locker", "rent")) == begun.chance("rent") < begun.chance("locker")
    assert begun.chances("locker", "close") == [begun.chance("locker")], "it was never called before the session acted"
    assert begun.chances(None, "close") == [begun.chance("close")]


def test_where_no_look_was_repeated_nobody_speaks_for_others() -> None:
    assert not Beginnings([FirstLook("status", f"q{n}", f"s{n}", "a") for n in range(40)]).speak_for_all("status", 1, 1)


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=30))
def test_no_more_are_foretold_than_looked(texts: list[str]) -> None:
    n, n_foretold = foretold(Counter(texts))
    assert 0 <= n_foretold <= n <= len(texts)


def steps(calls: list[LoggedCall]) -> list[LoggedStep]:
    found = documents.find(calls)
    return list(replay.steps(calls, found, replay.skeletons(calls, found, effects.find(calls, found, False, {}), False)))


SIGHT = '{{"sight": "{0}", "lamps": 7, "is_dark": false}}'


def session(name: str, word: str) -> list[LoggedCall]:
    """Return a session of a machine in a state of its own: looking around says what is there, going somewhere says where."""
    looking = [call("look", {"deep": True}, SIGHT.format(word), name, place) for place in range(2)]
    return [*looking, *(call("go", {"to": to}, f"now in {to}", name, place) for place, to in enumerate(("north", "south"), 2))]


def test_a_tool_that_answers_every_session_alike_is_known_by_leaving_sessions_out() -> None:
    calls = [one for n in range(40) for one in session(f"s{n}", f"word{n % 20}")]
    kinds = {tool: sure["kinds"] for tool, sure in sure_by_tool(steps(calls)).items()}
    assert kinds["go"] == ["first", "later"] and "look" not in kinds


def machine(n: int) -> EpisodeState:
    sessions = [session(f"s{number}", f"word{number % 20}") for number in range(n)]
    turns = [turn(each.session_id, each.position, None, each.tool, each.arguments, each.content)
             for own in sessions for each in own]
    heads = [{"session_id": f"s{number}", "source": "main", "service": "main", "n_messages": 0, "n_calls": 4, "format": "test"}
             for number in range(n)]
    blank = dict.fromkeys(Session.model_fields)
    built = build_world(frame(Session, [blank | head for head in heads]), frame(Turn, turns), empty(Tool), {"main": "reset"})
    rows = rows_of("main", built.facts, built.recorded, behaviour.induce(built, empty(Tool)))
    return EpisodeState(World(rows.facts, rows.recorded), {row["tool"]: row for row in rows.programs}, View(None, frozenset()))


def test_an_environment_says_what_all_were_told_and_forgets_what_one_was_taught() -> None:
    played = machine(40)
    assert played.call("look", {"deep": True}).tier == "unknown"
    played.learn("look", {"deep": True}, SIGHT.format("word7"))
    assert played.call("look", {"deep": True}).content == SIGHT.format("word7")
    after = played.next_episode(View(None, frozenset()), from_reset=True)
    assert after.call("look", {"deep": True}).tier == "unknown", "the next session begins from another state"
    after.call("go", {"to": "south"})
    assert after.call("go", {"to": "north"}).content == "now in north", "whatever came before"
