"""The ruler of browser environments: what counts as the same answer, and what replay and logs can give."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))

import browser_room  # noqa: E402
from browser_pages import MASK, SiteAnswer, mask_text, site_answer  # noqa: E402
from browser_replay import Cassette, HarReplay, SiteRequest  # noqa: E402
from browser_site import recorded_answer  # noqa: E402
from browser_steps import Offer, count_places, is_offered, taken  # noqa: E402

from env_builder.runtime.site.trees import Element, squeeze  # noqa: E402
from env_builder.site.parsing import parse  # noqa: E402

MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)
PAGE = ('<html><body class="shop"><h1>Shelf 17</h1><form><input type="hidden" name="form_token" value="{token}">'
        '<input name="note" value="{note}"></form><p>Seen at {time}</p></body></html>')


def answer(*, token: str = "abc", note: str = "", time: str = "9:30 a.m.", **value: Any) -> SiteAnswer:
    return site_answer({"status": 200, "type": "text/html", "body": PAGE.format(token=token, note=note, time=time), **value})


@pytest.mark.parametrize("other", [
    answer(token="xyz"), answer(time="11:05"), answer(time="4 p.m."), answer(body="<!-- x -->" + PAGE.format(
        token="abc", note="", time="9:30 a.m.").replace("<p>", "\n  <p>"))],
    ids=["anti-forgery field", "time of day", "hour alone", "comments and blank texts"])
def test_answers_that_differ_in_volatile_parts_alone_are_the_same(other: SiteAnswer) -> None:
    assert answer() == other


@pytest.mark.parametrize("other", [
    answer(note="x"), answer(status=404), answer(body=PAGE.replace("17", "18")), answer(body=PAGE.replace("shop", "store")),
    answer(body=PAGE.replace("<h1>", "<h1></h1><h1>")), site_answer({"status": 302, "location": "/", "type": "text/html"}),
    site_answer({"status": 200, "type": "text/html"})],
    ids=["value of a field", "status", "text", "attribute", "element", "redirect", "no page"])
def test_any_other_difference_makes_another_answer(other: SiteAnswer) -> None:
    assert answer() != other


def test_redirects_are_the_same_where_they_lead_to_the_same_place() -> None:
    redirect = {"status": 302, "location": "/orders/17/", "type": "text/html"}
    assert site_answer(redirect) == site_answer({**redirect, "body": ""})
    assert site_answer(redirect) != site_answer({**redirect, "location": "/orders/18/"})
    assert site_answer(redirect) != site_answer({**redirect, "status": 301})


def test_a_download_is_no_empty_page_and_not_another_file() -> None:
    download = {"status": 200, "type": "application/pdf", "file": "17.pdf", "size": 900}
    assert site_answer(download) == site_answer(dict(download))
    assert all(site_answer(download) != site_answer({**download, name: value}) for name, value in
               (("file", "18.pdf"), ("size", 901), ("type", "text/csv")))
    assert site_answer(download) != site_answer({"status": 200, "type": "text/html"})


@pytest.mark.parametrize(("text", "masked"), [
    ("key=0a1b2c3d4e5f6a7b8c9d0e", f"key={MASK}"), ("the-red-book-of-long-names_209", "the-red-book-of-long-names_209"),
    ("2 March 2026, 10:15", f"2 March 2026, {MASK}"), ("100000000000000000000001", "100000000000000000000001"),
    ("12:30:59.123 and noon", f"{MASK} and {MASK}")])
def test_tokens_and_times_of_day_are_masked_and_names_and_numbers_are_not(text: str, masked: str) -> None:
    assert mask_text(text) == masked


def request(session: str, minute: int, *, user: str = "ann", url: str = "/a", posted: str = "", note: str = "",
            headers: frozenset[tuple[str, str]] = frozenset()) -> SiteRequest:
    at, method, form = MONDAY + timedelta(minutes=minute), "POST" if posted else "GET", {"note": posted} if posted else None
    return SiteRequest(session, user, at, method, url, posted, form, headers, answer(note=note), recorded_answer(
        session, user, at, method, url, form, {"status": 200, "type": "text/html", "body": PAGE.format(
            token="", note=note, time="9:30")}))


def test_playwright_replays_the_request_with_most_equal_headers_whenever_it_was() -> None:
    language = ("accept-language", "de")
    first, second = request("s1", 0), request("s2", 30, headers=frozenset({language}))
    replay = HarReplay([second, first])
    assert replay.answer(request("s3", 10)) == first
    assert replay.answer(request("s3", 10, headers=frozenset({language}))) == second
    assert replay.answer(request("s3", 10, url="/a?x=1")) is None
    assert replay.answer(request("s3", 10, posted="other")) is None


def test_a_cassette_answers_with_the_last_before_the_instant_and_the_own_session_first() -> None:
    mine, hers, later = request("s1", 0), request("s2", 5, user="bea"), request("s4", 20)
    by_time = Cassette([mine, hers, later], same_user_first=False)
    by_user = Cassette([mine, hers, later], same_user_first=True)
    held_out = request("s3", 10)
    assert by_time.answer(held_out) == hers
    assert by_user.answer(held_out) == mine
    assert by_user.answer(held_out, [request("s3", 9, note="own")]) == request("s3", 9, note="own")
    assert by_time.answer(request("s3", -1)) is None


def test_the_ceiling_counts_pages_whose_words_were_recorded_by_then_or_ever() -> None:
    training = [[request("s1", 0, note="hammer")], [request("s2", 60, note="chisel")]]
    held_out = [[request("s3", 10, note="hammer"), request("s3", 11, note="chisel"), request("s3", 12, note="anvil"),
                 request("s3", 13, note="anvil"), request("s3", 14, url="/lathe", note="lathe")]]
    figures = browser_room.ceiling(training, held_out)
    assert (figures["pages_before"], figures["pages_ever"]) == (0.6, 0.8)


def page(text: str) -> Element:
    return squeeze(parse(text))


LIST = '<h1>{title}</h1><ul{mark}><li{row}><a href="/1">one</a><li{row}>two {last}</ul><p>end</p>'


@pytest.mark.parametrize(("answered", "places", "values"), [
    (LIST.format(title="Shelf", mark="", row="", last=""), (3, 3, 0), (5, 5, 0)),
    (LIST.format(title="Other", mark="", row="", last=""), (3, 2, 1), (5, 4, 1)),
    (LIST.format(title="[unknown]", mark="", row="", last="").replace("<h1>", '<h1 data-unknown="text">'),
     (3, 2, 0), (5, 4, 0)),
    (LIST.format(title="Shelf", mark="", row="", last="<li>three"), (3, 2, 1), (6, 5, 1)),
    (LIST.format(title="Shelf", mark=' data-unknown="rows"', row=' data-unknown="row"', last="x<li>[unknown]"), (3, 2, 0),
     (5, 4, 0)),
    ("", (3, 0, 3), (5, 0, 5))],
    ids=["right", "a wrong text", "an unknown text", "a surplus row", "unknown rows", "no page"])
def test_places_are_right_or_wrong_or_marked(answered: str, places: tuple[int, ...], values: tuple[int, ...]) -> None:
    recorded = page(LIST.format(title="Shelf", mark="", row="", last=""))
    answer_page = page(answered) if answered else None
    assert count_places(recorded, answer_page, in_rows=False) == places
    assert count_places(recorded, answer_page, in_rows=True) == values


def test_a_step_is_offered_by_the_same_link_or_form_and_made_numbers_may_differ() -> None:
    form = '<a href="/box/{number}/">box</a><form method=post action="/save/"><input name=note><input name=key></form>'
    recorded = SiteAnswer(200, page=page(form.format(number=117)))
    shown = replace(request("s1", 0, url="https://site.test/boxes/"), answer=recorded)
    link = taken(shown, request("s1", 1, url="https://site.test/box/117/"))
    post = taken(shown, request("s1", 1, url="https://site.test/save/", posted="x"))
    assert (link, post) == (Offer("GET", "/box/117/"), Offer("POST", "/save/", frozenset({"note", "key"})))
    assert taken(shown, request("s1", 1, url="https://site.test/elsewhere/")) is None
    other = page(form.format(number=230))
    assert link is not None
    assert post is not None
    assert is_offered(post, other, shown.url, set())
    assert not is_offered(link, other, shown.url, set())
    assert is_offered(link, other, shown.url, {"117"})
    assert not is_offered(post, page("<form method=post action=/save/><input name=note></form>"), shown.url, set())


def har(minute: int, paths_and_notes: dict[str, str]) -> str:
    entries = [{
        "startedDateTime": (MONDAY + timedelta(minutes=minute, seconds=index)).isoformat(), "time": 5,
        "_resourceType": "document",
        "request": {"method": "GET", "url": f"https://site.test{path}", "headers": [], "queryString": []},
        "response": {"status": 503 if note == "broken" else 200, "headers": [], "content": {
            "mimeType": "text/html; charset=utf-8", "text": PAGE.format(token=f"t{minute}", note=note, time="9:30")}},
    } for index, (path, note) in enumerate(paths_and_notes.items())]
    return json.dumps({"log": {"version": "1.2", "entries": entries}})


def test_the_benchmark_measures_held_out_sessions_against_the_others(
        tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "logs" / "har").mkdir(parents=True)
    (tmp_path / "truth").mkdir()
    sessions = {"1-ann": {"/shelves/17": "saw", "/shelves/18": "axe"}, "2-bea": {"/shelves/17": "nail"},
                "3-ann": {"/shelves/17": "saw", "/shelves/18": "new", "/shelves/19": "broken", "/doors/1": "saw"}}
    for minute, (name, requests) in enumerate(sessions.items()):
        (tmp_path / "logs" / "har" / f"{name}.har").write_text(har(minute, requests), "utf-8")
    rows = [json.dumps({"har": f"{name}.har", "held_out": name.startswith("3")}) for name in sessions]
    (tmp_path / "truth" / "sessions.jsonl").write_text("\n".join(rows), "utf-8")
    browser_room.main([str(tmp_path), "--part", "pages"])
    figures = json.loads(capsys.readouterr().out.splitlines()[-1])["figures"]
    assert figures["held_out_requests"] == 3, "the broken one does not count"
    scored = {"har_replay": 0.333, "cassette_last": 0.0, "cassette_user": 0.333, "empty_page": 0.0, "oracle": 1.0}
    assert {name: figures[f"{name}_requests_right"] for name in scored} == scored
    assert (figures["har_replay_answered"], figures["ceiling_pages_ever"]) == (0.667, 0.667)
    assert (figures["templates_pages_of_a_route"], figures["templates_pages_fit"]) == (0.667, 0.667)
    assert figures["templates_places_per_page"] == 1
    induced = figures["induced_answered"], figures["induced_requests_right"]
    assert induced == (0.667, 0.0), "a look at a shelf is relied on as soon as sessions bear it out, not before"
