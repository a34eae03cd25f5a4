"""What persons correct of mined checks: parameters with new evidence, added checks, changes in files; what is refused."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from env_builder.rewards import Rewards
from env_builder.rewards.corrections import Corrected, added, changes_in, corrected_rows, decisions_on, recorrected, uncorrected
from env_builder.rewards.persons import read_changes
from tests.env_builder.rewards.test_persons import opened
from warehouse.errors import InputError
from warehouse.records import Check

LOOK_FIRST = {"kind": "order", "role": "gate", "description": "Look first.", "parameters": {
    "template": "precedence", "first": [{"tool": "look"}], "second": [{"tool": "open"}]}}


def by_ada(**value: Any) -> Corrected:
    return Corrected("c1", "Ada", "a duty", value)


def checks_of(mined: Rewards) -> dict[str, Check]:
    return {row["check_id"]: Check(**row) for row in json.loads(mined.rubrics["checks"][0])}


def test_an_added_check_gets_evidence_and_chooses_the_solution() -> None:
    for scope in ("f", opened().mined().rubrics["task_id"][0]):
        mined = opened().mined(corrections={f"{scope}/look": by_ada(**LOOK_FIRST)})
        (check,) = [each for each in checks_of(mined).values() if "added" in each.provenance]
        assert (check.kind, check.role, check.provenance["added"]) == ("order", "gate", f"{scope}/look")
        assert (check.provenance["supporting"], check.provenance["broken_by"]) == (["good"], ["bad"])
        assert {"tool": "look", "arguments": {"door": 7}} in json.loads(mined.rubrics["solution"][0])
        decisions = decisions_on({f"{scope}/look": by_ada(**LOOK_FIRST)}, mined.rubrics)
        assert decisions.select("reason", "kept").rows() == [("check_added", True)]
    mined = opened().mined(corrections={"elsewhere/look": by_ada(**LOOK_FIRST)})
    assert [each for each in checks_of(mined).values() if "added" in each.provenance] == []
    assert decisions_on({"elsewhere/look": by_ada(**LOOK_FIRST)}, mined.rubrics)["reason"].to_list() == ["no_such_check"]


def test_changed_parameters_keep_the_id_and_are_held_against_the_sessions_again() -> None:
    plain = opened().mined()
    order = added({"f/look": by_ada(**LOOK_FIRST)})
    check_id = next(iter(checks_of(opened().mined(order)).keys() - checks_of(plain).keys()))
    reverse = LOOK_FIRST["parameters"] | {"first": [{"tool": "open"}], "second": [{"tool": "look"}]}  # type: ignore[operator]
    after = checks_of(opened().mined(order, corrections={check_id: by_ada(parameters=reverse)}))[check_id]
    assert after.parameters == reverse and after.provenance["was"] == {"parameters": LOOK_FIRST["parameters"]}
    assert (after.provenance["supporting"], after.provenance["contrary"]) == (["hasty"], ["good"])
    assert uncorrected(after.model_copy(update={"provenance": {
        name: value for name, value in after.provenance.items() if name != "added"}})).parameters == LOOK_FIRST["parameters"]


@pytest.mark.parametrize("value", [{**LOOK_FIRST, "kind": "ordre"}, {**LOOK_FIRST, "parameters": {"template": "before"}}])
def test_what_the_kind_refuses_changes_nothing_with_a_decision(value: dict[str, Any]) -> None:
    plain, correction = opened().mined(), by_ada(**value)
    mined = opened().mined(corrections={"f/look": correction})
    assert mined.rubrics.equals(plain.rubrics)
    (row,) = decisions_on({"f/look": correction}, mined.rubrics).to_dicts()
    assert (row["reason"], row["kept"]) == ("invalid_check", False) and "refuses" in row["detail"]
    gate = next(each for each in checks_of(plain).values() if each.role == "gate")
    wrong = by_ada(parameters={"no": "such"}, weight=3.0)
    mined = opened().mined(corrections={gate.check_id: wrong})
    assert checks_of(mined)[gate.check_id].weight == gate.weight
    assert decisions_on({gate.check_id: wrong}, mined.rubrics)["reason"].to_list() == ["invalid_check"]


def test_a_file_changes_checks_of_its_family() -> None:
    plain = opened().mined()
    task_id, gate = plain.rubrics["task_id"][0], next(each for each in checks_of(plain).values() if each.role == "gate")
    text = f'[[changes]]\ncheck = "{gate.check_id}"\nrole = "score"\nwhy = "too strict"\n'
    changes = changes_in(read_changes({"f.toml": text, "g.toml": text}), [(task_id, "f"), ("another", "h")])
    assert list(changes) == [f"{task_id}/{gate.check_id}"]
    mined = opened().mined(corrections=changes)
    check = checks_of(mined)[gate.check_id]
    assert (check.role, check.provenance["author"], check.provenance["why"]) == ("score", "f.toml", "too strict")
    assert decisions_on(changes, mined.rubrics).select("subject", "reason").rows() == [
        (f"f.toml: {gate.check_id}", "check_corrected")]
    with pytest.raises(InputError, match=r"f\.toml: field 'changes\.0\.why'"):
        read_changes({"f.toml": '[[changes]]\ncheck = "x"\n'})


def test_a_built_rubric_is_corrected_again_as_the_next_run_will() -> None:
    plain = opened().mined()
    task_id, gate = plain.rubrics["task_id"][0], next(each for each in checks_of(plain).values() if each.role == "gate")
    scopes = (task_id, "f", "main")
    first, second = by_ada(role="score"), Corrected("c2", "Grace", "wording", {"description": "So."})
    built = list(checks_of(opened().mined(corrections={gate.check_id: first})).values())
    after = {each.check_id: each for each in recorrected(scopes, built, {gate.check_id: second})}[gate.check_id]
    assert (after.role, after.description) == (gate.role, "So."), "the later correction replaces the earlier one"
    withdrawn = {each.check_id: each for each in recorrected(scopes, built, {gate.check_id: None})}[gate.check_id]
    assert withdrawn == gate
    built = list(checks_of(opened().mined(corrections={"f/look": by_ada(**LOOK_FIRST)})).values())
    assert [each.check_id for each in recorrected(scopes, built, {"f/look": None})] == list(checks_of(plain))
    twice = recorrected(scopes, built, {"f/look": by_ada(**{**LOOK_FIRST, "role": "penalty"})})
    assert [each.role for each in twice if "added" in each.provenance] == ["penalty"]


def test_generated_tasks_follow_what_is_added_to_their_family() -> None:
    mined = opened().mined()
    row = mined.rubrics.select("task_id", "checks", "solution", "rubric_id").to_dicts()[0]
    variants = pl.DataFrame([{**row, "family": "f"}])
    after = corrected_rows(variants, {"f/look": by_ada(**LOOK_FIRST)})
    assert after["rubric_id"][0] != row["rubric_id"] and len(json.loads(after["checks"][0])) == len(checks_of(mined)) + 1
    assert corrected_rows(variants, {"g/look": by_ada(**LOOK_FIRST)}).equals(variants)
