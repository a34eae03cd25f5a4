"""Programs that a person corrected: read from a folder, tried on the log, and put in the place of what was induced.

In: the files of a folder, each a row of behaviour.jsonl as JSON (docs/behaviour.md). Out: behaviours in which their rules
stand, with what speaks for and against them in the log, and a decision a file. Of a file count `tool`, `service` where several
have such a tool, `rules` and `versions`; effect, class and relation are found anew from the log each time. A person's word
holds where the log disagrees, and the decision says how often it does.
"""

from __future__ import annotations

import json
from typing import Annotated, Any

import polars as pl
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from env_builder.behaviour.evidence import row_tables
from env_builder.behaviour.trials import Malformed, trial_calls, tried
from env_builder.runtime.canonical import canonical
from env_builder.runtime.rules import RULES
from env_builder.world import InducedWorld
from warehouse.errors import InputError
from warehouse.records import Behaviour, Decision, frame

_ALLOWED = RULES.keys() - {"assumed"}
"""What is assumed is in skeletons only, so no verified reward depends on it."""
HINT = "see docs/behaviour.md, or take the file away"


def _complete_rule(rule: dict[str, Any]) -> dict[str, Any]:
    if rule.get("rule") not in _ALLOWED:
        raise ValueError(f"no rule {rule.get('rule')!r}; there are: {', '.join(sorted(_ALLOWED))}")
    return rule


Rule = Annotated[dict[str, Any], AfterValidator(_complete_rule)]


class CorrectedVersion(BaseModel):
    """Rules until an instant."""

    until: str
    rules: list[Rule]


class ProgramCorrection(BaseModel):
    """A file of the folder; what else a row of behaviour.jsonl holds is passed over."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    tool: str
    service: str | None = None
    rules: list[Rule] = Field(min_length=1)
    versions: list[CorrectedVersion] = Field(default_factory=list)


def corrected(behaviours: pl.DataFrame, world: InducedWorld, files: dict[str, str]) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(behaviours with these programs, decisions). `files`: path -> text. Raises InputError with the file."""
    rows = {(row["service"], row["tool"]): row for row in behaviours.to_dicts()}
    decisions: list[Decision] = []
    for path, text in sorted(files.items()):
        correction = _read(path, text)
        named = [name for name in rows if name[1] == correction.tool and correction.service in (None, name[0])]
        if len(named) > 1:
            services = ", ".join(sorted(service for service, _ in named))
            raise InputError(f"several services have a tool {correction.tool!r}", path, f"add a key service: one of {services}")
        if not named:
            decisions.append(Decision(
                stage="behaviour", subject=path, kept=False, reason="no_such_tool",
                detail=f"No service of this log has a tool {correction.tool!r}, so its program waits."))
            continue
        row = rows[named[0]]
        program = {**json.loads(row["program"]), "rules": correction.rules, "written_by": f"a person, in {path}"}
        program.pop("versions", None)
        if correction.versions:
            program["versions"] = [version.model_dump() for version in correction.versions]
        service = world.services[row["service"]]
        try:
            trial = tried(trial_calls(service, correction.tool), program, row_tables(service))
        except Malformed as error:
            raise InputError(str(error), path, HINT) from error
        rows[named[0]] = {**row, "program": canonical(program), "n_against": trial.n_wrong, "fidelity": trial.exact,
                          "abstains": trial.abstains}
        decisions.append(Decision(
            stage="behaviour", subject=path, kept=True, reason="program_corrected",
            detail=f"{row['tool']} of {row['service']} does what this file says: of {trial.n} logged calls it gives "
                   f"{trial.n_exact} as logged, {trial.n_wrong} otherwise, and none of the rest."))
    return frame(Behaviour, list(rows.values())).sort("service", "tool"), frame(Decision, decisions)


def _read(path: str, text: str) -> ProgramCorrection:
    try:
        return ProgramCorrection.model_validate(json.loads(text))
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(map(str, first["loc"]))
        raise InputError(f"key {key!r}: {first['msg'].removeprefix('Value error, ')}", path, HINT) from error
    except ValueError as error:
        raise InputError(f"this is no JSON ({error})", path, HINT) from error
