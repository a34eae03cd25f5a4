"""What an agent's image of Harbor holds: no rubric, solution, grader or other task, in any file, name or recipe."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.attacks.hostile_run import GROUP, hostile_run
from tests.attacks.kits import harbor_task
from tests.attacks.report import Report

FORBIDDEN = ("rubric", "solution", "harbor_grade", "harbor_solve", "solve.sh", "test.sh", "rewards.json")


def attack(folder: Path, share: float) -> Report:
    """Read each file of the agent's side, and its recipe."""
    task = harbor_task(folder)
    side, problems, n = task / "environment", [], 0
    own = {path.name for path in side.rglob("*") if "runtime" not in path.parts}
    rubrics = next((hostile_run() / "rewards").iterdir()) / "rubrics.jsonl"
    known = {row["rubric_id"] for row in map(json.loads, rubrics.read_text("utf-8").splitlines())} | {'"check_id"',
        '"rubric_id"'}
    problems += [f"{name} is there" for name in own for word in FORBIDDEN if word in name]
    recipe = (side / "Dockerfile").read_text("utf-8")
    problems += [f"the recipe copies {line}" for line in recipe.splitlines() if line.startswith(("COPY", "ADD")) and any(
        word in line for word in (*FORBIDDEN, "..", "tests", "http"))]
    for path in side.rglob("*"):
        if path.is_file() and "runtime" not in path.parts:
            n += 1
            text = path.read_text("utf-8", "replace")
            problems += [f"{path.name} holds {word!r}" for word in known if word in text and path.suffix != ".py"]
    problems += [f"{len(list(side.rglob('tasks.jsonl')))} files of tasks" for _ in [0]
        if len(list(side.rglob("tasks.jsonl"))) != 1]
    rows = [json.loads(line) for line in next(side.rglob("tasks.jsonl")).read_text("utf-8").splitlines()]
    problems += [f"{len(rows)} tasks are in one image"] if len(rows) != 1 else []
    return Report(n, tuple(problems))


@pytest.mark.slow
@pytest.mark.xdist_group(GROUP)
def test_an_agents_image_holds_no_answer(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
