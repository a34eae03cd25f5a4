"""Logins that run out: learnt from people who came in again, played by a seed, and renewed with the known password."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder.runtime.apps import Start
from env_builder.runtime.apps.site import SiteApp, SiteState, load
from env_builder.runtime.site.port import PortRequest
from env_builder.site.app import SiteContent, write_app
from env_builder.site.expiring import login_target, usual_target
from env_builder.site.recorded import page_sessions
from extractors.routes import templates
from tests.env_builder.site.cards import CardSite, Recorder

LOGIN = "ivo@cards.example"
START = Start("2031-01-01T00:00:00+00:00", frozenset(["s1"]))
SIGNING_IN = (("who", LOGIN), ("password", "sesame"), ("token", "abc"))


def record(n_sessions: int, *, lost: bool, pause: float = 0) -> Recorder:
    """Let somebody edit cards; in every session the login is lost once, before the card."""
    recorder = Recorder(CardSite(3), datetime(2030, 12, 1, tzinfo=UTC))
    for session in range(n_sessions):
        number = 101 + session % 3
        recorder.sit_down("ivo")
        recorder.ask("GET", "/cards/")
        if lost:
            recorder.lose()
            recorder.pause(pause)
            recorder.ask("GET", f"/cards/{number}/")
            recorder.ask("POST", f"/login/?next=/cards/{number}/", SIGNING_IN)
        recorder.ask("GET", f"/cards/{number}/")
        recorder.ask("POST", f"/cards/{number}/", (("work", "edit"), ("title", f"Torch {number}"), ("level", "high")))
    return recorder


def app_of(recorder: Recorder, folder: Path) -> SiteApp:
    sessions = page_sessions(recorder.events)
    paths = templates([request.path for session in sessions for request in session.requests])
    write_app(folder, SiteContent(sessions, {path: each for path, (each, _) in paths.items()}, frozenset(["s1"]), {},
                                  lambda _: None))
    return load(folder, {"name": "site", "origin": "https://cards.example"})


def learnt(folder: Path) -> dict[str, Any]:
    access: dict[str, Any] = json.loads((folder / "access.json").read_text())
    return access["expiry"]  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> SiteApp:
    return app_of(record(6, lost=True), tmp_path_factory.mktemp("site"))


def test_the_share_of_lost_logins_is_counted(tmp_path: Path) -> None:
    app_of(record(6, lost=True), tmp_path)
    expiry = learnt(tmp_path)
    assert (expiry["n_lost"], expiry["idle_s"]) == (6, None), "people pause as long before pages that they are shown"
    assert expiry["rate"] == pytest.approx(expiry["n_lost"] / expiry["n_requests"], abs=1e-6) and expiry["n_requests"] > 20


def test_logins_that_only_long_pauses_end_need_a_pause(tmp_path: Path) -> None:
    site = app_of(record(6, lost=True, pause=900), tmp_path)
    assert learnt(tmp_path)["rate"] == 0 and learnt(tmp_path)["idle_s"] == 907
    state = site.reset(START._replace(expiry=1))
    log_in(site, state)
    assert not asks(state.call("browser_navigate", {"url": "/cards/101/"}).content)
    for _ in range(31):
        state.call("browser_wait_for", {"time": 30})
    assert asks(state.call("browser_navigate", {"url": "/cards/101/"}).content)


def test_without_an_answer_to_people_who_are_not_logged_in_it_is_not_offered(tmp_path: Path) -> None:
    site = app_of(record(3, lost=False), tmp_path)
    assert "who was not logged in" in learnt(tmp_path)["why_not"]
    state = site.reset(START._replace(expiry=1))
    log_in(site, state)
    assert not any(asks(state.call("browser_navigate", {"url": "/cards/101/"}).content) for _ in range(50))


def test_where_only_the_answer_is_on_record_the_next_request_counts_as_lost(tmp_path: Path) -> None:
    recorder = record(3, lost=False)
    recorder.begin("ivo")
    recorder.ask("GET", "/cards/")
    recorder.ask("POST", "/login/?next=/cards/", SIGNING_IN)
    app_of(recorder, tmp_path)
    expiry = learnt(tmp_path)
    assert expiry["n_lost"] == 0 and expiry["rate"] == pytest.approx(1 / (expiry["n_requests"] + 1), abs=1e-6)


def asks(content: str) -> bool:
    return 'textbox "Password"' in content


def log_in(site: SiteApp, state: SiteState) -> str:
    """Log in on the page that is shown, or at the address of the login."""
    page = state.call("browser_snapshot", {}).content
    if not asks(page):
        page = state.call("browser_navigate", {"url": "/login/"}).content
    for tool, name, text in (("browser_type", 'textbox "Who"', LOGIN),
                             ("browser_type", 'textbox "Password"', site.access.passwords[LOGIN]),
                             ("browser_click", 'button "Go"', None)):
        ref = re.search(rf"{re.escape(name)}.*?\[ref=(e\d+)\]", state.call("browser_snapshot", {}).content)
        assert ref is not None, name
        page = state.call(tool, {"target": ref[1]} | ({"text": text} if text is not None else {})).content
    return page


def visits(site: SiteApp, state: SiteState, n_pages: int = 12) -> Iterator[str]:
    """Log in, and look at cards; yield the page of each, or that of the login."""
    log_in(site, state)
    for page in range(n_pages):
        yield state.call("browser_navigate", {"url": f"/cards/{101 + page % 3}/"}).content


@given(st.integers(0, 10_000))
def test_a_seed_loses_the_same_logins_and_none_are_lost_without_one(app: SiteApp, seed: int) -> None:
    start = START._replace(expiry=seed)
    one, other = [[asks(each) for each in visits(app, app.reset(start))] for _ in range(2)]
    assert one == other
    assert not any(asks(each) for each in visits(app, app.reset(START)))
    if True in one:
        assert all(one[one.index(True):]), "it stays lost until somebody logs in"


def test_whoever_logs_in_again_goes_on_where_they_were(app: SiteApp) -> None:
    n_lost = 0
    for seed in range(12):
        state = app.reset(START._replace(expiry=seed))
        log_in(app, state)
        for title in ("Lantern", "Candle"):
            page = state.call("browser_navigate", {"url": "/cards/102/"}).content
            while asks(page):
                n_lost += 1
                assert "/login/?next=" in page
                page = log_in(app, state)
            assert "Page URL: https://cards.example/cards/102/" in page, "the login leads back to what was asked for"
            edit = (("work", "edit"), ("title", title), ("level", "low"))
            assert state.port.ask(PortRequest("POST", "/cards/102/", edit)).location == "/cards/102/"
        assert [*state.difference()["documents"]] == ["form cards.*/102"], "both edits counted"
        assert "Candle" in str(state.difference()["documents"]["form cards.*/102"])
    assert n_lost > 2


def test_a_form_that_is_sent_without_a_login_changes_nothing(app: SiteApp) -> None:
    states = [app.reset(START._replace(expiry=seed)) for seed in range(30)]
    state = next(state for state in states if any(asks(each) for each in visits(app, state)))
    answer = state.port.ask(PortRequest("POST", "/cards/102/", (("work", "edit"), ("title", "Lantern"), ("level", "low"))))
    assert answer.tier == "unknown" and answer.page is not None and not state.difference()["documents"]
    wrong = state.port.ask(PortRequest("POST", "/login/", (("who", LOGIN), ("password", "wrong"))))
    assert wrong.location is None, "a wrong password does not renew it"
    assert asks(state.call("browser_navigate", {"url": "/cards/101/"}).content)


def test_a_fork_loses_its_login_alone(app: SiteApp) -> None:
    seed = next(seed for seed in range(30) if any(asks(each) for each in visits(app, app.reset(START._replace(expiry=seed)))))
    state = app.reset(START._replace(expiry=seed))
    log_in(app, state)
    before = state.snapshot()
    fork = state.fork()
    lost = [asks(fork.call("browser_navigate", {"url": f"/cards/{101 + page % 3}/"}).content) for page in range(12)]
    assert True in lost and state.snapshot() == before
    assert [asks(state.call("browser_navigate", {"url": f"/cards/{101 + page % 3}/"}).content) for page in range(12)] == lost


def test_a_refusal_at_once_is_shown_as_it_was_recorded(tmp_path: Path) -> None:
    recorder = record(3, lost=True)
    for event in recorder.events:
        value = json.loads(event["value"])
        if str(value.get("location", "")).startswith("/login/?next"):
            event["value"] = json.dumps({"status": 401, "type": "text/html", "body": "<h1>Who is there?</h1>"})
    recorder.events = [each for each in recorder.events if not (
        each["tool"] == "GET /login/" and "next" in json.loads(each["arguments"])["query"])]
    site = app_of(recorder, tmp_path)
    assert learnt(tmp_path)["n_lost"] == 3
    states = [site.reset(START._replace(expiry=seed)) for seed in range(10)]
    pages = [page for state in states for page in visits(site, state)]
    assert any("Who is there?" in page for page in pages) and not all("Who is there?" in page for page in pages)


@given(st.sampled_from(("/in?next={}", "/in?a=b&back={}&c=d")), st.text("abc/", min_size=1), st.text("abc=&", max_size=9))
def test_a_login_leads_back_to_the_address_or_its_path(pattern: str, path: str, query: str) -> None:
    url = f"/{path}?{query}" if query else f"/{path}"
    for asked, name in ((quote(url), "{next}"), (f"/{path}", "{path}")):
        target = login_target(url, pattern.format(asked))
        assert target.tells_them_apart == bool(query)
        if query:
            assert target.pattern == pattern.format(name)
    plain, whole = login_target("/d", pattern.format("/d")), login_target("/d?e=f", pattern.format("/d"))
    assert usual_target([plain, plain, whole]) == pattern.format("{path}"), "who asks with a query tells them apart"
    assert login_target("/", "/in").pattern == "/in", "what is asked for is in the query alone"
    assert usual_target([plain, plain]) == pattern.format("{next}")
