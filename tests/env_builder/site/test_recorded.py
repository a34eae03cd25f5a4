"""Sessions of pages: where a file without ids is cut, whose they are, and at which address the site is."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from env_builder.site.recorded import page_sessions
from tests.env_builder.site.cards import BEGIN, CardSite, Recorder


def recorded() -> Recorder:
    recorder = Recorder(CardSite())
    for who in ("ivo", "rut", "ivo"):
        recorder.sit_down(who)
        recorder.change(101, "comment", text=f"{who} was here")
    return recorder


def without_ids(recorder: Recorder, **more: Any) -> list[dict[str, Any]]:
    return [{**event, "session_id": None, **more} for event in recorder.events]


def test_a_file_without_ids_is_cut_at_pauses() -> None:
    recorder = recorded()
    sessions = page_sessions(without_ids(recorder))
    assert [each.session_id for each in sessions] == ["f", "f~2", "f~3"]
    assert [each.user for each in sessions] == [f"{who}@cards.example" for who in ("ivo", "rut", "ivo")]
    assert [each.requests for each in sessions] == [each.requests for each in page_sessions(recorder.events)]


def test_a_file_without_ids_is_cut_where_another_user_logs_in() -> None:
    recorder = recorded()
    sessions = page_sessions(without_ids(recorder), gap=timedelta(days=1))
    assert [each.login for each in sessions] == [f"{who}@cards.example" for who in ("ivo", "rut", "ivo")]
    assert all(each.requests[0].path == "/login/" and each.requests[0].method == "GET" for each in sessions)


def test_stated_ids_are_never_cut_and_stated_users_are_never_mixed() -> None:
    recorder = recorded()
    (whole,) = page_sessions([{**event, "session_id": "one"} for event in recorder.events])
    assert len(whole.requests) == len(recorder.events)
    events = [{**event, "name": "ann" if number % 2 else "bea"} for number, event in enumerate(without_ids(recorder))]
    sessions = page_sessions(events, gap=timedelta(days=1))
    assert {each.user for each in sessions} == {"ann", "bea"}
    assert sum(len(each.requests) for each in sessions) == len(events)


def test_the_address_of_a_site_has_the_scheme_and_the_port_of_its_requests() -> None:
    recorder = recorded()
    assert {each.origin for each in page_sessions(recorder.events)} == {"https://cards.example"}
    events = without_ids(recorder, content="http://cards.example:8080/cards/")
    assert {each.origin for each in page_sessions(events)} == {"http://cards.example:8080"}


def test_who_logs_in_at_another_host_is_known_and_the_way_there_and_back_is_left_out() -> None:
    def event(second: int, host: str, request: str, location: str | None = None, **body: str) -> dict[str, Any]:
        value: dict[str, Any] = {"status": 302, "location": location} if location else {
            "status": 200, "type": "text/html", "body": "<h1>x</h1>"}
        method, _, path = request.partition(" ")
        return {"session_id": None, "file_id": "f", "service": host, "happened_at": BEGIN + timedelta(seconds=second),
                "name": None, "kind": "request" if method == "POST" else "page", "tool": request, "value": json.dumps(value),
                "content": f"https://{host}{path}", "arguments": json.dumps({"query": {}, **({"body": body} if body else {})})}

    back = "https://cards.example/back"
    events = [event(0, "cards.example", "GET /cards/", "https://door.example/login"), event(1, "door.example", "GET /login"),
              event(2, "door.example", "POST /login", back, who="ivo", password="[secret]"),
              event(3, "cards.example", "GET /back", "/cards/"), event(4, "cards.example", "GET /cards/")]
    cards, door = page_sessions(sorted(events, key=lambda each: str(each["service"])))
    assert (cards.host, cards.user, [each.url for each in cards.requests]) == ("cards.example", "ivo", ["/cards/"])
    assert (door.host, door.user, [each.method for each in door.requests]) == ("door.example", "ivo", ["GET", "POST"])
