"""A recorded matrix of results: JSON lines that need no Traceroom (docs/transfer.md).

In: a file of JSON lines, or the episodes of rollouts. Out: results for `transfer`. Each line has `policy`, `task_id`, `place`
("environment" or "real"), `success` (0, 1 or null: not scored), and may have `seed` (0), `attempt` (0), `cause`, `n_unknown`,
`perturbations`; other fields are ignored. Does not see: whether a result was truly had.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pipelines.rollouts.results import is_good
from pipelines.rollouts.transfer import CAUSES, PLACES, PlacedResult
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
    """Return the results of rollouts; success is a reward of 1."""
    return [PlacedResult(row["policy"], row["task_id"], row["seed"], place,
                         None if row["reward"] is None else is_good(row["reward"]), None, row["n_unknown"],
                         tuple(row["perturbations"]), row["attempt"]) for row in episodes]


def _result(line: str, where: str) -> PlacedResult:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError("this line is not JSON", where, SHAPE) from error
    if not isinstance(row, dict):
        raise InputError("this line is not an object", where, SHAPE)
    success, (seed, attempt, n_unknown) = row.get("success"), (row.get(name, 0) for name in ("seed", "attempt", "n_unknown"))
    perturbations, cause = row.get("perturbations", []), row.get("cause")
    fits = (all(isinstance(row.get(name), str) for name in ("policy", "task_id")) and row.get("place") in PLACES
            and all(isinstance(each, int) for each in (seed, attempt, n_unknown)) and "success" in row
            and (success is None or (isinstance(success, int) and success in (0, 1))) and cause in (None, *CAUSES)
            and isinstance(perturbations, list | tuple) and all(isinstance(each, str) for each in perturbations))
    if not fits:
        raise InputError("this line is no result", where, SHAPE)
    return PlacedResult(row["policy"], row["task_id"], seed, row["place"], None if success is None else bool(success), cause,
                        n_unknown, tuple(perturbations), attempt)
