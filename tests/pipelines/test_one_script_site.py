"""A site of one script, on which most habits of others fail, becomes an environment: who came in, which page, which entity."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from env_builder import Environment
from pipelines.running.run import run
from pipelines.settings import Settings
from tests.env_builder.site.boxes import BoxRecorder, BoxSite
from warehouse.store import Store

NAME = "site-cards-example"
STATES = {"1": "empty", "2": "full", "3": "broken"}


def record() -> BoxRecorder:
    """Let people set states and move boxes, most as they are asked to."""
    recorder = BoxRecorder(BoxSite())
    for number in range(41, 47):
        recorder.sit_down("ivo" if number % 2 else "rut", f"box {number} should be {STATES['2']} now", wrong=number == 42)
        recorder.change(number, state="2")
        recorder.say("done")
        recorder.sit_down("ivo", f"please move box {number} to cellar {number}")
        if number == 43:
            recorder.ask("GET", "/main?page=box&id=43")
            recorder.lose()
            recorder.ask("GET", "/main?page=box&id=43")
            recorder.log_in()
        recorder.change(number, place=f"cellar {number}")
    recorder.sit_down("rut", "box 47 should be full now")
    recorder.change(48, state="2")
    recorder.sit_down("rut", "box 47 should be broken now")
    recorder.change(47, state="2")
    return recorder


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("boxes")
    record().write_logs(folder / "logs")
    run(Settings(logs=(str(folder / "logs"),), out=str(folder / "out"), image=False))
    return folder / "out"


def solutions(out: Path) -> dict[str, list[dict[str, object]]]:
    rows = map(json.loads, (out / "rewards" / NAME / "solutions.jsonl").read_text().splitlines())
    return {row["task_id"]: row["steps"] for row in rows}


def test_work_is_judged_by_the_entity_and_the_choice(out: Path) -> None:
    with Store.published(out / "warehouse.duckdb") as store:
        work = store.table("mart.site_work").to_dicts()
    wrong = {row["ask"].partition("> ")[2]: row["broken"] for row in work if row["is_right"] is False}
    assert {ask: [law.rpartition("; ")[2] for law in broken] for ask, broken in wrong.items()} == {
        "box 47 should be full now": ["entity"], "box 47 should be broken now": ["state"]}
    assert len([row for row in work if row["task_id"]]) == 12


def test_every_known_solution_is_paid_and_the_same_on_another_entity_is_not(out: Path) -> None:
    environment = Environment.load(out / "environments" / NAME)
    for task in environment.tasks:
        steps = solutions(out)[task.task_id]
        assert not any(step["tool"] == "chat_post" for step in steps), "nothing depends on a note that lists nothing"
        for other in (None, "48"):
            environment.reset(task.task_id)
            number = next(word for word in task.goal.split() if word in [str(each) for each in range(41, 47)])
            for step in steps:
                if other is not None and "page=box" in json.dumps(step):
                    step = json.loads(json.dumps(step).replace(f"id={number}", f"id={other}"))
                environment.call(str(step["tool"]), step["arguments"])  # type: ignore[arg-type]
            environment.finish()
            if other is None:
                assert environment.grade().reward == 1.0, task.goal
