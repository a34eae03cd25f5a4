"""Exports for trainers: tools as methods, turns as text, and arguments that come back as they went."""

from __future__ import annotations

import importlib
import inspect
import json
import shutil
import sys
import typing
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder.exports import RoomExporter, export_room, registered
from env_builder.exports.adapters import play
from env_builder.exports.kit import Kit, kit_of
from tests.rooms import OPEN, TASK, write_rewards, write_room

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=6)
ODD = {"door": {"type": "string"}, "from": {"type": "integer"}, "x-y": {"enum": ["a", "b"]},
       "self": {"type": ["number", "null"]},
       "x_y": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer"}}}}, "_p": {},
       "why": {"type": "string", "description": "Say why.\nArgs: none (choices: any) NoReturns: x"},
       "m²": {"type": ["string", "integer"]}}


@pytest.fixture
def kit(tmp_path: Path) -> Kit:
    room = write_room(tmp_path / "environments" / "a-desk")
    tools = [json.loads(line) for line in (room / "tools.jsonl").open(encoding="utf-8")]
    tools[0]["inputSchema"] = {"type": "object", "properties": ODD, "required": ["door"]}
    (room / "tools.jsonl").write_text("".join(json.dumps(tool) + "\n" for tool in tools), "utf-8")
    return kit_of(room, write_rewards(room))


@pytest.fixture
def package(kit: Kit, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    export_room("trl", tmp_path / "trl", kit)
    monkeypatch.syspath_prepend(tmp_path / "trl")
    yield importlib.import_module("traceroom_a_desk.trl_room")
    for name in [name for name in sys.modules if name.startswith("traceroom_a_desk")]:
        del sys.modules[name]


def test_arguments_of_a_method_reach_the_tool_as_they_were_given(package: ModuleType) -> None:
    room = package.TrlEnvironment()
    room.reset(task_id=TASK)
    odd = {"door": "7", "from": 3, "x-y": "a", "self": None, "x_y": [{"n": 1, "m": None}], "why": "", "m²": "7"}
    names = list(inspect.signature(room.open_door).parameters)
    assert len(names) == len(ODD) and all(name.isidentifier() for name in names)
    room.open_door(**{name: odd[own] for name, own in zip(names, ODD, strict=True) if own in odd})
    room.open_door(**{"door": "7", "not in the schema": {"a": [1]}})
    journal = room._playing().journal()
    assert [row["arguments"] for row in journal] == [odd, {"door": "7", "not in the schema": {"a": [1]}}]


def test_methods_tell_what_the_schema_tells(package: ModuleType) -> None:
    method = package.TrlEnvironment.open_door
    hints = typing.get_type_hints(method)
    assert hints["door"] is str and hints["return"] is str and hints["from_"] is int
    assert typing.get_args(hints["x_y"]) == ("a", "b") and hints["x_y_"] == list[dict]
    required = [each.name for each in inspect.signature(method).parameters.values() if each.default is inspect.Parameter.empty]
    assert required == ["self", "door"]
    assert hints["m_"] is typing.Any and '{"type": ["string", "integer"]}' in method.__doc__, "a text stays a text"
    assert method.__doc__.count("Args:") == 1 and "Returns:" not in method.__doc__ and "(choices" not in method.__doc__
    assert {"reset", "open_door", "read_sign", "say"} == {
        name for name, _ in inspect.getmembers(package.TrlEnvironment, inspect.isfunction) if not name.startswith("_")}


def test_the_reward_hears_the_last_words_and_grades(package: ModuleType) -> None:
    rooms = [package.TrlEnvironment(), package.TrlEnvironment(), package.GradedTrlEnvironment()]
    for room in rooms:
        room.reset(task_id=TASK, seed=0, digest="a column of the row")
    assert rooms[0].say(text="Which door?") == "The seventh, please."
    assert rooms[0].open_door(door="7") == OPEN
    said = [{"role": "assistant", "content": "It is open."}]
    assert package.reward(completions=[said, said], environments=rooms[:2], task_id=[TASK, TASK]) == [1.0, 0.0]
    assert rooms[0]._playing().journal()[-2]["content"] == "It is open."
    rooms[2].open_door(door="7")
    assert rooms[2].get_reward() == 1.0


@given(st.text(), st.dictionaries(st.text(), JSON, max_size=4), st.text(alphabet="ab <>/\n"))
def test_calls_written_as_text_come_back_as_they_were(name: str, arguments: dict[str, Any], words: str) -> None:
    written = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False).replace("<", "\\u003c")
    text = f"<think>a thought with <tool_call>{{}}</tool_call></think>{words}\n<tool_call>\n{written}\n</tool_call>"
    assert play.calls_of(text) == [(name, arguments)]
    assert play.words_of(text) == words.strip()


def test_what_is_no_call_is_refused_and_ends_nothing(kit: Kit, tmp_path: Path) -> None:
    from env_builder.exports.kit import lay

    lay(kit, tmp_path / "laid")
    episode = play.open(tmp_path / "laid").begin(TASK)
    broken = "<tool_call>{not JSON</tool_call><tool_call>[1]</tool_call><tool_call>{\"name\": \"open_door\", \"arguments\": 3}"
    taken = episode.take(play.words_of(broken), play.calls_of(broken))
    assert len(taken.answers) == 3 and not taken.over and episode.journal() == []
    assert episode.take("", []).over and episode.reward() == 0.0


def test_a_kit_grades_when_an_equal_one_that_was_opened_first_has_gone(kit: Kit, tmp_path: Path) -> None:
    from env_builder.exports.kit import lay

    for name in [name for name in sys.modules if name.startswith("traceroom_runtime_")]:
        del sys.modules[name]
    for place in ("first", "second"):
        lay(kit, tmp_path / place)
    play.open(tmp_path / "first")
    shutil.rmtree(tmp_path / "first")
    assert play.open(tmp_path / "second").begin(TASK).reward() == 0.0


def test_names_that_a_consumer_keeps_for_itself_are_called_otherwise() -> None:
    tools = [{"type": "function", "function": {"name": name}} for name in ("verify", "verify_", "_x", "say")]
    found = play.routes_of(tools, [{"user": {"turns": ["yes"]}}])
    assert len(found.tools) == 4 and set(found.tools.values()) == {"verify", "verify_", "_x", "say"}
    assert not set(found.tools) & play.RESERVED and found.speak == "say_to_user" and len(found.functions) == 5
    assert play.routes_of(tools, [{"user": None}]).speak == ""


OF_REPOSITORIES = ("swebench",)
"""Take no service (test_swebench.py)."""


@pytest.mark.parametrize("name", [name for name, exporter in registered().items()
                                  if isinstance(exporter, RoomExporter) and name not in OF_REPOSITORIES])
def test_every_export_of_a_room_is_the_same_bytes_each_time_and_carries_one_digest_and_one_set_of_figures(
    name: str, kit: Kit, tmp_path: Path
) -> None:
    made = []
    for folder in (tmp_path / "one" / "export", tmp_path / "two" / "elsewhere"):
        paths = export_room(name, folder, kit).paths
        assert paths and all(path.exists() for path in paths)
        made.append({path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()})
    assert made[0] == made[1]
    abouts = [json.loads(content) for path, content in made[0].items() if path.endswith("kit.json")]
    assert abouts and all(about["digest"] == kit.digest for about in abouts)
    assert all(about["figures"] == json.loads(json.dumps(kit.figures)) for about in abouts)
    assert kit.digest in made[0]["README.md"].decode() and not [path for path in made[0] if "__pycache__" in path]
