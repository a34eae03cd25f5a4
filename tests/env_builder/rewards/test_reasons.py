"""A gate says why it is right: the condition on which agents decline, or the sentence that asks for a step."""

from __future__ import annotations

import polars as pl

from env_builder.rewards.preparation import FEWEST, preparation_checks, preparations
from env_builder.rewards.reasons import NAMED, reasons_of
from env_builder.rewards.witness import check
from tests.env_builder.rewards.test_conduct import LOOK, OPEN, witness
from tests.env_builder.rewards.test_preparation import ACTING, READING, careful
from warehouse.records import Check, ConditionRow, frame

SEALED = "Sealed doors stay shut."


def row(status: str, condition: str, field: str, sentence: str, declined: list[str], acted: list[str]) -> dict[str, object]:
    return {"condition_id": f"{status} {condition}", "service": "main", "tool": OPEN, "status": status, "condition": condition,
            "field": field, "sentence": sentence, "declined_session_ids": declined, "acted_session_ids": acted}


def conditions() -> pl.DataFrame:
    return frame(ConditionRow, [
        row("borne_out", "look.state is sealed", "look.state", SEALED, ["a", "b", "c", "d", "good"], ["late"]),
        row("stated", "look.owner", "look.owner", "Only owners may open.", ["good"], []),
        row("step", "look comes first", LOOK, "Look first.", [], [])])


def gate(kind: str) -> Check:
    return check(kind, "gate", "It is declined.", {}, [witness("good", LOOK)], [], lambda one: [])


def test_a_refusal_has_the_condition_that_its_session_bears_out() -> None:
    gates = [gate("declined"), gate("must_not_write"), gate("said")]
    made = reasons_of(conditions()).checks("main", gates, [witness("good", LOOK)])
    (reason,) = made[0].provenance["conditions"]
    assert reason["sentence"] == SEALED and (reason["support"], reason["contrary"]) == (5, 1)
    assert reason["sessions"][0] == "good" and len(reason["sessions"]) == NAMED
    assert made[1].provenance["conditions"] == [reason], "what is only stated is no reason"
    assert "conditions" not in made[2].provenance


def test_other_refusals_and_acts_have_no_reason() -> None:
    reasons = reasons_of(conditions())
    assert reasons.checks("main", [gate("declined")], [witness("late", OPEN)]) == [gate("declined")]
    assert reasons_of(None).checks("main", [gate("declined")], [witness("good", LOOK)]) == [gate("declined")]
    must_act = check("declined", "gate", "It is not declined.", {"wanted": False}, [], [], lambda one: [])
    assert reasons.checks("main", [must_act], [witness("good", LOOK)]) == [must_act]


def test_a_step_before_an_act_has_the_sentence_that_asks_for_it() -> None:
    good = careful(FEWEST)
    checks = preparation_checks(good, preparations(good, ACTING, READING))
    speaking, looking = reasons_of(conditions()).checks("main", checks, good)
    assert looking.provenance["sentence"] == "Look first." and looking.check_id == checks[1].check_id
    assert "sentence" not in speaking.provenance
    assert reasons_of(conditions()).checks("other", checks, good) == checks, "another service has its own policy"
