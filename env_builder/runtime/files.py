"""The files of a room: rows of JSON lines, and tasks among them (docs/environment.md)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .records import Limits, Task


def rows_of(path: Path) -> Iterable[dict[str, Any]]:
    """Objects of a file of JSON lines, in order. OSError, ValueError where it cannot be read."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def task_of(row: dict[str, Any]) -> Task:
    """A row of tasks.jsonl as a `Task`."""
    return Task(
        task_id=row["task_id"], session_ids=tuple(row["session_ids"]), split=row["split"], limits=Limits(**row["limits"]),
        family=row["family"], goal=row["goal"], starts_at=row["starts_at"], opening=tuple(row["opening"]),
        user_turns=tuple(row["user"]["turns"]), slots=row["slots"], segment_of=row["segment_of"],
        derived_from=row["derived_from"],
    )
