"""The stage `company_rooms`: one environment of a company from the exports of its apps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from env_builder import Environment
from env_builder.company.rooms import CompanyTask
from env_builder.runtime.files import rows_of
from pipelines.building.companies import apps
from pipelines.building.company_rooms import company_rooms, environment_name, hold, publish_company
from pipelines.building.environments import environments
from pipelines.ingestion.ingest import ingest
from pipelines.settings import Settings
from tests.apps import rubric
from tests.pipelines.test_company_stage import write_exports
from warehouse.lock import writing
from warehouse.store import Store

PETRA, AT = "petra.alvarez@example.org", "2026-03-02T10:00:00+00:00"
POST = [{"tool": "conversations_add_message", "arguments": {"channel_id": "C1", "payload": "on it"}}]
PLAIN = CompanyTask("a" * 64, AT, PETRA, "Please say in #hall that you are on it.")


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    write_exports(tmp_path)
    return Settings(logs=(str(tmp_path / "logs"),), out=str(tmp_path / "out"), privacy=False, image=False)


def run(settings: Settings, tasks: list[CompanyTask] | None = None) -> None:
    Path(settings.out).mkdir(exist_ok=True)
    with writing(settings.warehouse, "a test"), Store.open(settings.warehouse) as store:
        ingest(store, settings)
        apps(store, settings)
        counts = company_rooms(store, settings) if tasks is None else publish_company(store, settings, tasks)
        assert counts["n_company_rooms"] == store.count("mart.company_rooms")
        assert hold(store, settings)
        environments(store, settings)   # which removes what is nobody's
        assert hold(store, settings)


def decisions(settings: Settings) -> dict[str, str]:
    with Store.open(settings.warehouse, write=False) as store:
        return dict(store.read("select subject, reason from mart.decisions where stage = 'company_rooms'").iter_rows())


def graded(folder: Path) -> CompanyTask:
    environment = Environment.load_room(folder)
    environment.reset(PLAIN.task_id)
    assert not environment.call(POST[0]["tool"], POST[0]["arguments"]).is_error
    return PLAIN._replace(rubric=rubric(environment.difference(), PLAIN.task_id), solution=POST)


def test_without_tasks_the_company_is_an_open_environment_that_is_not_verified(settings: Settings) -> None:
    run(settings)
    folder = settings.unverified / "company"
    environment = Environment.load_room(folder)
    environment.reset(None, at=AT)
    assert "hall" in environment.call("channels_list", {"channel_types": "public_channel"}).content
    assert decisions(settings) == {"company": "unverified"} and not (settings.environments / "company").exists()
    assert {tool["name"] for tool in environment.tools} >= {"conversations_history", "search_gmail_messages", "list_issues"}
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    (app,) = manifest["apps"]
    assert sorted(name for own in app["endpoints"].values() for name in own) == sorted(
        tool["name"] for tool in environment.tools)


def test_tasks_that_hold_are_published_and_the_others_are_not(settings: Settings) -> None:
    run(settings, [PLAIN])
    assert decisions(settings) == {"company": "unverified", PLAIN.task_id: "no_rubric"}
    task = graded(settings.unverified / "company")
    wrong = task._replace(task_id="b" * 64, rubric={**(task.rubric or {}), "task_id": "b" * 64}, solution=[
        {"tool": "channels_list", "arguments": {"channel_types": "public_channel"}}])
    stranger = PLAIN._replace(task_id="c" * 64, acting_for="zoe@example.org")
    run(settings, [task, wrong, stranger])
    assert [row["task_id"] for row in rows_of(settings.environments / "company" / "tasks.jsonl")] == [task.task_id]
    assert [row["task_id"] for row in rows_of(settings.unverified / "company" / "tasks.jsonl")] == [wrong.task_id]
    reasons = decisions(settings)
    assert reasons[task.task_id] == "verified" and reasons[stranger.task_id] == "nobody_known"
    environment = Environment.load(settings.environments / "company")
    environment.reset(task.task_id)
    environment.call(POST[0]["tool"], POST[0]["arguments"])
    assert environment.grade_journal(task.task_id, environment.journal).reward == 1.0
    run(settings, [])
    assert not (settings.environments / "company").exists() and not (settings.rewards / "company").exists()


def test_the_same_exports_give_the_same_bytes(settings: Settings) -> None:
    run(settings)
    with Store.open(settings.warehouse, write=False) as store:
        before = store.table("mart.company_rooms")
    run(settings)
    with Store.open(settings.warehouse, write=False) as store:
        assert store.table("mart.company_rooms").equals(before)
        assert environment_name(store) == "company"


def test_without_exports_there_is_no_company(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/calls.jsonl").write_text('{"messages": [{"role": "user", "content": "hello"}]}\n', "utf-8")
    settings = Settings(logs=(str(tmp_path / "logs"),), out=str(tmp_path / "out"), privacy=False, image=False)
    run(settings)
    assert decisions(settings) == {} and not (settings.unverified / "company").exists()
