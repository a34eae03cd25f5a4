"""The stage `work`: pieces of work in the warehouse, by the command line, and on the browser's page."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlencode

import pytest
from starlette.datastructures import QueryParams
from typer.testing import CliRunner

from extractors.work.finding import describe_items
from pipelines.browser import shown
from pipelines.browser.pages import Browser
from pipelines.building.companies import apps
from pipelines.building.work import work
from pipelines.building.work_rows import event_rows, item_rows
from pipelines.cli import app
from pipelines.ingestion.ingest import ingest
from pipelines.settings import Settings
from tests.extractors.work.mill import ROLES, usual_mill
from warehouse.errors import Missing
from warehouse.lock import writing
from warehouse.records import WorkEventRow, WorkItemRow, frame
from warehouse.store import Store

_USERS = [{"id": f"U{n}", "name": name, "profile": {"real_name": name.title(), "email": f"{name}@example.org"}}
          for n, name in enumerate(("ada", "ben"), 1)]
_ROOM = {"id": "C1", "name": "hall", "created": 1000, "members": ["U1", "U2"], "topic": {"value": "", "last_set": 0}}
_MAIL = """From ben@example.org Mon Mar  2 09:00:00 2026
Message-ID: <1@example.org>
From: Ben <ben@example.org>
To: Ada <ada@example.org>
Date: Mon, 02 Mar 2026 09:00:00 +0000
Subject: Lunch

soup
"""
_DAY = 1_772_442_195


def talk(day: int) -> list[dict[str, str]]:
    """Return a request and its answer."""
    asked = f"{_DAY + 86_400 * day}.000100"
    request = f"could you <b>sharpen</b> {day + 3} saws?"
    return [{"type": "message", "user": "U1", "text": request, "ts": asked, "thread_ts": asked},
            {"type": "message", "user": "U2", "text": f"sharpened {day + 3} saws", "ts": f"{_DAY + 86_400 * day + 60}.000200",
             "thread_ts": asked}]


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("company")
    files = {"slack/users.json": _USERS, "slack/channels.json": [_ROOM],
             "slack/hall/2026-03-02.json": [message for day in range(8) for message in talk(day)]}
    for path, content in files.items():
        (folder / "logs" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "logs" / path).write_text(json.dumps(content))
    (folder / "logs" / "mail").mkdir()
    (folder / "logs" / "mail" / "ada@example.org.mbox").write_text(_MAIL)
    return run(folder)


def run(folder: Path) -> Path:
    settings = Settings(logs=(str(folder / "logs"),), out=str(folder / "out"), privacy=False)
    Path(settings.out).mkdir(exist_ok=True)
    with writing(settings.warehouse, "a test"), Store.open(settings.warehouse) as store:
        ingest(store, settings)
        apps(store, settings)
        work(store, settings)
        store.publish()
    return Path(settings.out)


def test_each_act_is_a_row_and_each_item_has_a_decision(out: Path) -> None:
    with Store.published(out / "warehouse.duckdb") as store:
        acts = store.table("core.work_events")
        items = store.table("mart.work_items")
        decided = store.read("select subject, kept, reason from mart.decisions where stage = 'work'")
    assert set(acts.filter(acts["entity_class"] == "slack")["container"]) == {"slack_channel:C1"}
    assert sorted(decided["subject"]) == sorted(items["work_item_id"])
    assert set(acts["ref"]) == {ref for refs in items["refs"] for ref in refs}
    assert dict(decided.select("subject", "reason").iter_rows()) == {
        row["work_item_id"]: row["reason"].replace(" ", "_") or "work_item" for row in items.to_dicts()}


def test_a_run_without_exports_stores_nothing(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "notes.txt").write_text("nothing")
    with Store.published(run(tmp_path) / "warehouse.duckdb") as store:
        assert store.table("core.work_events").height == store.table("mart.work_items").height == 0
    with pytest.raises(Missing):
        Browser(tmp_path / "out").work(QueryParams(""))


@pytest.fixture(scope="module")
def mill(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run with two kinds of work."""
    folder = tmp_path_factory.mktemp("mill")
    made = usual_mill()
    made.lend(30, 99, asked=42, last="<b>wrong</b>")
    events, items = made.work()
    company_work = describe_items(items, events, ROLES)
    warehouse = Settings(logs=(), out=str(folder)).warehouse
    with writing(warehouse, "a test"), Store.open(warehouse) as store:
        store.replace("core.work_events", frame(WorkEventRow, event_rows(company_work)))
        store.replace("mart.work_items", frame(WorkItemRow, item_rows(company_work)))
        store.publish()
    return folder


def test_the_command_lists_kinds_and_prints_each_item(mill: Path) -> None:
    listed = CliRunner().invoke(app, ["show", "work", "--out", str(mill)])
    assert listed.exit_code == 0
    printed = CliRunner().invoke(app, ["show", "work", "--out", str(mill), "--json"])
    rows = [json.loads(line) for line in printed.output.splitlines()]
    assert len(rows) == 25 and len({row["family"] for row in rows}) == 2 and all(row["opened_at"] for row in rows)


def test_the_pages_show_steps_items_and_hostile_words_as_words(mill: Path) -> None:
    browser = Browser(mill)
    row = browser.library.rows("select * from mart.work_items where success is not null order by opened_at desc limit 1")[0]
    pages = [page(browser, urlencode(query)) for query in ({}, {"kind": row["kind"]}, {"item": row["work_item_id"]})]
    assert all("<script" not in html and " style=" not in html for html in pages)
    assert all(f">{row['kind']}<" in html for html in pages) and "13 items" in pages[0]
    assert "Where it goes wrong" in pages[1] and "a value differs from what was written before" in pages[1]
    assert "&lt;b&gt;wrong&lt;/b&gt;" in pages[2] and "same thread as 1" in pages[2]


def test_kinds_in_which_nothing_but_words_came_about_are_listed_apart(tmp_path: Path) -> None:
    def act(position: int, entity_class: str, verb: str, place: str = "") -> WorkEventRow:
        return WorkEventRow(
            position=position, ref=f"{entity_class}:{position}", happened_at=datetime(2026, 3, 2, 9, position, tzinfo=UTC),
            entity_class=entity_class, entity_id=str(position), verb=f"{entity_class} {verb}", container="", actor="U1",
            place=place, thread=f"t{position}", addressees=[], texts=[], record="", changes="[]")

    acts = [act(0, "slack_channel", "members"), act(1, "slack", "created", "slack_channel:C1"),
            act(2, "slack", "created", "slack_channel:C1"), act(3, "jira", "created"), act(4, "jira", "status")]
    items = [WorkItemRow(work_item_id=kind, refs=[each.ref for each in acts[first:last]], kind=kind, probability=1.0,
                         success=None, opened_at=acts[first].happened_at, closed_at=acts[last - 1].happened_at, reason="",
                         slots="{}", votes="[]", corrections="[]") for kind, first, last in (("chatter", 0, 2), ("mend", 2, 5))]
    warehouse = Settings(logs=(), out=str(tmp_path)).warehouse
    with writing(warehouse, "a test"), Store.open(warehouse) as store:
        store.replace("core.work_events", frame(WorkEventRow, acts))
        store.replace("mart.work_items", frame(WorkItemRow, items))
        store.publish()
    browser = Browser(tmp_path)
    values = browser.work(QueryParams(""))
    assert [row["kind"] for row in values["kinds"]] == ["mend"] and [row["kind"] for row in values["talk"]] == ["chatter"]
    html = page(browser, "")
    assert "Only words" in html and "1 chatter" in html and "chatter" in page(browser, "kind=chatter")
    listed = CliRunner().invoke(app, ["show", "work", "--out", str(tmp_path)]).output
    assert "mend" in listed and "chatter" not in listed


@pytest.mark.parametrize("query", ["kind=none", "item=none"])
def test_a_page_of_nothing_is_missing(mill: Path, query: str) -> None:
    with pytest.raises(Missing):
        Browser(mill).work(QueryParams(query))


def page(browser: Browser, query: str) -> str:
    values = browser.work(QueryParams(query))
    return bytes(shown.page(values.pop("template"), **values, may_write=False, here="/work", path="/work", form_field="",
                            form_token="", author="").body).decode()
