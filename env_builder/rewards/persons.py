"""What a person knows that no log shows: checks written by hand, a TOML file a family.

In: the texts of `rubrics/<family>.toml` files. Out: `Said` checks; what a file gets wrong is one sentence that names file and
field. A check of a person is merged into every rubric of its family (or of the tasks that it names), with the sessions that
bear it out and those that speak against it, and is audited with the rubric as if it had been mined.

    [[checks]]
    kind = "order"                      # any kind that there is (docs/rewards.md)
    role = "gate"                       # gate, score, penalty, shaping, diagnostic (the default)
    says = "The caller is known before anything is changed."
    weight = 1.0
    tasks = []                          # task ids; empty: all of the family
    parameters = { template = "precedence", first = [{ tool = "…" }], second = [{ tool = null, effect = "write" }] }
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator

from env_builder.rewards.bearing import Role
from env_builder.runtime.checks import kinds, prepared
from warehouse.errors import InputError

SUFFIX = ".toml"


class PersonCheck(BaseModel):
    """One check as a person writes it."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    kind: str
    """Name of a kind of check."""
    role: Role = "diagnostic"
    says: Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]
    """One sentence for a person."""
    weight: float = Field(default=1.0, ge=0, allow_inf_nan=False)
    tasks: tuple[str, ...] = ()
    """Ids of the tasks that it is for; empty: all of the family."""
    parameters: dict[str, Any] = Field(default_factory=dict)
    """As the kind describes them."""

    @field_validator("kind")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in kinds():
            raise ValueError(f"no kind {value!r}; there are: {', '.join(kinds())}")
        return value


class PersonRubric(BaseModel):
    """A file."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    checks: tuple[PersonCheck, ...]
    """What a person adds to the rubrics of a family."""


class Said(NamedTuple):
    """A check that somebody says, and of what."""

    family: str
    """Id or name of the family."""
    check: PersonCheck
    by: dict[str, Any]
    """Who says so: {"by": "person", "file"} or {"by": "policy", "quote"}."""


def read(files: Mapping[str, str]) -> list[Said]:
    """Checks of all files (name below the folder -> text), in order. Raises InputError."""
    return [Said(name.removesuffix(SUFFIX), check, {"by": "person", "file": name})
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
