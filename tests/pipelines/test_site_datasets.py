"""Datasets of what people did right on a site: steps on pages and conversations, in a run and on request."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from env_builder import Environment
from pipelines.building.export import Wanted, export
from pipelines.inspection.summary import summary
from pipelines.running.run import run
from pipelines.settings import Settings
from tests.conftest import lacking
from tests.consumers.consumers import PROGRAMS, SHARED, Consumer
from tests.consumers.interpreters import Lacking, interpreter
from tests.pipelines.test_site_rooms import NAME, record
from warehouse.records import SPLITS
from warehouse.store import Store

Row = dict[str, Any]


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site_datasets")
    record().write_logs(folder / "logs")
    run(Settings(logs=(str(folder / "logs"),), out=str(folder / "out"), image=False))
    return folder / "out"


def lines(folder: Path, form: str) -> list[Row]:
    return [json.loads(line) for split in SPLITS for line in (folder / f"{form}.{split}.jsonl").read_text().splitlines()]


def of_task(rows: list[Row], task_id: str) -> list[Row]:
    return [row for row in rows if row["task_id"] == task_id]


def test_a_run_writes_counts_and_names_the_datasets_of_a_site(out: Path) -> None:
    with Store.published(out / "warehouse.duckdb") as store:
        rows = {row["path"]: row for row in store.table("mart.datasets").to_dicts()}
    folder = out / "datasets" / NAME
    steps = {split: rows[f"datasets/{NAME}/steps.{split}.jsonl"] for split in SPLITS}
    assert sum(row["n_rows"] for row in steps.values()) == len(lines(folder, "steps")) > 40
    assert {row["kind"] for row in steps.values()} == {"steps"} and f"datasets/{NAME}/sft.train.jsonl" in rows
    listed = [row for row in summary(Settings(logs=(), out=str(out)))["dataset_rows"] if row["folder"].endswith(NAME)]
    assert {row["kind"]: row["n_rows"] for row in listed}["steps"] == len(lines(folder, "steps"))
    assert "| `steps` |" in (folder / "README.md").read_text()


def test_steps_of_an_episode_are_what_solves_its_task(out: Path) -> None:
    environment, steps = Environment.load(out / "environments" / NAME), lines(out / "datasets" / NAME, "steps")
    recorded = [task for task in environment.tasks if task.derived_from is None]
    assert {row["task_id"] for row in steps} == {task.task_id for task in recorded}, "no person did a variant"
    for task in recorded:
        own = of_task(steps, task.task_id)
        assert [row["step"] for row in own] == list(range(len(own))) and {row["goal"] for row in own} == {task.goal}
        environment.reset(task.task_id, seed=0)
        for row in own:
            shown = environment.call("browser_snapshot", {}).content
            assert row["observation"] == (shown if row["step"] else "### Page\n- Page URL: about:blank"), row["action"]
            environment.call(row["action"]["tool"], json.loads(row["action"]["arguments"]))
        environment.finish()
        assert environment.grade().reward == 1.0
        assert [row["reward"] for row in own] == [0.0] * (len(own) - 1) + [1.0] and {row["return"] for row in own} == {1.0}


def test_what_was_acted_on_is_the_one_positive_candidate(out: Path) -> None:
    clicks = 0
    for row in lines(out / "datasets" / NAME, "steps"):
        positive = [each for each in row["candidates"] if each["positive"]]
        target = json.loads(row["action"]["arguments"]).get("target")
        if row["action"]["tool"] == "browser_press_key":
            assert [f"[active] [ref={each['ref']}]" in row["observation"] for each in positive] == [True]
        else:
            assert [each["ref"] for each in positive] == ([] if target is None else [target])
        assert all(f"[ref={each['ref']}]" in row["observation"] for each in row["candidates"])
        assert len(row["history"]) == row["step"]
        clicks += target is not None
    assert clicks > 20


def test_conversations_hold_the_same_calls_in_the_same_order(out: Path) -> None:
    folder = out / "datasets" / NAME
    steps = lines(folder, "steps")
    for row in lines(folder, "sft"):
        assert [message["role"] for message in row["messages"][:2]] == ["user", "assistant"]
        calls = [call["function"] for message in row["messages"] for call in message.get("tool_calls", ())]
        assert [(call["name"], call["arguments"]) for call in calls] == [
            (each["action"]["tool"], each["action"]["arguments"]) for each in of_task(steps, row["task_id"])]
        assert {call["name"] for call in calls} <= {each["function"]["name"] for each in json.loads(row["tools"])}


def test_every_form_is_exported_on_request_and_of_one_form_that_alone(out: Path, tmp_path: Path) -> None:
    place = out / "environments" / NAME
    export("datasets", place, tmp_path / "all", Wanted())
    assert lines(tmp_path / "all", "steps") and lines(tmp_path / "all", "kto") and lines(tmp_path / "all", "grpo")
    table = pl.read_parquet(tmp_path / "all" / "trajectories.train.parquet")
    assert table["tier"].drop_nulls().len() == table.filter(kind="result").height > 0
    export("sft", place, tmp_path / "one", Wanted())
    assert not list((tmp_path / "one").glob("steps.*"))


def test_the_rows_are_the_same_in_every_run(out: Path, tmp_path: Path) -> None:
    record().write_logs(tmp_path / "logs")
    run(Settings(logs=(str(tmp_path / "logs"),), out=str(tmp_path / "out"), image=False))
    for split in SPLITS:
        name = f"datasets/{NAME}/steps.{split}.jsonl"
        assert (out / name).read_bytes() == (tmp_path / "out" / name).read_bytes()


@pytest.mark.slow
def test_the_datasets_library_reads_every_step(out: Path, tmp_path: Path) -> None:
    reader = Consumer("page_steps", ("datasets==5.2.0",), ())
    try:
        python = interpreter(reader)
    except Lacking as error:
        lacking(f"the datasets library cannot be had: {error}")
    command = [python, "-P", PROGRAMS / "page_steps.py", out / "datasets" / NAME, tmp_path]
    done = subprocess.run(command, cwd=tmp_path, text=True,
                          capture_output=True, env={**os.environ, "PYTHONPATH": str(SHARED)}, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert json.loads(done.stdout.splitlines()[-1])["steps"] == len(lines(out / "datasets" / NAME, "steps"))
