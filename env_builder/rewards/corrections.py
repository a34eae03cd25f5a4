"""Checks that a person corrected: accepted, rejected, with another role, weight or sentence.

In: a task's checks, and corrections by the check's id (or TASK/CHECK, which goes before). Out: the checks, each with who
corrected it and why, and what it was, in its provenance; its id stays. A check that was rejected is a diagnostic: reported,
never counted. What comes of it is audited like any other rubric.
Sees: ids. Does not see: whether the person is right.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import polars as pl

from env_builder.rewards.persons import PersonCheck, Said
from env_builder.runtime.canonical import canonical, digest
from warehouse.records import Check, Verdict, frame


class Corrected(NamedTuple):
    """What a person says of a check."""

    correction_id: str
    author: str
    why: str
    value: dict[str, Any]
    """`accepted`, `role`, `weight`, `says`: those that are said."""


Corrections = Mapping[str, Corrected]
"""By the check's id, or TASK/CHECK."""


def corrections_of(rows: pl.DataFrame) -> dict[str, Corrected]:
    """What stands in a frame of `Correction` of checks."""
    return {subject: Corrected(correction_id, author, why, json.loads(value)) for subject, correction_id, author, why, value in
            rows.select("subject", "correction_id", "author", "why", "value").iter_rows()}


def corrected(task_id: str, checks: Iterable[Check], corrections: Corrections) -> list[Check]:
    """The checks of a task as persons want them."""
    return [_as_said(check, said) if (said := _of(task_id, check.check_id, corrections)) else check for check in checks]


def gates(task_id: str, checks: Iterable[Check], corrections: Corrections) -> list[Said]:
    """The corrected checks that are gates now, as a person's: the known solution should pass them."""
    return [
        Said(task_id, PersonCheck(kind=check.kind, role="gate", says=check.says, parameters=check.parameters), {"by": "person"})
        for check in checks if check.role == "gate" and _of(task_id, check.check_id, corrections)]


def corrected_rows(rows: pl.DataFrame, corrections: Corrections) -> pl.DataFrame:
    """Rows with `task_id`, `checks`, `solution` and `rubric_id` (frames of `Rubric` or `Variant`), their checks corrected."""
    told = []
    for row in rows.to_dicts():
        before = [Check(**check) for check in json.loads(row["checks"])]
        after = corrected(row["task_id"], before, corrections)
        if after != before:
            row["checks"] = canonical([check.model_dump(mode="json") for check in after])
            row["rubric_id"] = digest(canonical([row["task_id"], row["checks"], row["solution"]]))
        told.append(row)
    return pl.DataFrame(told, schema=rows.schema) if told else rows


def verdicts_on(corrections: Corrections, *frames: pl.DataFrame) -> pl.DataFrame:
    """What each correction of a check came to, given frames of task_id and checks (JSON): there is such a check, or not."""
    there = {name for rows in frames for task_id, checks in rows.select("task_id", "checks").iter_rows()
             for check in json.loads(checks) for name in (check["check_id"], f"{task_id}/{check['check_id']}")}
    return frame(Verdict, [_verdict(name, said, name in there) for name, said in sorted(corrections.items())])


def _of(task_id: str, check_id: str, corrections: Corrections) -> Corrected | None:
    return corrections.get(f"{task_id}/{check_id}") or corrections.get(check_id)


def _as_said(check: Check, said: Corrected) -> Check:
    told: dict[str, Any] = {name: said.value[name] for name in ("role", "weight", "says") if name in said.value}
    if said.value.get("accepted") is False:
        told["role"] = "diagnostic"
    was = {name: getattr(check, name) for name, value in told.items() if getattr(check, name) != value}
    word = {} if "accepted" not in said.value else {"accepted": said.value["accepted"]}
    by = {"by": "person", "author": said.author, "why": said.why, "correction": said.correction_id, "was": was, **word}
    return check.model_copy(update={**told, "provenance": {**check.provenance, **by}})


def _verdict(name: str, said: Corrected, is_there: bool) -> Verdict:
    what = ", ".join(f"{key} {json.dumps(value, ensure_ascii=False)}" for key, value in sorted(said.value.items()))
    detail = (f"{said.author} corrected check {name} ({what}): {said.why}" if is_there else
              f"{said.author} corrected check {name!r}, which no rubric has; look for its id in the task's rubric.")
    return Verdict(stage="variants", subject=said.correction_id, kept=is_there,
                   reason="check_corrected" if is_there else "no_such_check", detail=detail)
