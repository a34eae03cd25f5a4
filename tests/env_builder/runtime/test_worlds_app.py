"""Episodes of a service whose sessions are of several worlds: in their own, or in all of them until it is known which."""

from __future__ import annotations

from typing import Any

import pytest

from env_builder.runtime.apps import Start
from env_builder.runtime.apps.records import RecordsApp
from env_builder.runtime.apps.worlds import SessionsApp, WorldsApp
from env_builder.runtime.world import World

SHOW = {"tool": "show", "effect": "read", "class": "locker", "relation": {}, "rules": [
    {"rule": "document", "class": "locker", "argument": "locker", "before": "", "after": ""}]}


def app(**owners: str) -> RecordsApp:
    facts: list[dict[str, Any]] = [
        {"class": "locker", "key": key, "value": f'{{"owner": "{owner}"}}', "from": None, "to": None, "session": None}
        for key, owner in owners.items()]
    return RecordsApp("records", {"show": SHOW}, World(facts, ()))


@pytest.fixture
def worlds() -> WorldsApp:
    return WorldsApp(app(), [
        SessionsApp(app(a="Ann", b="Bob", c="Cay"), frozenset(("s1", "s2"))),
        SessionsApp(app(a="Ann", b="Ben", c="Con", d="Dan"), frozenset(("s3",)))])


def show(state: Any, key: str) -> str | None:
    result = state.call("show", {"locker": key})
    return None if result.tier == "unknown" else result.content


def test_a_task_begins_in_the_world_of_its_sessions(worlds: WorldsApp) -> None:
    assert show(worlds.reset(Start(None, frozenset(("s1", "s2")))), "b") == '{"owner": "Bob"}'
    assert show(worlds.reset(Start(None, frozenset(("s3",)))), "b") == '{"owner": "Ben"}'


@pytest.mark.parametrize("sessions", [("s9",), ("s1", "s3")])
def test_a_session_of_no_world_is_told_nothing_of_one(worlds: WorldsApp, sessions: tuple[str, ...]) -> None:
    assert show(worlds.reset(Start(None, frozenset(sessions))), "b") is None


def test_an_open_episode_answers_what_all_worlds_tell(worlds: WorldsApp) -> None:
    state = worlds.reset(Start(None))
    assert [show(state, key) for key in "abd"] == ['{"owner": "Ann"}', None, None]


def test_an_open_episode_answers_what_holds_for_all_sessions_where_no_world_tells_otherwise() -> None:
    worlds = [SessionsApp(app(a="Ann", b="Bob"), frozenset(("s1",))), SessionsApp(app(c="Cay"), frozenset(("s2",)))]
    state = WorldsApp(app(a="Amy", b="Bob", d="Dan"), worlds).reset(Start(None))
    assert [show(state, key) for key in "abcd"] == [None, '{"owner": "Bob"}', None, '{"owner": "Dan"}']


@pytest.fixture
def mostly_one() -> WorldsApp:
    return WorldsApp(app(), [
        SessionsApp(app(b="Bob", c="Cay"), frozenset(f"s{n}" for n in range(9))),
        SessionsApp(app(b="Ben", c="Con"), frozenset(("t1",)))])


def test_an_open_episode_begins_where_nearly_all_sessions_are(mostly_one: WorldsApp) -> None:
    state = mostly_one.reset(Start(None))
    assert show(state, "b") == '{"owner": "Bob"}'
    state.learn("show", {"locker": "b"}, '{"owner": "Ben"}')
    assert show(state, "c") == '{"owner": "Con"}', "what was learnt tells that it is the other world"
    assert show(mostly_one.next_episode(state, Start(None), True), "c") == '{"owner": "Cay"}', "the next one begins as usual"


def test_what_was_learnt_in_a_world_stays_known_there(mostly_one: WorldsApp) -> None:
    state = mostly_one.reset(Start(None))
    assert show(state, "e") is None
    state.learn("show", {"locker": "e"}, '{"owner": "Eve"}')
    later = mostly_one.next_episode(state, Start(None), True)
    assert show(later, "e") == '{"owner": "Eve"}'
    later.call("show", {"locker": "b"})
    later.learn("show", {"locker": "b"}, '{"owner": "Ben"}')
    assert show(later, "e") is None, "the other world never showed it"


@pytest.mark.parametrize(("owner", "expected"), [("Bob", ["Cay", None]), ("Ben", ["Con", "Dan"]), ("Zoe", [None, None])])
def test_what_is_learnt_tells_the_world(worlds: WorldsApp, owner: str, expected: list[str | None]) -> None:
    state = worlds.reset(Start(None))
    show(state, "b")
    state.learn("show", {"locker": "b"}, f'{{"owner": "{owner}"}}')
    assert [show(state, key) for key in "cd"] == [name and f'{{"owner": "{name}"}}' for name in expected]
    assert show(state, "b") == f'{{"owner": "{owner}"}}', "what was told is known in every world"


def test_what_only_one_world_knows_does_not_tell_it(worlds: WorldsApp) -> None:
    state = worlds.reset(Start(None))
    show(state, "d")
    state.learn("show", {"locker": "d"}, '{"owner": "Dan"}')
    assert show(state, "b") is None


def test_the_next_open_episode_forgets_the_world(worlds: WorldsApp) -> None:
    state = worlds.reset(Start(None))
    show(state, "b")
    state.learn("show", {"locker": "b"}, '{"owner": "Bob"}')
    fork = state.fork()
    assert show(fork, "c") == '{"owner": "Cay"}'
    assert show(worlds.next_episode(state, Start(None), True), "c") is None
