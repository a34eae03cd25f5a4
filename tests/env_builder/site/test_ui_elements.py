"""Events of a user interface say what a call was done to: by person, page and time, and nothing where they do not agree."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from env_builder.site.agreement import WorkVerdict
from env_builder.site.played_work import PlayedWork
from env_builder.site.playing import PlayedCall
from env_builder.site.recorded import PageSession, RecordedRequest
from env_builder.site.ui_elements import UiElements, ui_events
from env_builder.site.work import PieceOfWork

BEGIN = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
BUTTON = {"xpath": "/html[1]/body[1]/button[1]", "tag": "BUTTON", "text": "Save"}


def at(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def row(seconds: float, act: str = "click", person: str | None = "ann", url: str = "https://desk.test/cards/?page=2#top",
        **facts: Any) -> dict[str, Any]:
    return {"happened_at": at(seconds), "tool": act, "name": person, "arguments": json.dumps({"url": url, **BUTTON, **facts})}


def work(*calls: PlayedCall) -> PlayedWork:
    requests = [RecordedRequest(at(seconds), "GET", "/cards/?page=2", None, 200, None, "<p>x</p>", None)
                for seconds in (0, 10, 20)]
    session = PageSession("s1", "desk.test", requests, "ann@desk.test")
    piece = PieceOfWork(session, "ann", None, (), (), (), None, (), (), ())
    return PlayedWork(piece, WorkVerdict(None, 1, (), 1, False), "played", "", calls)


def call(tool: str = "browser_click", seconds: float = 10, address: str = "https://desk.test/cards/?page=2",
         **arguments: str) -> PlayedCall:
    return PlayedCall(tool, arguments, "", False, "recorded", at(seconds), f"### Page\n- Page URL: {address}\n", ())


def element(event: dict[str, Any], *calls: PlayedCall) -> dict[str, Any] | None:
    own = work(*(calls or (call(),)))
    return UiElements(ui_events([event], "desk.test"), [own.piece.session]).elements(own)[0]


def test_a_click_between_two_requests_is_that_of_the_second() -> None:
    whole = element(row(9.5))
    assert whole == {"act": "click", "at": at(9.5).isoformat(), **BUTTON}
    assert element(row(9.5, person=None)) == whole, "one session alone was open"


@pytest.mark.parametrize("event", [
    row(9.5, person="rut"), row(9.5, url="https://desk.test/cards/?page=3"), row(9.5, url="https://other.test/cards/?page=2"),
    row(9.5, act="type"), row(-1), row(11.5), row(9.5, xpath=None), row(9.5, url=None)])
def test_an_event_that_does_not_agree_says_nothing(event: dict[str, Any]) -> None:
    assert element(event) is None


def test_typing_is_told_by_what_was_typed_which_is_not_kept() -> None:
    typed = call("browser_type", text="atlas", target="e1")
    assert (element(row(9, "type", value="atlas"), typed) or {})["xpath"] == BUTTON["xpath"]
    assert element(row(9, "type", value="atl"), typed) is None
    assert "atlas" not in json.dumps(element(row(9, "type", value="atlas"), typed))
    assert element(row(9, "type", value="****", type="password"), typed) is not None, "a recorder hid what was typed"


def test_a_click_tells_more_than_the_form_that_it_sends() -> None:
    own = work(call())
    events = ui_events([row(9.6, "submit", tag="FORM", xpath="/html[1]/form[1]"), row(9.5)], "desk.test")
    assert [each and each["act"] for each in UiElements(events, []).elements(own)] == ["click"]
    assert [each and each["act"] for each in UiElements(events[1:], []).elements(own)] == ["submit"]


def test_calls_that_act_on_no_page_have_no_element() -> None:
    assert element(row(9.5), call("files_move")) is None and element(row(9.5), call(address="about:blank")) is None


def test_an_event_without_a_person_is_of_nobody_if_two_worked() -> None:
    own = work(call())
    other = PageSession("s2", "desk.test", own.piece.session.requests, "rut")
    assert UiElements(ui_events([row(9.5, person=None)], "desk.test"), [own.piece.session, other]).elements(own) == [None]
