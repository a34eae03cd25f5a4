"""What persons change of mined rubrics: checks that they correct, reject or add, in the browser or in files.

In: corrections (`core.corrections`) by their subject, and `[[changes]]` of files. The subject of a correction is a check's
id, or TASK/CHECK, which takes precedence. If its value names a `kind`, it adds a check to a task or a family: TASK/NAME or
FAMILY/NAME. Out: the checks as persons want them. A corrected check keeps its id; its provenance says who corrected it, why,
and what it was. A rejected check is a diagnostic: reported, never counted. Parameters that the kind refuses change nothing,
with a decision. Does not see: whether the person is right.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import polars as pl

from env_builder.rewards.persons import PersonCheck, StatedChange, StatedCheck, evidence_on, merged, problem_of
from env_builder.rewards.witness import Witness, rubric_id
from env_builder.runtime.canonical import canonical
from warehouse.records import Check, Decision, frame

FIELDS = ("role", "weight", "description", "parameters")
"""Of a check: what a correction changes."""
OF_A_CORRECTION = ("by", "author", "why", "correction", "was", "accepted")
"""Of a provenance: what a correction puts there."""


class Corrected(NamedTuple):
    """What a person says of a check."""

    correction_id: str
    author: str
    why: str
    value: dict[str, Any]
    """`accepted`, `role`, `weight`, `description`, `parameters`: those that are given; with `kind`: a check to add."""

    @property
    def by(self) -> dict[str, Any]:
        """Return who says so, as a provenance has it."""
        return {"by": "person", "author": self.author, "why": self.why, "correction": self.correction_id}

    @property
    def adds(self) -> bool:
        """Does it add a check?"""
        return "kind" in self.value


Corrections = Mapping[str, Corrected]
"""By the subject: the check's id, TASK/CHECK, or where a check is added."""


class Sides(NamedTuple):
    """The sessions by which a changed check is judged."""

    good: list[Witness]
    bad: list[Witness]
    writes: frozenset[str]


NOBODY = Sides([], [], frozenset())


def renamed(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the value of a correction in today's words: earlier versions called the description `says`."""
    return {"description" if name == "says" else name: each for name, each in value.items()}


def corrections_of(rows: pl.DataFrame) -> dict[str, Corrected]:
    """Return what stands in a frame of `Correction` of checks."""
    columns = ("subject", "correction_id", "author", "why", "value")
    return {subject: Corrected(correction_id, author, why, renamed(json.loads(value)))
            for subject, correction_id, author, why, value in rows.select(columns).iter_rows()}


def changes_in(stated: Iterable[StatedChange], tasks: Iterable[tuple[str, str]]) -> dict[str, Corrected]:
    """Return the changes of files as corrections, by TASK/CHECK. `tasks`: (task id, family's id)."""
    by_family: dict[str, list[str]] = {}
    for task_id, family in tasks:
        by_family.setdefault(family, []).append(task_id)
    corrections: dict[str, Corrected] = {}
    for each in stated:
        name = f"{each.file}: {each.change.check}"
        corrections |= {f"{task_id}/{each.change.check}": Corrected(name, each.file, each.change.why, each.change.value)
                        for task_id in by_family.get(each.family, ()) if task_id in (each.change.tasks or (task_id,))}
    return corrections


def added(corrections: Corrections) -> list[StatedCheck]:
    """Return the checks that corrections add; `family` of each is a task or a family. Those that are refused are left out."""
    return [
        StatedCheck(subject.rpartition("/")[0], PersonCheck(**correction.value), {**correction.by, "added": subject})
        for subject, correction in sorted(corrections.items()) if correction.adds and problem_of(correction.value) is None]


def corrected(task_id: str, checks: Iterable[Check], corrections: Corrections, sides: Sides = NOBODY) -> list[Check]:
    """Return the checks of a task as persons want them; `sides` judge those whose parameters are changed."""
    return [_as_stated(check, correction, sides) if (correction := _of(task_id, check.check_id, corrections)) else check
            for check in checks]


def gates(task_id: str, checks: Iterable[Check], corrections: Corrections) -> list[StatedCheck]:
    """Return the corrected checks that are gates now, as a person's: the known solution should pass them."""
    return [
        StatedCheck(task_id, PersonCheck(kind=check.kind, role="gate", description=check.description,
                                         parameters=check.parameters),
                    {"by": "person"})
        for check in checks if check.role == "gate" and _of(task_id, check.check_id, corrections)]


def corrected_rows(rows: pl.DataFrame, corrections: Corrections, stated: Iterable[StatedCheck] = ()) -> pl.DataFrame:
    """Frame of `Variant` with checks as persons want them: `stated` are checks of families, by the family's id."""
    additions = [*stated, *added(corrections)]
    changed = []
    for row in rows.to_dicts():
        before = [Check(**check) for check in json.loads(row["checks"])]
        own = [each for each in additions if each.family in (row["task_id"], row["family"])
               and row["task_id"] in (each.check.tasks or (row["task_id"],))]
        after = corrected(row["task_id"], merged(before, own, *NOBODY) if own else before, corrections)
        if after != before:
            row["checks"] = canonical([check.model_dump(mode="json") for check in after])
            row["rubric_id"] = rubric_id(row["task_id"], row["checks"], row["solution"])
        changed.append(row)
    return pl.DataFrame(changed, schema=rows.schema) if changed else rows


def corrected_rubric(task_id: str, family: str, rubric: dict[str, Any], corrections: Corrections) -> dict[str, Any]:
    """Return a rubric as it ships, with its checks as persons want them."""
    before = [Check(**check) for check in rubric["checks"]]
    own = [each for each in added(corrections) if each.family in (task_id, family)]
    after = corrected(task_id, merged(before, own, *NOBODY) if own else before, corrections)
    return rubric if after == before else {**rubric, "checks": [check.model_dump(mode="json") for check in after]}


def recorrected(
    scopes: tuple[str, ...], checks: Iterable[Check], corrections: Mapping[str, Corrected | None],
    stated: Iterable[StatedCheck] = (),
) -> list[Check]:
    """Return the checks of a built rubric as the next run will have them, without their evidence.

    `scopes`: the task, its family and service; `corrections`: those that the build did not read, None: a withdrawn one;
    `stated`: further checks of persons.
    """
    standing = {subject: each for subject, each in corrections.items() if each is not None}
    additions = [each for each in (*stated, *added(standing))
                 if each.family in scopes and scopes[0] in (each.check.tasks or scopes[:1])]
    kept = []
    for check in checks:
        if check.provenance.get("added") in corrections and not check.provenance.get("mined"):
            continue
        names = (f"{scopes[0]}/{check.check_id}", check.check_id)
        kept.append(uncorrected(check) if any(name in corrections for name in names) else check)
    return corrected(scopes[0], merged(kept, additions, *NOBODY), standing)


def uncorrected(check: Check) -> Check:
    """Return the check as it was before it was corrected."""
    if "correction" not in check.provenance or "added" in check.provenance:
        return check
    plain = {name: value for name, value in check.provenance.items() if name not in OF_A_CORRECTION}
    return check.model_copy(update={**check.provenance.get("was", {}), "provenance": plain})


def _of(task_id: str, check_id: str, corrections: Corrections) -> Corrected | None:
    correction = corrections.get(f"{task_id}/{check_id}") or corrections.get(check_id)
    return None if correction is None or correction.adds else correction


def _problem(check: Check, correction: Corrected) -> str | None:
    given = {name: correction.value.get(name, getattr(check, name)) for name in FIELDS}
    return problem_of({"kind": check.kind, **given}) if "parameters" in correction.value else None


def _as_stated(check: Check, correction: Corrected, sides: Sides) -> Check:
    if _problem(check, correction) is not None:
        return check
    update: dict[str, Any] = {name: correction.value[name] for name in FIELDS if name in correction.value}
    if correction.value.get("accepted") is False:
        update["role"] = "diagnostic"
    was = {name: getattr(check, name) for name, value in update.items() if getattr(check, name) != value}
    word = {} if "accepted" not in correction.value else {"accepted": correction.value["accepted"]}
    after = check.model_copy(update=update)
    evidence = check.provenance
    if "parameters" in was and (sides.good or sides.bad):  # what was mined speaks for the former parameters
        person = PersonCheck(kind=after.kind, description=after.description, parameters=after.parameters)
        evidence = {**evidence, **evidence_on(person, *sides)}
    return after.model_copy(update={"provenance": {**evidence, **correction.by, "was": was, **word}})


def decisions_on(corrections: Corrections, *frames: pl.DataFrame) -> pl.DataFrame:
    """Return what became of each correction, given frames of task_id and checks (JSON)."""
    if not corrections:
        return frame(Decision, [])
    checks: dict[str, Check] = {}
    additions: set[str] = set()
    for task_id, text in (row for rows in frames for row in rows.select("task_id", "checks").iter_rows()):
        for row in json.loads(text):
            check = Check(**row)
            checks[check.check_id] = checks[f"{task_id}/{check.check_id}"] = check
            additions.update({check.provenance["added"]} if "added" in check.provenance else ())
    every = [_decision(name, correction, checks, additions) for name, correction in sorted(corrections.items())]
    by_subject = {each.subject: each for each in sorted(every, key=lambda each: each.kept)}  # a file's change has several
    return frame(Decision, [by_subject[name] for name in dict.fromkeys(each.subject for each in every)])


def _decision(name: str, correction: Corrected, checks: Mapping[str, Check], additions: set[str]) -> Decision:
    what = ", ".join(f"{key} {json.dumps(value, ensure_ascii=False)}" for key, value in sorted(correction.value.items()))
    is_there = name in additions if correction.adds else name in checks
    problem = problem_of(correction.value) if correction.adds else _problem(checks[name], correction) if is_there else None
    done = "added a check" if correction.adds else f"corrected check {name}"
    if problem:
        reason, detail = "invalid_check", f"{correction.author} {done}, which its kind refuses: {problem}."
    elif is_there:
        reason = "check_added" if correction.adds else "check_corrected"
        detail = f"{correction.author} {done} ({what}): {correction.why}"
    elif correction.adds:
        reason = "no_such_check"
        detail = f"{correction.author} added a check to {name.rpartition('/')[0]!r}, which has no rubric."
    else:
        reason = "no_such_check"
        detail = f"{correction.author} corrected check {name!r}, which no rubric has; look for its id in the task's rubric."
    return Decision(stage="variants", subject=correction.correction_id, kept=is_there and not problem, reason=reason,
                    detail=detail)
