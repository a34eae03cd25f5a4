"""What persons and policies add to a mined rubric: read with care, held against the sessions, named as theirs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from env_builder.rewards import Rewards
from env_builder.rewards.persons import StatedCheck, read
from pipelines.settings import Settings
from tests.env_builder.rewards.test_mine import ASK, CLOSED, LOOK, OPEN, OPENED, Desk
from warehouse.errors import InputError, Unavailable

FIRST = """
[[checks]]
kind = "order"
role = "gate"
description = "The door is looked at before it is opened."
parameters = { template = "precedence", first = [{ tool = "look" }], second = [{ tool = "open" }] }
"""
POLICY = "Be kind. Never open a door that you have not looked at. Speak little."
RULE = {"quote": "Never open a door that you have not looked at.", "kind": "order", "description": "Look first.",
        "parameters": {"template": "precedence", "first": [{"tool": "look"}], "second": [{"tool": "open"}]}}


def opened() -> Desk:
    desk = Desk()
    desk.session("hasty", 0.95, OPENED, ("system", POLICY), ASK, OPEN, ("agent", "Done."))
    desk.session("good", 0.9, OPENED, ("system", POLICY), ASK, LOOK, OPEN, ("agent", "Done."))
    desk.session("bad", 0.1, CLOSED, ("system", POLICY), ASK, OPEN, LOOK, ("agent", "No."))
    return desk


def theirs(mined: Rewards) -> list[dict[str, Any]]:
    return [check for check in json.loads(mined.rubrics["checks"][0]) if "by" in check["provenance"]]


def test_a_persons_check_is_merged_with_what_the_sessions_say_of_it() -> None:
    mined = opened().mined(read({"f.toml": FIRST}))
    (check,) = theirs(mined)
    assert (check["kind"], check["role"], check["weight"]) == ("order", "gate", 1.0)
    provenance = check["provenance"]
    assert (provenance["by"], provenance["file"]) == ("person", "f.toml")
    assert (provenance["supporting"], provenance["contrary"], provenance["broken_by"]) == (["good"], ["hasty"], ["bad"])
    assert provenance["events"]["supporting"] == ["good3"], "the call that opened the door"
    assert {"tool": "look", "arguments": {"door": 7}} in json.loads(mined.rubrics["solution"][0]), "the solution keeps the gate"
    assert {"tool": "look", "arguments": {"door": 7}} not in json.loads(opened().mined().rubrics["solution"][0])


def test_what_speaks_of_nothing_there_is_left_with_a_decision() -> None:
    for_one = FIRST + 'tasks = ["another"]\n'
    assert theirs(opened().mined(read({"f.toml": for_one}))) == []
    mined = opened().mined(read({"doors.toml": FIRST}))
    gone = mined.decisions.filter(mined.decisions["reason"] == "no_such_family")
    assert theirs(mined) == [] and gone.select("subject", "kept").rows() == [("doors.toml", False)]
    assert gone["detail"][0] == "There is no family 'doors'; there are: f."


@pytest.mark.parametrize("text, message", [
    ("[[checks", r"f\.toml: the rubric is no TOML"),
    ("[[check]]", r"f\.toml: there is no field 'check'"),
    (FIRST.replace('"order"', '"ordre"'), r"f\.toml: field 'checks\.0\.kind': no kind 'ordre'; there are: .*order"),
    (FIRST.replace('"gate"', '"wall"'), r"f\.toml: field 'checks\.0\.role': "),
    (FIRST.replace("description", "tells"), r"f\.toml: .*'checks\.0\.(description|tells)'"),
    (FIRST.replace("precedence", "before"), r"f\.toml: field 'checks\.0\.parameters': .*before"),
    (FIRST + "weight = -1\n", r"f\.toml: field 'checks\.0\.weight': "),
])
def test_what_is_wrong_is_one_sentence_with_file_and_field(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read({"f.toml": text})


def test_a_file_of_an_earlier_version_calls_the_description_says() -> None:
    assert read({"f.toml": FIRST.replace("description", "says")}) == read({"f.toml": FIRST})


def test_files_lie_beside_the_configuration_or_where_it_says(tmp_path: Path) -> None:
    (tmp_path / "told.toml").write_text("[gates]\nmin_probability = 0.5\n")
    told = Settings(logs=(), out=str(tmp_path / "out"), configuration=str(tmp_path / "told.toml"))
    before = told.rewards_text
    (tmp_path / "rubrics").mkdir()
    (tmp_path / "rubrics" / "f.toml").write_text(FIRST)
    assert told.checked().rewards_text != before and "looked at" in told.rewards_text
    (tmp_path / "told.toml").write_text('[rewards]\nrubrics = "elsewhere"\n')
    with pytest.raises(InputError, match="elsewhere: there is no such folder of rubrics"):
        told.checked()


def asked(*rows: dict[str, Any]) -> tuple[list[str], Rewards]:
    prompts: list[str] = []

    def ask(prompt: str) -> str:
        prompts.append(prompt)
        return f"Here: {json.dumps(rows)}"

    desk = Desk()
    for n in range(3):
        desk.session(f"good{n}", 0.9, OPENED, ("system", POLICY), ASK, LOOK, OPEN, ("agent", "Done."))
    desk.session("bad", 0.1, CLOSED, ("system", POLICY), ASK, OPEN, LOOK, ("agent", "No."))
    return prompts, desk.mined((), ask)


def test_a_policy_proposes_and_the_sessions_bear_it_out() -> None:
    prompts, mined = asked(RULE)
    assert len(prompts) == 1 and POLICY in prompts[0] and "look, open" in prompts[0]
    (check,) = theirs(mined)
    assert (check["role"], check["provenance"]["by"], check["provenance"]["quote"]) == ("diagnostic", "policy", RULE["quote"])
    assert check["provenance"]["broken_by"] == ["bad"] and check["provenance"]["support"] == 3


@pytest.mark.parametrize("change, message", [
    ({"quote": "Never open doors."}, "quote does not stand"),
    ({"kind": "state", "parameters": {"accepted": []}}, "none of kind 'state'"),
    ({"parameters": {"template": "before"}}, "It is no check"),
    ({"parameters": {"template": "precedence", "first": [{"tool": "open"}], "second": [{"tool": "look"}]}},
     "3 of 3 successful"),
    ({"parameters": {"template": "absence", "first": [{"tool": "dig"}]}}, "No failed session breaks it"),
])
def test_what_is_not_borne_out_is_refused_with_a_reason(change: dict[str, Any], message: str) -> None:
    _, mined = asked({**RULE, **change})
    refused = mined.decisions.filter(mined.decisions["reason"] == "proposal_refused")
    assert theirs(mined) == [] and refused["subject"].to_list() == ["main/policy/0"] and message in refused["detail"][0]


def test_a_model_that_does_not_answer_costs_nothing_but_its_checks() -> None:
    def gone(prompt: str) -> str:
        raise Unavailable("nobody answers", "http://127.0.0.1:1", "start it")

    mined = opened().mined((), gone)
    assert mined.rubrics.height == 1 and "model_unavailable" in mined.decisions["reason"].to_list()
    assert opened().mined((), lambda _: "no list").decisions["reason"].to_list().count("malformed_proposal") == 1
    assert isinstance(read({"f.toml": FIRST})[0], StatedCheck)
