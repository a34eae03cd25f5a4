"""Environments as their consumers get them, written for attacks on their side of it."""

from __future__ import annotations

from pathlib import Path

from tests.attacks.hostile_run import hostile_run
from tests.command_line import called

KNOWN = ("check_id", "rubric_id", "write_calls")
"""Words that the grader's files alone hold."""


def harbor_task(folder: Path) -> Path:
    """Return the folder of a task of the hostile run's environment, as Harbor gets it."""
    done = called("export", "harbor", next((hostile_run() / "environments").iterdir()), "--to", folder / "harbor")
    assert done.returncode == 0, done.stderr
    return next(path for path in sorted((folder / "harbor").rglob("*")) if (path / "task.toml").is_file())
