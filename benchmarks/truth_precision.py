"""The precision that a release states for its rewards, held against the true one.

A statement is an object `precision` with `low`, `high`, `n` and `basis`, in a manifest of the run. True precision is the share
of published tasks whose known solution is right: by the acceptance scorer where it scores, else by what truly good sessions of
the same request wrote. To compare what was written, a truth must say which tools write, so some sets have no true precision.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from truth_attacks import solutions_right
from truth_data import DataSet

SETS = ("telecom", "travel", "workbench")
"""Sets whose statement is held against the truth, beside the zoo and the desk."""


def stated_and_true(out: Path, data: DataSet, row: dict[str, Any]) -> dict[str, Any] | None:
    """Return the stated interval and the true precision of a build; None where no figure asks for it."""
    if data.kind not in ("zoo", "retail") and data.path.name not in SETS:
        return None
    statement = next(statements(out), None)
    n, right = (row["counts"]["scored"], row["counts"]["solution_right"]) if "counts" in row else _right(out, data)
    return {"stated": statement, "n": n, "right": right, "holds": holds(statement, n, right)}


def holds(statement: dict[str, Any] | None, n: int, right: int) -> bool | None:
    """Return whether the stated interval holds the true share; None without one of them."""
    if statement is None or not n:
        return None
    return bool(statement["low"] <= right / n <= statement["high"])


def statements(out: Path) -> Iterator[dict[str, Any]]:
    """Yield the statements in the run's manifests, releases first."""
    for pattern in ("releases/**/manifest.json", "environments/*/manifest.json", "rewards/*/rewards.json", "manifest.json"):
        for path in sorted(out.glob(pattern)):
            stated = json.loads(path.read_text("utf-8")).get("precision")
            if isinstance(stated, dict) and {"low", "high"} <= stated.keys() and None not in (stated["low"], stated["high"]):
                yield stated


def _right(out: Path, data: DataSet) -> tuple[int, int]:
    counted = solutions_right(out, data)
    return counted.get("published", 0), counted.get("right", 0)
