"""The comparison that `traceroom transfer` keeps of an environment: OUT/transfer/NAME.json, and whether it is still of it.

In: a comparison, and the environment's and its rewards' digests. Out: the file, what it holds, and the figures that a release's
manifest carries: no name of a policy or task. Does not see: whether the real service is still the one that was measured.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pipelines.durable_files import write_durably
from warehouse.errors import InputError

Row = dict[str, Any]
FOLDER = "transfer"
DIGESTS = ("content_digest", "rewards_digest")
FIGURES = ("n_pairs", "n_alone", "spearman", "spearman_low", "spearman_high", "slope", "intercept", "regret", "causes")

TUNING = ("n_checkpoints", "n_tasks", "gain_environment", "gain_real", "arrives", "arrives_low", "arrives_high", "regret")


def digests_of(out: Path, name: str) -> dict[str, str | None]:
    """Return the digests of an environment and of its rewards as they are now; None of what is not there."""
    paths = out / "environments" / name / "manifest.json", out / "rewards" / name / "rewards.json"
    return {field: _field(path, field) for field, path in zip(DIGESTS, paths, strict=True)}


def keep(out: Path, name: str, comparison: Row) -> None:
    """Write a comparison whole or not at all."""
    text = json.dumps(comparison, ensure_ascii=False, indent=1) + "\n"
    write_durably(out / FOLDER / f"{name}.json", [text.encode()])


def kept(out: Path, name: str) -> Row | None:
    """Return what is kept, None if nothing is. Raises InputError."""
    path = out / FOLDER / f"{name}.json"
    try:
        row = json.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InputError("the comparison cannot be read", str(path), "make it again: traceroom transfer") from error
    if not isinstance(row, dict) or not {*DIGESTS, *FIGURES, "policies", "tasks"} <= row.keys():
        raise InputError("this is no comparison", str(path), "make it again: traceroom transfer")
    return row


def is_current(out: Path, name: str, comparison: Row) -> bool:
    """Return whether the comparison is of the environment and the rewards as they are now."""
    return digests_of(out, name) == {field: comparison[field] for field in DIGESTS}


def released_figures(out: Path, names: list[str]) -> dict[str, Row]:
    """Return the figures of each environment that was measured as it is now."""
    rows = {name: kept(out, name) for name in names}
    return {name: {field: row[field] for field in FIGURES} | _tuning(row) for name, row in rows.items()
            if row is not None and is_current(out, name, row)}


def _tuning(row: Row) -> Row:
    """Return what tuning gained, of a comparison that has checkpoints."""
    rows = [{field: each[field] for field in TUNING} for each in row.get("tuning", [])]
    return {"tuning": rows} if rows else {}


def _field(path: Path, name: str) -> str | None:
    try:
        return str(json.loads(path.read_text("utf-8"))[name])
    except (OSError, ValueError, KeyError, TypeError):
        return None
