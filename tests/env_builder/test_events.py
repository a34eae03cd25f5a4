"""Steps of other people: when the log says they happened, and that the environment plays them then, never the agent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from env_builder.events import events_of
from env_builder.runtime import Environment
from env_builder.runtime.canonical import canonical
from env_builder.runtime.user import ScriptedUser, UserProgress
from env_builder.users import scripts
from tests.env_builder.test_users import task, turn
from tests.rooms import CLOSED, OPEN, TASK, write_rewards, write_room
from warehouse.records import Task, Turn, frame

PRESS: dict[str, Any] = {"tool": "open_door", "arguments": {"door": "7"}}
Row = tuple[Any, ...]


def call(tool: str, by_agent: bool, content: str = "ok", is_error: bool | None = None) -> Row:
    return "call", None, by_agent, tool, "{}", content, is_error


def says(role: str, text: str = "…") -> Row:
    return "message", role, role == "assistant", None, None, text, None


def test_an_event_belongs_to_the_words_that_follow_it() -> None:
    events = events_of([says("user"), says("assistant"), says("user"), says("assistant"), call("press", False),
                        call("turn", False), says("user"), says("assistant")])
    assert {place: [each["tool"] for each in own] for place, own in events.by_turn.items() if own} == {1: ["press", "turn"]}
    assert not events.by_call and not events.unplaced


def test_a_silent_event_follows_the_agents_call_and_nothing_follows_words() -> None:
    events = events_of([says("user"), call("look", True), call("press", False), says("assistant"), call("turn", False)])
    assert events.by_call == [{"after": {"tool": "look", "arguments": {}}, "tool": "press", "arguments": {}}]
    assert events.unplaced == ["turn"]


def test_what_failed_is_no_event_and_what_comes_first_has_no_moment() -> None:
    events = events_of([call("press", False), says("user"), says("assistant"), call("turn", False, "Error: stuck"),
                        call("lift", False, is_error=True), says("user")])
    assert events.unplaced == ["press"] and not any(events.by_turn.values())


def test_a_turn_that_comes_with_an_event_is_never_said_unasked() -> None:
    turns = [turn(0, "user", "The door is stuck"), turn(1, "assistant", "Push the button."),
             turn(2, "user", "open", tool="open_door", arguments='{"door": "7"}', requestor="user"),
             turn(3, "user", "I did"), turn(4, "assistant", "Good")]
    row = json.loads(scripts(frame(Task, [task()]), frame(Turn, turns))["script"][0])
    assert row["events"] == [{"turn": 0, **PRESS}]
    user = ScriptedUser(row)
    assert user.reply(UserProgress(), "ok")[1] != "I did"
    assert user.reply(UserProgress(), "How can I help you?")[1] != "I did"
    assert user.reply(UserProgress(), "Push the button.")[1] == "I did"


@pytest.fixture
def room(tmp_path: Path) -> Path:
    directory = write_room(tmp_path / "environments" / "hall")
    write_rewards(directory)
    return directory


def load(room: Path, *events: dict[str, Any]) -> Environment:
    path = room / "tasks.jsonl"
    row = json.loads(path.read_text("utf-8"))
    path.write_text(canonical(row | {"user": row["user"] | {"events": list(events)}}) + "\n", "utf-8")
    environment = Environment.load(room)
    environment.reset(TASK)
    return environment


def test_the_environment_plays_an_event_with_the_words_it_belongs_to(room: Path) -> None:
    environment = load(room, {"turn": 0, **PRESS})
    assert environment.read("door/7") == (CLOSED, CLOSED)
    assert environment.say("Which one?") == "The seventh, please."
    assert environment.difference()["documents"] == {"door/7": OPEN}
    assert [row["kind"] for row in environment.journal] == ["say"], "it is no step of the agent"
    assert environment.grade().reward == 1
    assert environment.grade_journal(TASK, environment.journal).reward == 1, "the grader plays it too"
    environment.rollback(0)
    assert environment.difference()["documents"] == {}


def test_an_agent_that_does_not_get_the_user_to_act_earns_nothing(room: Path) -> None:
    environment = load(room, {"turn": 0, **PRESS})
    environment.call("read_sign", {"at": "gate"})
    environment.finish()
    assert environment.grade().reward == 0


@pytest.mark.parametrize("n_calls", [1, 2])
def test_an_event_follows_the_first_such_call_of_the_agent(room: Path, n_calls: int) -> None:
    environment = load(room, {"after": {"tool": "read_sign", "arguments": {"at": "gate"}}, **PRESS})
    environment.remember()
    environment.reset(TASK)
    for _ in range(n_calls):
        environment.call("read_sign", {"at": "gate"})
    assert environment.difference() == {"documents": {"door/7": OPEN}, "write_calls": []}
