"""The stage `apps`: exports of a company's apps in the warehouse, with the privacy of logs."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import QueryParams

from env_builder.runtime.company import CompanyWorld
from extractors.apps import AppVersion, ExportFile
from extractors.inventory import SourceFile
from pipelines.browser import shown
from pipelines.browser.pages import Browser
from pipelines.building import companies
from pipelines.building.companies import apps, within
from pipelines.ingestion.ingest import ingest
from pipelines.inspection.company import stored_company
from pipelines.settings import Settings
from warehouse.errors import Missing
from warehouse.lock import writing
from warehouse.store import Store

_PEOPLE = [("U1", "Petra Alvarez", "petra.alvarez@example.org"), ("U2", "Karim Novotny", "knovotny@example.org")]
_USERS = [{"id": key, "name": f"{name.split()[0].lower()}.x", "profile": {"real_name": name, "email": address}}
          for key, name, address in _PEOPLE]
_ROOM = {"id": "C1", "name": "hall", "created": 1000, "members": ["U1", "U2"], "topic": {"value": "", "last_set": 0}}
_ISSUES = [{
    "number": 7, "title": "Slow", "user": {"login": login}, "state": "open", "created_at": "2026-03-02T08:00:00Z",
    "updated_at": "2026-03-02T08:00:00Z", "html_url": "https://github.com/acme/app/issues/7", "body": "It is slow.",
    "labels": [], "timeline": []} for login in ("palvarez",)]
_MAIL = b"""From petra.alvarez@example.org Mon Mar  2 09:00:00 2026
Message-ID: <1@example.org>
From: Petra Alvarez <petra.alvarez@example.org>
To: Karim Novotny <knovotny@example.org>
Date: Mon, 02 Mar 2026 09:00:00 +0000
Subject: Thanks

Dear Karim,

the report is done.

Petra
"""


@pytest.fixture
def exports(tmp_path: Path) -> Path:
    return write_exports(tmp_path)


def write_exports(folder: Path) -> Path:
    """Write the exports of a company of two people into the folder's `logs`."""
    messages = [{"type": "message", "user": "U2", "text": "ask <@U1>, Petra knows", "ts": "1772442195.209922"}]
    files = {"slack/users.json": _USERS, "slack/channels.json": [_ROOM], "slack/hall/2026-03-02.json": messages,
             "github/acme_app_issues.json": _ISSUES, "mail/petra.alvarez@example.org.mbox": _MAIL}
    for path, content in files.items():
        (folder / "logs" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "logs" / path).write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return folder


def read(exports: Path, privacy: bool) -> Store:
    settings = Settings(logs=(str(exports / "logs"),), out=str(exports / "out"), privacy=privacy)
    Path(settings.out).mkdir(exist_ok=True)
    with writing(settings.warehouse, "a test"), Store.open(settings.warehouse) as store:
        ingest(store, settings)
        apps(store, settings)
    return Store.open(settings.warehouse, write=False)


def test_a_file_of_an_app_is_no_unknown_log(exports: Path) -> None:
    with read(exports, privacy=False) as store:
        reasons = store.read("select stage, reason, kept from mart.decisions where file_id is not null or stage = 'apps'")
        assert set(reasons.filter(~reasons["kept"])["reason"]) == {"read_by_app"}
        assert reasons.filter(reasons["stage"] == "apps").height == 5


def test_what_is_stored_is_what_the_exports_show(exports: Path) -> None:
    with read(exports, privacy=False) as store:
        company = stored_company(store)
    state = company.world.at(2**61)
    assert state.values("slack", "C1/1772442195.209922")["text"] == "ask <@U1>, Petra knows"
    assert company.accounts["petra.alvarez@example.org"]["slack_user"] == "U1"


def test_no_name_of_a_person_is_stored_and_accounts_stay_joined(exports: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRACEROOM_KEY", base64.b64encode(bytes(32)).decode())
    with read(exports, privacy=True) as store:
        stored = store.read("select * from core.versions order by position").write_csv()
        company = stored_company(store)
    for name in ("Petra", "Alvarez", "Karim", "Novotny", "palvarez", "knovotny"):
        assert name.lower() not in stored.lower(), name
    state = company.world.at(2**61)
    accounts = set(state.ids("slack_user"))
    assert {own["slack_user"] for own in company.accounts.values()} == accounts
    (message,) = state.ids("slack")
    assert state.values("slack", message)["user"] in accounts
    mentioned = state.values("slack", message)["text"].partition("<@")[2].partition(">")[0]
    assert mentioned in accounts - {state.values("slack", message)["user"]}


def test_an_unchanged_export_is_stored_as_before_and_a_changed_one_again(exports: Path) -> None:
    with read(exports, privacy=False) as store:
        before = store.table("core.versions")
    with read(exports, privacy=False) as store:
        assert store.table("core.versions").equals(before)
    path = exports / "logs/mail/petra.alvarez@example.org.mbox"
    path.write_bytes(_MAIL.replace(b"is done", b"is late"))
    with read(exports, privacy=False) as store:
        assert "is late" in store.table("core.versions").write_csv()


def test_a_new_log_of_something_else_has_no_export_read_again(exports: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with read(exports, privacy=True) as store:
        before = store.table("core.versions")
    opened = list[str]()
    plain = companies.export_of

    def noting(file: SourceFile) -> ExportFile:
        opened.append(file.relative)
        return plain(file)

    monkeypatch.setattr(companies, "export_of", noting)
    (exports / "logs/calls.jsonl").write_text('{"messages": [{"role": "user", "content": "hello"}]}\n', "utf-8")
    with read(exports, privacy=True) as store:
        assert store.table("core.versions").equals(before) and opened == []
    (exports / "logs/slack/hall/2026-03-03.json").write_text(json.dumps([
        {"type": "message", "user": "U2", "text": "new day", "ts": "1772542195.209922"}]), "utf-8")
    with read(exports, privacy=True) as store:
        assert "new day" in store.table("core.versions").write_csv() and len(opened) == 6
    (exports / "logs/slack/hall/2026-03-03.json").unlink()
    with read(exports, privacy=True) as store:
        assert store.table("core.versions").equals(before), "what is not there any more is not stored"


def test_logs_without_exports_have_no_company(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs/calls.jsonl").write_text('{"messages": [{"role": "user", "content": "hello"}]}\n', "utf-8")
    with read(tmp_path, privacy=False) as store:
        assert store.count("core.versions") == 0


def _page(browser: Browser, **query: str) -> str:
    values = browser.company(QueryParams(query))
    template = values.pop("template")
    return bytes(shown.page(template, 200, **values, may_write=False, here="/company", path="/company", form_field="",
                            form_token="", author="").body).decode()


def test_a_page_shows_the_company_with_what_is_not_known(exports: Path) -> None:
    message = {"type": "message", "user": "U2", "text": "late", "ts": "1772442300.000100",
               "edited": {"user": "U2", "ts": "1772452300.000000"}}
    (exports / "logs/slack/hall/2026-03-02.json").write_text(json.dumps([message]), "utf-8")
    with read(exports, privacy=False) as store:
        store.publish()
    browser = Browser(exports / "out")
    page = _page(browser, at="2026-03-02T09:06:00Z", app="slack")
    assert "C1/1772442300.000100" in page
    assert "not known" in page.partition("newest first")[2]
    assert "late" not in page.partition("newest first")[2]
    assert "late" in _page(browser, app="slack")
    with pytest.raises(Missing, match=r"zoe@example\.org"):
        browser.company(QueryParams({"as": "zoe@example.org"}))


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 30), st.integers(0, 9)), max_size=30), st.integers(1, 30))
def test_a_window_changes_no_instant_in_it(rows: list[tuple[int, int, int]], days: int) -> None:
    day = 86_400 * 1_000_000
    ordered = sorted(rows, key=lambda row: row[1])
    versions = [AppVersion("thing", str(key), "field", value, at * day) for key, at, value in ordered]
    end = max((version.at for version in versions), default=0)
    kept = within(versions, days)
    for instant in range(max(end - days * day, 0), end + 1, day):
        one, other = (list(CompanyWorld(each).at(instant).fields()) for each in (versions, kept))
        assert [field[:4] for field in one] == [field[:4] for field in other]
    assert len(kept) <= len(versions)
