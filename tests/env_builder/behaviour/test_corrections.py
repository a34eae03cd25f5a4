"""A person's program stands in the place of the induced one, with what the log says of it; a broken file is one sentence."""

from __future__ import annotations

import json
from typing import Any

import pytest

from env_builder.behaviour.corrections import corrected
from env_builder.world import InducedWorld
from tests.env_builder.behaviour.parcels import VALUE, induced, logged, program_of
from warehouse.errors import InputError


@pytest.fixture(scope="module")
def built() -> InducedWorld:
    return logged()


def file(*rules: dict[str, Any], **more: Any) -> str:
    rows = [{"rule": "recorded"}, *rules]
    return json.dumps({"tool": "fare", "effect": "write", "support": {"for": 1}, "rules": rows, **more})


def test_a_corrected_program_stands_with_its_support(built: InducedWorld) -> None:
    found, decisions = corrected(induced(built), built, {"fare.json": file(VALUE | {"when": None})})
    program = program_of(found, "fare")
    assert program["rules"][1]["rule"] == "value" and program["written_by"] == "a person, in fare.json"
    assert program["effect"] == "unknown", "the effect is found, not told"
    row = found.filter(found["tool"] == "fare").to_dicts()[0]
    assert (row["n_against"], row["fidelity"]) == (0, 1.0) and 0 <= row["abstains"] < 0.3
    assert decisions.select("subject", "kept", "reason").rows() == [("fare.json", True, "program_corrected")]


def test_a_person_has_the_last_word_and_the_log_is_heard(built: InducedWorld) -> None:
    says_always = {"rule": "constant", "content": "nothing"}
    found, decisions = corrected(induced(built), built, {"fare.json": file(says_always)})
    assert program_of(found, "fare")["rules"][1] == says_always
    assert found.filter(found["tool"] == "fare")["n_against"].item() == 40 and "40 otherwise" in decisions["detail"][0]
    versions = [{"until": "2031-01-01T00:00:00.000000Z", "rules": [{"rule": "recorded"}]}]
    kept, _ = corrected(found, built, {"fare.json": file(says_always, versions=versions)})
    assert program_of(kept, "fare")["versions"] == versions


def test_a_program_of_no_tool_waits(built: InducedWorld) -> None:
    before = induced(built)
    found, decisions = corrected(before, built, {"fly.json": file(VALUE | {"when": None}).replace("fare", "fly")})
    assert found.equals(before) and decisions.select("kept", "reason").rows() == [(False, "no_such_tool")]


@pytest.mark.parametrize(("text", "says"), [
    ("{", "fare.json: this is no JSON"), (file({"rule": "magic"}), "key 'rules.1': no rule 'magic'; there are: .*write"),
    (json.dumps({"tool": "fare"}), "key 'rules': Field required"),
    (file(VALUE), "fare cannot be asked .*KeyError: 'when'"),
    (file(VALUE | {"when": None, "value": ["plus", ["argument", "zone"]]}), "fare cannot be asked .*IndexError")])
def test_a_broken_file_is_one_sentence(built: InducedWorld, text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        corrected(induced(built), built, {"fare.json": text})
