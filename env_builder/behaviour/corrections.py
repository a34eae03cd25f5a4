"""Programs that a person corrected: read from a folder, tried on the log, and put in the place of what was induced.

In: the files of a folder, each a row of behaviour.jsonl as JSON (docs/behaviour.md). Out: behaviours in which their rules
stand, with what speaks for and against them in the log, and a verdict a file. Of a file count `tool`, `service` where several
have such a tool, `rules` and `versions`; effect, class and relation are found anew from the log each time. A person's word
holds where the log disagrees, and the verdict says how often it does.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

import polars as pl
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from env_builder.behaviour import row_tables
from env_builder.behaviour.trials import Malformed, Trial, seen, tried
from env_builder.runtime.canonical import canonical
from env_builder.runtime.rules import RULES
from env_builder.world import World
from warehouse.errors import InputError
from warehouse.records import Behaviour, Verdict, frame

MEND = "see docs/behaviour.md, or take the file away"


def _known(rule: dict[str, Any]) -> dict[str, Any]:
    if rule.get("rule") not in RULES:
        raise ValueError(f"no rule {rule.get('rule')!r}; there are: {', '.join(sorted(RULES))}")
    return rule


Rule = Annotated[dict[str, Any], AfterValidator(_known)]


class Version(BaseModel):
    """Rules until an instant."""

    until: str
    rules: list[Rule]


class Correction(BaseModel):
    """A file of the folder; what else a row of behaviour.jsonl holds is passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    tool: str
    service: str | None = None
    rules: list[Rule] = Field(min_length=1)
    versions: list[Version] = Field(default_factory=list)


def corrected(
    behaviours: pl.DataFrame, world: World, files: dict[str, str]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(behaviours with these programs, verdicts). `files`: path -> text. Raises InputError with the file."""
    rows = {(row["service"], row["tool"]): row for row in behaviours.to_dicts()}
    verdicts: list[Verdict] = []
    for path, text in sorted(files.items()):
        told = _read(path, text)
        named = [name for name in rows if name[1] == told.tool and told.service in (None, name[0])]
        if len(named) > 1:
            services = ", ".join(sorted(service for service, _ in named))
            raise InputError(f"several services have a tool {told.tool!r}", path, f"add a key service: one of {services}")
        if not named:
            verdicts.append(Verdict(
                stage="behaviour", subject=path, kept=False, reason="no_such_tool",
                detail=f"No service of this log has a tool {told.tool!r}, so its program waits."))
            continue
        rows[named[0]], trial = _put(rows[named[0]], told, world, path)
        verdicts.append(_says(named[0], path, trial))
    return frame(Behaviour, list(rows.values())).sort("service", "tool"), frame(Verdict, verdicts)


def _read(path: str, text: str) -> Correction:
    try:
        return Correction.model_validate(json.loads(text))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        raise InputError(f"key {key!r}: {first['msg'].removeprefix('Value error, ')}", path, MEND) from error
    except ValueError as error:
        raise InputError(f"this is no JSON ({error})", path, MEND) from error


def _put(row: dict[str, Any], told: Correction, world: World, path: str) -> tuple[dict[str, Any], Trial]:
    """The behaviour with the person's rules, and what the log says of them."""
    program = {**json.loads(row["program"]), "rules": told.rules, "written_by": f"a person, in {path}"}
    program.pop("versions", None)
    if told.versions:
        program["versions"] = [version.model_dump() for version in told.versions]
    service = world.services[row["service"]]
    try:
        trial = tried(seen(service, told.tool), program, row_tables(service))
    except Malformed as error:
        raise InputError(str(error), path, MEND) from error
    return {**row, "program": canonical(program), "n_against": trial.n_wrong, "fidelity": trial.exact,
            "abstains": trial.abstains}, trial


def _says(name: tuple[str, str], path: str, trial: Trial) -> Verdict:
    return Verdict(
        stage="behaviour", subject=path, kept=True, reason="program_corrected",
        detail=f"{name[1]} of {name[0]} does what this file says: of {trial.n} logged calls it gives {trial.n_exact} as "
               f"logged, {trial.n_wrong} otherwise, and none of the rest.")
