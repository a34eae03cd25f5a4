"""What a published environment's directory says of itself, without loading it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from warehouse.errors import Missing


def json_rows(path: Path) -> Iterator[dict[str, Any]]:
    """Objects of a file of JSON lines. Only a line feed ends a line: a text may hold what else Unicode calls an end."""
    with path.open(encoding="utf-8", newline="\n") as lines:
        for line in lines:
            yield json.loads(line)


def rows_of(environment: Path) -> list[dict[str, Any]]:
    """Task rows of an environment's directory. Raises Missing where there is none."""
    file = environment / "tasks.jsonl"
    if not file.is_file():
        there = environment.parent.iterdir() if environment.parent.is_dir() else ()
        known = [str(path) for path in there if (path / "tasks.jsonl").is_file()]
        raise Missing.named("environment", str(environment), known)
    return list(json_rows(file))
