"""A recorded matrix of results: JSON lines that need no Traceroom (docs/transfer.md).

In: a file of JSON lines, or the episodes of rollouts. Out: results for `transfer`. Each line has `policy`, `task_id`, `place`
("environment" or "real"), `success` (0, 1 or null: not scored), and may have `seed` (0), `attempt` (0), `cause`, `n_unknown`,
`perturbations`, `journal`, `rewarded`, `step` and `checkpoint_of` (the policy itself by default); other fields are ignored.
Does not see: whether a result was truly had.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pipelines.rollouts.divergence import CAUSES
from pipelines.rollouts.results import is_good
from pipelines.rollouts.transfer import PLACES, PlacedResult
from warehouse.errors import InputError

SHAPE = "see docs/transfer.md for the fields of a line"


def read_matrix(path: Path) -> list[PlacedResult]:
    """Return the results of a file. Raises InputError."""
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError("the matrix cannot be read", str(path), str(error)) from error
    return [_result(line, f"{path}, line {number}") for number, line in enumerate(text.split("\n"), 1) if line.strip()]


def write_matrix(path: Path, results: Iterable[PlacedResult]) -> None:
    """Write results as such a file."""
    path.write_text("".join(json.dumps({
        **each._asdict(), "success": None if each.success is None else int(each.success)}) + "\n" for each in results), "utf-8")


def played_results(episodes: Iterable[Mapping[str, Any]], place: str) -> list[PlacedResult]:
    """Return the results of rollouts; success is a reward of 1. `journal` of an episode is taken where it has one."""
    return [PlacedResult(row["policy"], row["task_id"], row["seed"], place,
                         None if row["reward"] is None else is_good(row["reward"]), None, row["n_unknown"],
                         tuple(row["perturbations"]), row["attempt"], row.get("journal")) for row in episodes]


def _result(line: str, where: str) -> PlacedResult:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError("this line is not JSON", where, SHAPE) from error
    if not isinstance(row, dict):
        raise InputError("this line is not an object", where, SHAPE)
    success, (seed, attempt, n_unknown) = row.get("success"), (row.get(name, 0) for name in ("seed", "attempt", "n_unknown"))
    perturbations, cause, journal, rewarded = row.get("perturbations", []), *map(row.get, ("cause", "journal", "rewarded"))
    of, step = row.get("checkpoint_of"), row.get("step")
    fits = (all(isinstance(row.get(name), str) for name in ("policy", "task_id")) and row.get("place") in PLACES
            and all(isinstance(each, int) for each in (seed, attempt, n_unknown)) and "success" in row
            and _is_checkpoint(of, step)
            and _is_flag(success) and _is_flag(rewarded) and cause in (None, *CAUSES) and _is_journal(journal)
            and isinstance(perturbations, list | tuple) and all(isinstance(each, str) for each in perturbations))
    if not fits:
        raise InputError("this line is no result", where, SHAPE)
    policy = row["policy"] if step is None or of is not None else f"{row['policy']}, step {step}"
    return PlacedResult(policy, row["task_id"], seed, row["place"], _flag(success), cause, n_unknown, tuple(perturbations),
                        attempt, None if journal is None else tuple(journal), _flag(rewarded),
                        row["policy"] if of is None and step is not None else of, step)


def _is_checkpoint(of: Any, step: Any) -> bool:
    """Return whether a line names no checkpoint, or a whole one: a step, and perhaps whose."""
    return (of is None and step is None) or (isinstance(step, int) and not isinstance(step, bool) and step >= 0
                                             and (of is None or isinstance(of, str)))


def _is_flag(value: Any) -> bool:
    return value is None or (isinstance(value, int) and value in (0, 1))


def _flag(value: Any) -> bool | None:
    return None if value is None else bool(value)


def _is_journal(rows: Any) -> bool:
    """Return whether these are rows of a journal, or None."""
    return rows is None or (isinstance(rows, list) and all(isinstance(row, dict) and _is_step(row) for row in rows))


def _is_step(row: Mapping[str, Any]) -> bool:
    if row.get("kind") == "call":
        return isinstance(row.get("tool"), str) and isinstance(row.get("content"), str) and "arguments" in row
    return row.get("kind") == "finish" or (row.get("kind") == "say" and isinstance(row.get("content"), str))
