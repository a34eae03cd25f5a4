"""Dagster's instance for a run in this process: yours where DAGSTER_HOME is set, else one that forgets."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from dagster import DagsterInstance
from dagster._core.instance.ref import InstanceRef
from dagster_shared.yaml_utils import load_yaml_from_path

from warehouse.errors import InputError


def instance() -> DagsterInstance:
    """The instance to run on. Raises InputError where DAGSTER_HOME is not the absolute path of a folder."""
    home = os.environ.get("DAGSTER_HOME")
    if not home:
        return DagsterInstance.ephemeral()
    folder = Path(home)
    if not folder.is_absolute() or not folder.is_dir():
        raise InputError("it must be the absolute path of a folder", f"DAGSTER_HOME={home}", "export DAGSTER_HOME=$PWD")
    return DagsterInstance.from_ref(InstanceRef.from_dir(str(folder), overrides=_absolute(folder)))


def _absolute(home: Path) -> dict[str, Any]:
    """The sections of dagster.yaml that name a relative base_dir, with `home` before it: Dagster itself would take it
    from the folder that this process was started in."""
    file = home / "dagster.yaml"
    told = load_yaml_from_path(str(file)) if file.is_file() else {}
    if not isinstance(told, dict):
        raise InputError("this is no mapping", str(file), "copy dagster.yaml of Traceroom there")
    return {
        name: section for name in ("storage", "local_artifact_storage", "compute_logs")
        if isinstance(section := told.get(name), dict) and _place(section, home)}


def _place(section: dict[str, Any], home: Path) -> bool:
    placed = False
    for name, value in section.items():
        if name == "base_dir" and isinstance(value, str):
            section[name] = str(home / value)  # an absolute one stays as it is
            placed = True
        elif isinstance(value, dict):
            placed |= _place(value, home)
    return placed


def quiet() -> dict[str, Any]:
    """Run configuration that keeps Dagster's own log lines off the screen."""
    return {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
