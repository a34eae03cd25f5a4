"""Playing a task with the real thing bound to a tool, and under conditions of production."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from env_builder.runtime.canonical import canonical
from pipelines import playing
from tests.rooms import OPEN, TASK, write_room
from warehouse.errors import InputError


@pytest.fixture
def room(tmp_path: Path) -> Path:
    made = write_room(tmp_path / "house")
    (made / "conditions.jsonl").write_text(canonical({
        "tool": "open_door", "n_calls": 9, "n_timed": 9, "latency_ms": [10.0, 40.0], "fault_rate": 1.0,
        "faults": [{"content": ["Error: busy"], "share": 1.0}]}) + "\n")
    return made


def test_a_bound_tool_and_a_fault_are_played(room: Path) -> None:
    moves = [{"tool": "read_sign", "arguments": {"at": "roof"}}, {"tool": "open_door", "arguments": {"door": "7"}}]
    begun = playing.begin(room, None, TASK, 3, ["latency", "faults"], ["read_sign=python:json:dumps"])
    with pytest.raises(TypeError):
        list(playing.played(begun, moves))
    begun = playing.begin(room, None, TASK, 3, ["latency", "faults"], ["read_sign=python:os.path:basename"])
    rows = list(playing.played(begun, [{"tool": "read_sign", "arguments": {"p": "a/roof"}}, moves[1]]))
    assert [(row["content"], row["tier"]) for row in rows] == [("roof", "bound"), ("Error: busy", "induced")]
    assert rows[1]["fault"] and 10 <= rows[1]["latency_ms"] <= 40 and "latency_ms" not in rows[0]
    plain = list(playing.played(playing.begin(room, None, TASK, 3), moves))
    assert plain[1]["content"] == OPEN and json.dumps(plain).count("latency") == 0


@pytest.mark.parametrize(("conditions", "bindings", "says"), [
    (["weather"], [], "faults, latency"), ([], ["fly=python:json:dumps"], "open_door, read_sign"),
    ([], ["read_sign=nope"], "python"),
    ([], ["read_sign=python:no_such_module:f"], "no_such_module"),
    ([], ["read_sign=python:json:nothing"], "nothing")])
def test_what_cannot_be_bound_or_switched_on_is_one_sentence(
    room: Path, conditions: list[str], bindings: list[str], says: str
) -> None:
    with pytest.raises(InputError, match=says):
        playing.begin(room, None, TASK, 0, conditions, bindings)
