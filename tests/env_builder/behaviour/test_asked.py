"""A model writes a program over the wire: taken where it replays what was held out, left with a decision where not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from env_builder.behaviour import asked
from env_builder.behaviour.asked import language
from env_builder.rooms import rows_of
from env_builder.runtime.episode import EpisodeState
from env_builder.runtime.expressions import OPERATORS
from env_builder.runtime.world import View, World
from env_builder.world import InducedWorld as Rebuilt
from pipelines.resources import connect, kept
from tests.conftest import ROOT
from tests.endpoint import answering
from tests.env_builder.behaviour.parcels import VALUE, answer, induced, logged, program_of
from warehouse.records import Tool, empty

RIGHT = json.dumps({"rules": [VALUE]})
WRONG = RIGHT.replace("[\"constant\", 3]", "[\"constant\", 4]")
DEEP: Any = json.loads(RIGHT.replace("kilos", "stones"))


@pytest.fixture(scope="module")
def built() -> Rebuilt:
    return logged()


def test_a_right_program_is_taken_and_says_who_wrote_it(built: Rebuilt) -> None:
    with answering(lambda prompt: f"Here it is:\n```json\n{RIGHT}\n```") as endpoint:
        ask = connect(endpoint.url, "small", "k")
        found, decisions = asked.written(induced(built), built, empty(Tool), ask, "small")
        assert len(endpoint.asked) == 1, "only the tool without a program is asked about"
        prompt = endpoint.asked[0]["messages"][0]["content"]
    assert "weigh: box, fragile, kilos" in prompt and "known before: weigh B-1" in prompt and "it failed with: Error" in prompt
    program = program_of(found, "fare")
    assert program["written_by"] == "small" and program["rules"][0] == {"rule": "recorded"}
    assert program["rules"][1]["when"]["types"] == {"box": ["text"], "zone": ["number"]}, "the guards are the log's"
    row = found.filter(found["tool"] == "fare").to_dicts()[0]
    assert row["fidelity"] == 1.0 and row["abstains"] == 0.0
    assert decisions.select("subject", "kept", "reason").rows() == [("main/fare", True, "program_written")]
    rows = rows_of("main", built.facts, built.recorded, found)
    assert rows.support["fare"]["written_by"] == "small"
    room = EpisodeState(World(rows.facts, rows.recorded), {row["tool"]: row for row in rows.programs}, View(None, frozenset()))
    new = {"box": "B-103", "zone": 77}
    assert room.call("fare", new) == (answer("fare", new), False, "induced")
    assert room.call("fare", {"box": "B-103", "zone": "far"}).tier == "unknown"


@pytest.mark.parametrize(("reply", "reason"), [
    (WRONG, "program_does_not_hold"), ("I do not know.", "malformed_program"), ("{", "malformed_program"),
    (json.dumps({"rules": [VALUE | {"value": ["magic", 1]}]}), "malformed_program"),
    (json.dumps({"rules": [VALUE | {"sure": True}]}), "malformed_program"),
    (json.dumps({"rules": [VALUE | {"value": ["round", ["argument", "zone"]]}]}), "malformed_program"),
    (json.dumps(DEEP), "program_does_not_hold"), (json.dumps({"rules": []}), "no_program_written")])
def test_what_does_not_hold_is_left_with_a_decision(built: Rebuilt, reply: str, reason: str) -> None:
    before = induced(built)
    found, decisions = asked.written(before, built, empty(Tool), lambda prompt: reply, "small")
    assert found.equals(before)
    assert decisions.select("subject", "kept", "reason").rows() == [("main/fare", False, reason)]


def test_nobody_at_the_endpoint_leaves_everything_as_it_was(built: Rebuilt) -> None:
    before = induced(built)
    ask = connect("http://127.0.0.1:9/v1", "small", "k", timeout_s=2)
    found, decisions = asked.written(before, built, empty(Tool), ask, "small")
    assert found.equals(before)
    assert decisions["reason"].to_list() == ["model_unavailable"] and "does not answer" in decisions["detail"][0]


def test_a_few_calls_are_not_shown_to_a_model() -> None:
    few = logged(6)
    found, decisions = asked.written(induced(few), few, empty(Tool), lambda prompt: RIGHT, "small")
    assert decisions["reason"].to_list() == ["too_few_calls"] and "written_by" not in program_of(found, "fare")


def test_what_was_said_once_is_said_again(tmp_path: Path) -> None:
    replies = iter(["one", "two", "three"])
    ask = kept(lambda prompt: next(replies), "small", tmp_path / "answers")
    assert [ask("a"), ask("b"), ask("a")] == ["one", "two", "one"]
    assert kept(lambda prompt: next(replies), "large", tmp_path / "answers")("a") == "three", "another model is asked anew"
    assert kept(lambda prompt: next(replies), "small", tmp_path / "answers")("b") == "two"


def test_the_manual_and_the_prompt_name_every_operator() -> None:
    manual, prompt = (ROOT / "docs/behaviour.md").read_text("utf-8"), language()
    assert not [name for name in OPERATORS if f'["{name}"' not in manual or f'["{name}"' not in prompt]
