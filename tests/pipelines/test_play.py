"""Playing a task with the real thing bound to a tool, and under perturbations of production."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from env_builder.runtime.canonical import canonical
from pipelines import playing
from pipelines.resources import connect
from tests.endpoint import answering
from tests.rooms import OPEN, TASK, write_room
from warehouse.errors import InputError, Missing


@pytest.fixture
def room(tmp_path: Path) -> Path:
    made = write_room(tmp_path / "house")
    (made / "perturbations.jsonl").write_text(canonical({
        "tool": "open_door", "n_calls": 9, "n_timed": 9, "latency_ms": [10.0, 40.0], "fault_rate": 1.0,
        "faults": [{"content": ["Error: busy"], "share": 1.0}]}) + "\n")
    return made


def test_a_bound_tool_and_a_fault_are_played(room: Path) -> None:
    moves = [{"tool": "read_sign", "arguments": {"at": "roof"}}, {"tool": "open_door", "arguments": {"door": "7"}}]
    begun = playing.begin(room, None, TASK, 3, ["latency", "faults"], {"read_sign": "python:json:dumps"})
    refused = next(iter(playing.played(begun, moves)))
    assert (refused["content"], refused["tier"], refused["is_error"]) == ("missing a required argument: 'obj'", "bound", True)
    begun = playing.begin(room, None, TASK, 3, ["latency", "faults"], {"read_sign": "python:os.path:basename"})
    rows = list(playing.played(begun, [{"tool": "read_sign", "arguments": {"p": "a/roof"}}, moves[1]]))
    assert [(row["content"], row["tier"]) for row in rows] == [("roof", "bound"), ("Error: busy", "induced")]
    assert rows[1]["fault"] and 10 <= rows[1]["latency_ms"] <= 40 and "latency_ms" not in rows[0]
    plain = list(playing.played(playing.begin(room, None, TASK, 3), moves))
    assert plain[1]["content"] == OPEN and json.dumps(plain).count("latency") == 0


def test_a_switch_that_is_not_there_is_one_sentence(room: Path) -> None:
    with pytest.raises(InputError, match="faults, fresh, habits, latency"):
        playing.begin(room, None, TASK, 0, ["weather"])


@pytest.mark.parametrize(("option", "says"), [
    ("fly=python:json:dumps", "no tool 'fly'.*open_door, read_sign"), ("read_sign=nope", "http, mcp, python"),
    ("read_sign=magic:x", "http, mcp, python"), ("read_sign=python:no_such_module:f", "no_such_module"),
    ("read_sign=python:json:nothing", "nothing"), ("read_sign=python:/nowhere.py:f", "nowhere")])
def test_what_cannot_be_bound_is_one_sentence(room: Path, option: str, says: str) -> None:
    with pytest.raises((InputError, Missing), match=says):
        playing.begin(room, None, TASK, 0, [], playing.bindings(room, [option], None))


def test_the_configuration_binds_and_the_command_line_wins(room: Path, tmp_path: Path) -> None:
    told = tmp_path / "rooms.toml"
    told.write_text('[bindings]\nread_sign = "http:http://127.0.0.1:1/signs"\nfly = "mcp:elsewhere"\n')
    assert playing.bindings(room, [], str(told)) == {"read_sign": "http:http://127.0.0.1:1/signs"}
    assert playing.bindings(room, ["read_sign=python:json:dumps"], str(told)) == {"read_sign": "python:json:dumps"}
    told.write_text('[bindings]\nread_sign = "magic:signs"\n')
    with pytest.raises(InputError, match=r"rooms.toml: invalid source 'magic:signs' for the tool 'read_sign'"):
        playing.bindings(room, [], str(told))
    told.write_text('[bindings]\nread_sign = "signs"\n')
    with pytest.raises(InputError, match=r"rooms.toml: key 'bindings.read_sign': 'signs' is not KIND:WHAT; name what to bind"):
        playing.bindings(room, [], str(told))


def test_a_model_answers_what_is_unknown_where_asked_for(room: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replies = iter(['```json\n{"content": "it creaks", "is_error": false}\n```', '{"content": 7}', "no idea"])
    moves = [{"tool": "open_door", "arguments": {"door": name}} for name in ("9", "7", "8", "6")]
    with answering(lambda prompt: next(replies)) as endpoint:
        begun = playing.begin(room, None, TASK, 0, ask=connect(endpoint.url, "small", "k"))
        rows = list(playing.played(begun, moves))
        assert [(row["content"], row["tier"]) for row in rows[:2]] == [("it creaks", "model"), (OPEN, "recorded")]
        assert [row["tier"] for row in rows[2:]] == ["unknown", "unknown"], "what is no answer is none"
        assert len(endpoint.asked) == 3, "what is known is not asked"
        first, last = (endpoint.asked[at]["messages"][0]["content"] for at in (0, -1))
        assert OPEN in first and "it creaks" not in first and 'open_door {"door":"9"}\n-> it creaks' in last
    room_of = begun.environment
    assert [row["tier"] for row in room_of.unknown_writes] == ["model", "unknown", "unknown"]
    assert room_of.difference()["documents"] == {"door/7": OPEN}
    judged = room_of.replay(TASK, room_of.journal)
    assert [row["tier"] for row in judged.unknown_writes] == ["unknown"] * 3, "the grader asks no model"
    monkeypatch.delenv("TRACEROOM_MODEL", raising=False)
    monkeypatch.delenv("TRACEROOM_MODEL_URL", raising=False)
    assert playing.live(False) is None
    monkeypatch.setenv("TRACEROOM_MODEL", "small")
    monkeypatch.setenv("TRACEROOM_MODEL_URL", "http://127.0.0.1:9/v1")
    (alone,) = playing.played(playing.begin(room, None, TASK, 0, ask=playing.live(True)), moves[:1])
    assert alone["tier"] == "unknown", "nobody is at the endpoint"
    monkeypatch.delenv("TRACEROOM_MODEL")
    monkeypatch.delenv("TRACEROOM_MODEL_URL")
    with pytest.raises(InputError, match="--ask: no model is configured"):
        playing.live(True)
