"""What a published environment's directory says of itself, without loading it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from env_builder.runtime.files import rows_of
from warehouse.errors import Missing


def task_rows(environment: Path) -> list[dict[str, Any]]:
    """Task rows of an environment's directory. Raises Missing where there is none."""
    file = environment / "tasks.jsonl"
    if not file.is_file():
        places = (environment.parent, environment, environment / "environments", environment.parent / "environments")
        there = [path for place in places if place.is_dir() for path in sorted(place.iterdir())]
        known = [str(path) for path in there if (path / "tasks.jsonl").is_file()]
        raise Missing.named("environment", str(environment), known, "" if known else "name the folder OUT/environments/NAME")
    return list(rows_of(file))
