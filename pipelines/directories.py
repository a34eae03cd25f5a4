"""The directories of environments under OUT: whether they lie as they were written, and the end of those that no run makes.

In: the settings, and rows of `mart.environments`. Does not see: what a directory holds beyond what its manifest states.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from env_builder.bundle import MANIFEST
from pipelines.settings import Settings
from warehouse.store import Store


def directories_stand(store: Store, settings: Settings, service: str, name: str, row: dict[str, Any] | None) -> bool:
    """Do the directories of one service stand? `row`: of `mart.environments`, None where none of its tasks holds."""
    n_left = store.read(
        "select count(*) from mart.tasks where service = $service and task_id not in "
        "(select subject from mart.verdicts where stage = 'verify' and kept)", service=service).item()
    if n_left and _digest(settings.withheld / name) is None:
        return False
    return row is None or (
        _digest(settings.environments / row["environment"]) == row["content_digest"]
        and (settings.rewards / row["environment"] / "rewards.json").is_file())


def remove_others(settings: Settings, names: set[str], services: set[str]) -> None:
    """Take away what an earlier run published and this one does not; nothing that is not an environment of ours."""
    for folder in settings.withheld.glob("*"):
        if folder.name not in services and _digest(folder) is not None:
            shutil.rmtree(folder)
    for folder in settings.environments.glob("*"):
        if folder.name not in names and _digest(folder) is not None:
            shutil.rmtree(folder)
            shutil.rmtree(settings.rewards / folder.name, ignore_errors=True)


def _digest(environment: Path) -> str | None:
    """Content digest that a directory's manifest states, None where it is no environment."""
    try:
        manifest: Any = json.loads((environment / MANIFEST).read_text("utf-8"))
        return str(manifest["content_digest"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
