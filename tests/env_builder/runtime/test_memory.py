"""Calls that are taken from memory are those that would be worked out, whatever is played, forked and taken back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from env_builder.runtime import Environment, episode
from env_builder.runtime.records import ToolAnswer
from tests.rooms import TASK, write_room

MOVES = st.sampled_from([
    ("call", "open_door", {"door": "7"}), ("call", "open_door", {"door": "8"}), ("call", "read_sign", {"at": "gate"}),
    ("call", "read_sign", {"at": "roof"}), ("call", "gone", {}), ("say", "and?"), ("back",), ("fork",), ("reset",)])


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_room(tmp_path_factory.mktemp("out") / "environments" / "house")


def _played(env: Environment, moves: list[tuple[object, ...]]) -> list[object]:
    env.reset(TASK)
    seen: list[object] = []
    for kind, *what in moves:
        if kind == "call":
            seen.append(env.call(str(what[0]), what[1]))
        elif kind == "say":
            seen.append(env.say(str(what[0])))
        elif kind == "back" and env.journal:
            env.rollback(len(env.journal) - 1)
        elif kind == "fork":
            left, env = env, env.fork()
            left.call("open_door", {"door": "7"})
        elif kind == "reset":
            env.reset(TASK)
        seen += [env.state_hash(), env.difference(), env.journal, env.unknown_writes, env.ended]
    return seen


@settings(max_examples=150, deadline=None)
@given(st.lists(st.lists(MOVES, max_size=9), min_size=1, max_size=4), st.integers(1, 12))
def test_memory_changes_nothing(directory: Path, episodes: list[list[tuple[object, ...]]], most: int) -> None:
    plain, remembering = Environment.load(directory), Environment.load(directory)
    remembering.remember(most)
    for moves in (*episodes, *episodes):
        assert _played(remembering, moves) == _played(plain, moves)


def test_a_call_is_worked_out_once(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env, worked_out = Environment.load(directory), []
    answer: Callable[..., ToolAnswer | None] = episode.answer

    def counted(program: dict[str, Any], *call: object) -> ToolAnswer | None:
        worked_out.append(program["tool"])
        return answer(program, *call)

    monkeypatch.setattr(episode, "answer", counted)
    env.remember()
    for _ in range(3):
        _played(env, [("call", "open_door", {"door": "7"}), ("call", "read_sign", {"at": "gate"})])
    assert worked_out == ["open_door", "read_sign"]
    env.bind("read_sign", lambda asked: "bound")
    _played(env, [("call", "read_sign", {"at": "elsewhere"}), ("reset",), ("call", "read_sign", {"at": "elsewhere"})])
    assert worked_out[2:] == ["read_sign", "read_sign"]  # what is bound may answer otherwise the next time


def test_what_is_bound_answers_after_a_way_back(directory: Path) -> None:
    env = Environment.load(directory)
    env.remember()
    env.reset(TASK)
    assert env.call("read_sign", {"at": "elsewhere"}).tier == "unknown"
    env.bind("read_sign", lambda asked: "bound")
    env.rollback(0)
    assert env.call("read_sign", {"at": "elsewhere"}).content == "bound"
    env.rollback(0)
    env.bind("read_sign", lambda asked: "bound anew")
    assert env.call("read_sign", {"at": "elsewhere"}).content == "bound anew"
