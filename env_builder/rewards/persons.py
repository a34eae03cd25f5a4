"""What a person knows that no log shows: checks written by hand, a TOML file a family, and corrections of mined checks.

In: the texts of `rubrics/<family>.toml` files (docs/configuration.md), and corrections by the check's id (or TASK/CHECK, which
goes before). Out: `StatedCheck`s; what a file gets wrong is one sentence that names file and field. A check of a person is
merged into every rubric of its family (or of the tasks that it names) with the sessions for and against it, and audited as if
it had been mined. A corrected check keeps its id; its provenance names who corrected it, why, and what it was. A rejected check
is a diagnostic: reported, never counted. Does not see: whether the person is right.

Checks of any kind are held against recorded sessions by the grader's own code: a session is an episode as it was logged. Sees:
what the grader sees of an episode. Does not see: documents of the world before and after (checks of kind `sql` and `file` on
recorded sessions find nothing).
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, NamedTuple

import polars as pl
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator

from env_builder.rewards.witness import SAY, Role, Witness, check_id, provenance
from env_builder.runtime.canonical import canonical, digest
from env_builder.runtime.checks import EpisodeView, kinds, prepared
from env_builder.runtime.records import Episode
from warehouse.errors import InputError
from warehouse.records import Check, Decision, frame

SUFFIX = ".toml"


class PersonCheck(BaseModel):
    """One check as a person writes it."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    kind: str
    """Name of a kind of check."""
    role: Role = "diagnostic"
    description: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)] = Field(
        validation_alias=AliasChoices("description", "says"))
    """One sentence for a person; files of earlier versions call it `says`."""
    weight: float = Field(default=1.0, ge=0, allow_inf_nan=False)
    tasks: tuple[str, ...] = ()
    """Ids of the tasks that it is for; empty: all of the family."""
    parameters: dict[str, Any] = Field(default_factory=dict)
    """As the kind describes them."""

    @field_validator("kind")
    @classmethod
    def _is_a_kind(cls, value: str) -> str:
        if value not in kinds():
            raise ValueError(f"no kind {value!r}; there are: {', '.join(kinds())}")
        return value


class PersonRubric(BaseModel):
    """A file."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    checks: tuple[PersonCheck, ...]
    """What a person adds to the rubrics of a family."""


class StatedCheck(NamedTuple):
    """A check that somebody says, and of what."""

    family: str
    """Id or name of the family."""
    check: PersonCheck
    by: dict[str, Any]
    """Who says so: {"by": "person", "file"} or {"by": "policy", "quote"}."""


def read(files: Mapping[str, str]) -> list[StatedCheck]:
    """Return checks of all files (name below the folder -> text), in order. Raises InputError."""
    return [StatedCheck(name.removesuffix(SUFFIX), check, {"by": "person", "file": name})
            for name, text in sorted(files.items()) for check in _rubric(name, text).checks]


def _rubric(name: str, text: str) -> PersonRubric:
    try:
        rubric = PersonRubric.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"the rubric is no TOML ({error})", name, "repair that place") from error
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        what = f"there is no field {where!r}" if first["type"] == "extra_forbidden" else (
            f"field {where!r}: {first['msg'].removeprefix('Value error, ')}")
        raise InputError(what, name, "correct it as docs/configuration.md says") from error
    for number, check in enumerate(rubric.checks):
        try:
            prepared(check.kind, check.parameters)
        except ValueError as error:
            what = f"field 'checks.{number}.parameters': {error}"
            raise InputError(what, name, "correct it as docs/rewards.md says") from error
    return rubric


class Corrected(NamedTuple):
    """What a person says of a check."""

    correction_id: str
    author: str
    why: str
    value: dict[str, Any]
    """`accepted`, `role`, `weight`, `description` (`says` in corrections of earlier versions): those that are given."""


Corrections = Mapping[str, Corrected]
"""By the check's id, or TASK/CHECK."""


def corrections_of(rows: pl.DataFrame) -> dict[str, Corrected]:
    """Return what stands in a frame of `Correction` of checks."""
    columns = ("subject", "correction_id", "author", "why", "value")
    return {subject: Corrected(correction_id, author, why, {  # corrections of earlier versions call it `says`
        "description" if name == "says" else name: each for name, each in json.loads(value).items()})
            for subject, correction_id, author, why, value in rows.select(columns).iter_rows()}


def corrected(task_id: str, checks: Iterable[Check], corrections: Corrections) -> list[Check]:
    """Return the checks of a task as persons want them."""
    return [_as_said(check, correction) if (correction := _of(task_id, check.check_id, corrections)) else check
            for check in checks]


def gates(task_id: str, checks: Iterable[Check], corrections: Corrections) -> list[StatedCheck]:
    """Return the corrected checks that are gates now, as a person's: the known solution should pass them."""
    return [
        StatedCheck(task_id, PersonCheck(kind=check.kind, role="gate", description=check.description,
                                         parameters=check.parameters),
                    {"by": "person"})
        for check in checks if check.role == "gate" and _of(task_id, check.check_id, corrections)]


def corrected_rows(rows: pl.DataFrame, corrections: Corrections) -> pl.DataFrame:
    """Rows with `task_id`, `checks`, `solution` and `rubric_id` (frames of `Rubric` or `Variant`), their checks corrected."""
    changed = []
    for row in rows.to_dicts():
        before = [Check(**check) for check in json.loads(row["checks"])]
        after = corrected(row["task_id"], before, corrections)
        if after != before:
            row["checks"] = canonical([check.model_dump(mode="json") for check in after])
            row["rubric_id"] = digest(canonical([row["task_id"], row["checks"], row["solution"]]))
        changed.append(row)
    return pl.DataFrame(changed, schema=rows.schema) if changed else rows


def decisions_on(corrections: Corrections, *frames: pl.DataFrame) -> pl.DataFrame:
    """Return whether the check of each correction exists, given frames of task_id and checks (JSON)."""
    there = {name for rows in frames for task_id, checks in rows.select("task_id", "checks").iter_rows()
             for check in json.loads(checks) for name in (check["check_id"], f"{task_id}/{check['check_id']}")}
    return frame(Decision, [_decision(name, correction, name in there) for name, correction in sorted(corrections.items())])


def _of(task_id: str, check_id: str, corrections: Corrections) -> Corrected | None:
    return corrections.get(f"{task_id}/{check_id}") or corrections.get(check_id)


def _as_said(check: Check, correction: Corrected) -> Check:
    update: dict[str, Any] = {name: correction.value[name]
                              for name in ("role", "weight", "description") if name in correction.value}
    if correction.value.get("accepted") is False:
        update["role"] = "diagnostic"
    was = {name: getattr(check, name) for name, value in update.items() if getattr(check, name) != value}
    word = {} if "accepted" not in correction.value else {"accepted": correction.value["accepted"]}
    by = {"by": "person", "author": correction.author, "why": correction.why, "correction": correction.correction_id,
          "was": was, **word}
    return check.model_copy(update={**update, "provenance": {**check.provenance, **by}})


def _decision(name: str, correction: Corrected, is_there: bool) -> Decision:
    what = ", ".join(f"{key} {json.dumps(value, ensure_ascii=False)}" for key, value in sorted(correction.value.items()))
    detail = (f"{correction.author} corrected check {name} ({what}): {correction.why}" if is_there else
              f"{correction.author} corrected check {name!r}, which no rubric has; look for its id in the task's rubric.")
    return Decision(stage="variants", subject=correction.correction_id, kept=is_there,
                   reason="check_corrected" if is_there else "no_such_check", detail=detail)


EMPTY: dict[str, Any] = {"documents": {}, "write_calls": []}


def holds(check: PersonCheck, one: Witness, writes: frozenset[str]) -> bool | None:
    """Return whether a recorded session passes the check; None: undecided."""
    kind, parameters = prepared(check.kind, check.parameters)
    return kind.judge(parameters, EpisodeView(episode_of(one, writes))).passed


def episode_of(one: Witness, writes: frozenset[str]) -> Episode:
    """Return a recorded session as an episode."""
    rows: list[tuple[int, dict[str, Any]]] = [
        (step.position, {"kind": "say", "content": step.text}) for step in one.steps if step.tool == SAY]
    rows += [(call.position, {"kind": "call", "tool": call.tool, "arguments": call.arguments, "content": call.content,
                              "is_error": call.failed, "tier": "recorded"}) for call in one.calls]
    ordered = tuple(row for _, row in sorted(rows, key=lambda each: each[0]))
    return Episode(ordered, one.difference or EMPTY, (), writes)


def merged(
    checks: list[Check], stated: Iterable[StatedCheck], good: list[Witness], bad: list[Witness], writes: frozenset[str]
) -> list[Check]:
    """Return `checks` with what is said among them, sorted by id; what was mined too stays once, with both provenances."""
    by_id = {check.check_id: check for check in checks}
    for each in stated:
        own = check_id(each.check.kind, each.check.role, each.check.parameters)
        if own in by_id:
            by_id[own] = by_id[own].model_copy(update={"provenance": {**by_id[own].provenance, **each.by}})
        else:
            check = each.check
            passes = [one for one in good if holds(check, one, writes)]
            breaks = sorted(one.session_id for one in bad if holds(check, one, writes) is False)
            origin = provenance(passes, [one for one in good if one not in passes], lambda one: one.changes or one.ended)
            by_id[own] = Check(
                check_id=own, kind=check.kind, role=check.role, description=check.description, weight=check.weight,
                parameters=check.parameters,
                provenance={**origin, **each.by, "broken_by": breaks})
    return sorted(by_id.values(), key=lambda check: check.check_id)


def first_that_passes(good: list[Witness], stated: Iterable[StatedCheck], writes: frozenset[str]) -> list[Witness]:
    """`good` with those first that pass every gate that is said: the solution is the first."""
    gates = [each.check for each in stated if each.check.role == "gate"]
    return sorted(good, key=lambda one: any(holds(gate, one, writes) is False for gate in gates))
