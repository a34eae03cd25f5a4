"""The stage `work`: pieces of work in the warehouse, by the command line, and on the browser's page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from starlette.datastructures import QueryParams
from typer.testing import CliRunner

from pipelines.browser import shown
from pipelines.browser.pages import Browser
from pipelines.building.companies import apps
from pipelines.building.work import work
from pipelines.cli import app
from pipelines.ingestion.ingest import ingest
from pipelines.settings import Settings
from warehouse.errors import Missing
from warehouse.lock import writing
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
        row["work_item_id"]: row["reason"] or "work_item" for row in items.to_dicts()}


def test_a_run_without_exports_stores_nothing(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "notes.txt").write_text("nothing")
    with Store.published(run(tmp_path) / "warehouse.duckdb") as store:
        assert store.table("core.work_events").height == store.table("mart.work_items").height == 0
    with pytest.raises(Missing):
        Browser(tmp_path / "out").work(QueryParams(""))


def test_the_command_lists_kinds_and_prints_each_item(out: Path) -> None:
    listed = CliRunner().invoke(app, ["show", "work", "--out", str(out)])
    assert listed.exit_code == 0 and "saws" in listed.output
    printed = CliRunner().invoke(app, ["show", "work", "--out", str(out), "--json"])
    rows = [json.loads(line) for line in printed.output.splitlines()]
    talks = [row for row in rows if len(row["refs"]) == 2]
    assert len(talks) == 8 and len({row["family"] for row in talks}) == 1 and all(row["opened_at"] for row in rows)
    read = CliRunner().invoke(app, ["show", "work", "--logs", str(out.parent / "logs"), "--json"])
    assert [json.loads(line) for line in read.output.splitlines()] == rows


def test_the_pages_show_steps_items_and_hostile_words_as_words(out: Path) -> None:
    browser = Browser(out)
    row = browser.library.rows("select * from mart.work_items where work_item_id like 'slack:%' order by 1 limit 1")[0]
    pages = [page(browser, query) for query in ("", f"kind={row['kind']}", f"item={row['work_item_id'].replace('#', '%23')}")]
    assert all("<script" not in html and " style=" not in html for html in pages)
    assert all(f">{row['kind']}<" in html for html in pages) and "hall" in pages[0]
    assert "Where it goes wrong" in pages[1]
    assert "&lt;b&gt;sharpen&lt;/b&gt;" in pages[2] and "same thread as 1" in pages[2]


@pytest.mark.parametrize("query", ["kind=none", "item=none"])
def test_a_page_of_nothing_is_missing(out: Path, query: str) -> None:
    with pytest.raises(Missing):
        Browser(out).work(QueryParams(query))


def page(browser: Browser, query: str) -> str:
    values = browser.work(QueryParams(query))
    return bytes(shown.page(values.pop("template"), **values, may_write=False, here="/work", path="/work", form_field="",
                            form_token="", author="").body).decode()
