"""What a person knows that no log shows: checks written by hand, and changes of mined checks, a TOML file a family.

In: the texts of `rubrics/<family>.toml` files (docs/configuration.md). Out: `StatedCheck`s and `StatedChange`s; what a file
gets wrong is one sentence that names file and field. A check of a person is merged into every rubric of its family (or of the
tasks that it names) with the sessions for and against it, and audited as if it had been mined. Changes are corrections
(`corrections.py`). Does not see: whether the person is right.

Checks of any kind are held against recorded sessions by the grader's own code: a session is an episode as it was logged. Sees:
what the grader sees of an episode. Does not see: documents of the world before and after (checks of kind `sql` and `file` on
recorded sessions find nothing).
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, NamedTuple

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator

from env_builder.rewards.witness import SAY, Role, Witness, check_id, provenance
from env_builder.runtime.checks import EpisodeView, kinds, prepared
from env_builder.runtime.records import Episode
from warehouse.errors import InputError
from warehouse.records import Check

SUFFIX = ".toml"


class PersonCheck(BaseModel):
    """One check as a person writes it."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

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


class PersonChange(BaseModel):
    """What a person changes of a mined check."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    check: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
    """Id of the check."""
    why: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
    """Reason, in one sentence."""
    accepted: bool | None = None
    """False: reported, never counted."""
    role: Role | None = None
    weight: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    description: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)] | None = None
    parameters: dict[str, Any] | None = None
    tasks: tuple[str, ...] = ()
    """Ids of the tasks that it is for; empty: all of the family."""

    @property
    def value(self) -> dict[str, Any]:
        """Return what is changed, as a correction has it."""
        return self.model_dump(exclude_none=True, exclude={"check", "why", "tasks"})


class PersonRubric(BaseModel):
    """A file."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    checks: tuple[PersonCheck, ...] = ()
    """What a person adds to the rubrics of a family."""
    changes: tuple[PersonChange, ...] = ()
    """What a person changes of their mined checks."""


class StatedCheck(NamedTuple):
    """A check that somebody says, and of what."""

    family: str
    """Id or name of the family."""
    check: PersonCheck
    by: dict[str, Any]
    """Who says so: {"by": "person", "file"}, {"by": "person", "author", "why", …} or {"by": "policy", "quote"}."""


class StatedChange(NamedTuple):
    """A change of a mined check that a file states."""

    family: str
    """Id or name of the family."""
    change: PersonChange
    file: str


def read(files: Mapping[str, str]) -> list[StatedCheck]:
    """Return checks of all files (name below the folder -> text), in order. Raises InputError."""
    return [StatedCheck(name.removesuffix(SUFFIX), check, {"by": "person", "file": name})
            for name, text in sorted(files.items()) for check in _rubric(name, text).checks]


def read_changes(files: Mapping[str, str]) -> list[StatedChange]:
    """Return the changes that all files state, in order. Raises InputError."""
    return [StatedChange(name.removesuffix(SUFFIX), change, name)
            for name, text in sorted(files.items()) for change in _rubric(name, text).changes]


def problem_of(check: Mapping[str, Any]) -> str | None:
    """Return what is wrong with a check as a person writes it (fields of `PersonCheck`), in one sentence; None: nothing."""
    try:
        written = PersonCheck.model_validate(check)
    except ValidationError as error:
        return _field_error(error)
    try:
        prepared(written.kind, written.parameters)
    except ValueError as error:
        return str(error)
    return None


def _field_error(error: ValidationError) -> str:
    first = error.errors()[0]
    where = ".".join(map(str, first["loc"]))
    return f"there is no field {where!r}" if first["type"] == "extra_forbidden" else (
        f"field {where!r}: {first['msg'].removeprefix('Value error, ')}")


def _rubric(name: str, text: str) -> PersonRubric:
    try:
        rubric = PersonRubric.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"the rubric is no TOML ({error})", name, "repair that place") from error
    except ValidationError as error:
        raise InputError(_field_error(error), name, "correct it as docs/configuration.md says") from error
    for number, check in enumerate(rubric.checks):
        try:
            prepared(check.kind, check.parameters)
        except ValueError as error:
            what = f"field 'checks.{number}.parameters': {error}"
            raise InputError(what, name, "correct it as docs/rewards.md says") from error
    return rubric


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
            is_mined = "by" not in by_id[own].provenance
            both = {**by_id[own].provenance, **each.by, **({"mined": True} if is_mined else {})}
            by_id[own] = by_id[own].model_copy(update={"provenance": both})
        else:
            check = each.check
            by_id[own] = Check(
                check_id=own, kind=check.kind, role=check.role, description=check.description, weight=check.weight,
                parameters=check.parameters, provenance={**evidence_on(check, good, bad, writes), **each.by})
    return sorted(by_id.values(), key=lambda check: check.check_id)


def evidence_on(check: PersonCheck, good: list[Witness], bad: list[Witness], writes: frozenset[str]) -> dict[str, Any]:
    """Return the provenance of a check by the sessions: good ones that keep or break it, and bad ones that break it."""
    passes = [one for one in good if holds(check, one, writes)]
    breaks = sorted(one.session_id for one in bad if holds(check, one, writes) is False)
    origin = provenance(passes, [one for one in good if one not in passes], lambda one: one.changes or one.ended)
    return {**origin, "broken_by": breaks}


def first_that_passes(good: list[Witness], stated: Iterable[StatedCheck], writes: frozenset[str]) -> list[Witness]:
    """`good` with those first that pass every gate that is said: the solution is the first."""
    gates = [each.check for each in stated if each.check.role == "gate"]
    return sorted(good, key=lambda one: any(holds(gate, one, writes) is False for gate in gates))
