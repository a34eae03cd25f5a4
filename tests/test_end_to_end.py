"""From the sample to a graded rollout in a container: logs in, an environment out, an episode played and its reward."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from env_builder import image
from env_builder.process import EnvironmentProcess, start_process
from env_builder.runtime import Environment
from warehouse.schema import layout
from warehouse.store import Store

Start = Callable[[str], EnvironmentProcess]


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def rewards(sample_environment: Path) -> Path:
    return sample_environment.parent.parent / "rewards" / sample_environment.name


@pytest.fixture(scope="module")
def solutions(rewards: Path) -> dict[str, list[dict[str, Any]]]:
    return {row["task_id"]: row["steps"] for row in rows(rewards / "solutions.jsonl")}


@pytest.fixture(scope="module", params=["process", pytest.param("container", marks=pytest.mark.docker)])
def start(request: pytest.FixtureRequest, sample_environment: Path) -> Iterator[Start]:
    """How a room is started apart from this process."""
    if request.param == "process":
        yield lambda task_id: start_process(sample_environment, task_id)
        return
    result = image.build(sample_environment, request.getfixturevalue("base_image"))
    assert result.image_id, result.skip_reason
    image_id = result.image_id
    yield lambda task_id: image.start(sample_environment, task_id, image_id=image_id)


def played(room: EnvironmentProcess, steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Play steps and finish; the journal."""
    for step in steps:
        if "say" in step:
            room.say(step["say"])
        else:
            room.call(step["tool"], step["arguments"])
    room.finish()
    return room.journal()


def test_known_solutions_earn_one_and_silence_nothing(
    start: Start, sample_environment: Path, rewards: Path, solutions: dict[str, list[dict[str, Any]]],
) -> None:
    grader = Environment.load(sample_environment, rewards)
    assert solutions.keys() == {task.task_id for task in grader.tasks}
    for task_id, steps in sorted(solutions.items())[:4]:
        with start(task_id) as room:
            journal = played(room, steps)
        grade = grader.grade_journal(task_id, journal)
        assert grade.reward == 1.0, [check.description for check in grade.checks if not check.passed]
        with start(task_id) as room:
            silent = played(room, [])
        assert silent == [{"kind": "finish"}]
        assert grader.grade_journal(task_id, silent).reward == 0.0


def test_ready_views_answer_what_people_ask(sample_environment: Path) -> None:
    with Store.open(sample_environment.parent.parent / "warehouse.duckdb", write=False) as store:
        rows_by_view = {name: store.read(f"select * from {name}") for name in layout().views if name.startswith("main.")}
        published = store.read("select sum(n_tasks)::bigint from mart.environments").item()
        steps = store.read("select kind, count(*) as n from core.turns group by kind")
    n_steps = dict(steps.iter_rows())
    assert len(rows_by_view) >= 10
    assert (len(rows_by_view["main.messages"]), len(rows_by_view["main.calls"])) == (n_steps["message"], n_steps["call"])
    tasks, lineage = rows_by_view["main.tasks"], rows_by_view["main.lineage"]
    assert 0 < tasks["is_published"].sum() <= published, "variants are published too"
    assert set(lineage["task_id"]) == set(tasks["task_id"]) and set(lineage["session_id"]) <= set(
        rows_by_view["main.sessions"]["session_id"])
    first = lineage.filter(pl.col("path").str.ends_with(".jsonl")).row(0, named=True)
    assert json.loads(Path(first["path"]).read_bytes()[first["byte_offset"]:][:first["n_bytes"]])


def test_the_grader_believes_no_content_of_a_journal(
    start: Start, sample_environment: Path, rewards: Path, solutions: dict[str, list[dict[str, Any]]],
) -> None:
    """Answers that an agent's side made up change nothing: the grader asks its own copy of the world."""
    grader = Environment.load(sample_environment, rewards)
    task_id = min(solutions)
    with start(task_id) as room:
        journal = played(room, solutions[task_id])
    forged = [row | {"content": "all done", "is_error": False, "tier": "recorded"} if row["kind"] == "call" else row
              for row in journal]
    assert grader.grade_journal(task_id, forged) == grader.grade_journal(task_id, journal)


def test_a_room_apart_answers_as_the_room_in_this_process(
    start: Start, sample_environment: Path, solutions: dict[str, list[dict[str, Any]]],
) -> None:
    here = Environment.load(sample_environment)
    task_id = max(solutions, key=lambda task_id: (len(solutions[task_id]), task_id))
    beginning = here.reset(task_id)
    with start(task_id) as room:
        assert room.reset(task_id)["messages"] == beginning.messages
        assert room.tools() == beginning.tools
        for step in solutions[task_id]:
            if "say" in step:
                assert room.say(step["say"]) == here.say(step["say"])
            else:
                there = room.call(step["tool"], step["arguments"])
                assert there[:3] == here.call(step["tool"], step["arguments"])
        assert room.journal() == list(here.journal)


def test_the_room_holds_nothing_of_the_grader(sample_environment: Path, rewards: Path) -> None:
    """Neither rubric nor solution lies in the room, and the agent's side gets neither world nor task."""
    files = {path.name for path in sample_environment.rglob("*") if path.is_file()}
    assert not files & {"rubrics.jsonl", "solutions.jsonl", "rewards.json"}
    held = "".join(path.read_text("utf-8") for path in sorted(sample_environment.glob("*.json*")))
    for row in rows(rewards / "rubrics.jsonl"):
        assert row["rubric_id"] not in held


@pytest.mark.docker
def test_the_image_can_be_built_from_the_dockerfile_too(sample_environment: Path, base_image: str) -> None:
    client = image.engine()
    built, _ = client.images.build(path=str(sample_environment), buildargs={"BASE": base_image}, rm=True)
    task_id = rows(sample_environment / "tasks.jsonl")[0]["task_id"]
    with image.start(sample_environment, task_id, image_id=str(built.id)) as room:
        assert [tool["name"] for tool in room.tools()] == [row["name"] for row in rows(sample_environment / "tools.jsonl")]
