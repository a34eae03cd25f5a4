"""Journals of another environment, or of another version of it, given to `grade`: they get no reward."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from env_builder.runtime import Environment
from pipelines import playing
from tests.attacks.report import Report
from tests.rooms import TASK, write_rewards, write_room
from warehouse.errors import InputError


def graded(room: Path, folder: Path, row: dict[str, Any]) -> float | None:
    """Return the reward that `grade` gives for a row."""
    (folder / "journals.jsonl").write_text(json.dumps(row) + "\n")
    return next(playing.graded_journals(room, None, folder / "journals.jsonl", {}))["reward"]


def rows(room: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return an honest row of a solved task, and dishonest ones."""
    environment = Environment.load(room)
    environment.reset(TASK)
    environment.say("Which door?")
    environment.call("open_door", {"door": "7"})
    environment.finish()
    honest = {"environment": room.name, "content_digest": environment.manifest["content_digest"], "task_id": TASK, "seed": 0,
              "perturbations": [], "journal": list(environment.journal)}
    return honest, [
        honest | {"content_digest": "0" * 64}, honest | {"content_digest": None},
        {name: value for name, value in honest.items() if name != "content_digest"} | {"environment": "cellar"},
        honest | {"content_digest": ["x"]}]


def attack(folder: Path, share: float) -> Report:
    """Grade each dishonest row."""
    room = write_room(folder / "out" / "environments" / "hall")
    write_rewards(room)
    problems, (_, dishonest) = [], rows(room)
    for row in dishonest:
        try:
            problems.append(f"{row['environment']}, {row.get('content_digest')}: reward {graded(room, folder, row)}")
        except InputError as error:
            problems += [] if "of another environment" in str(error) else [str(error)]
    return Report(len(dishonest), tuple(problems))


def test_rows_of_another_environment_are_not_graded(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()


def test_rows_of_this_environment_are_graded_wherever_its_folder_lies(tmp_path: Path) -> None:
    room = write_room(tmp_path / "out" / "environments" / "hall")
    write_rewards(room)
    honest, _ = rows(room)
    assert graded(room, tmp_path, honest | {"environment": "its former name"}) == 1.0
    with pytest.raises(InputError, match="another environment"):
        graded(room, tmp_path, {**honest, "content_digest": "1"})
