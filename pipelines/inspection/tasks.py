"""The tasks that a published environment's directory lists, without loading it."""

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
        environments = [str(path) for path in there if (path / "tasks.jsonl").is_file()]
        hint = "" if environments else "name the folder OUT/environments/NAME"
        raise Missing.named("environment", str(environment), environments, hint)
    return list(rows_of(file))
