"""HTTP archives: bodies of every kind, parts of pages beside requests, requests without an answer, sockets."""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from extractors.inventory import SourceFile
from extractors.reading import Reading, read


def entry(method: str = "GET", url: str = "https://shop.example/api/a", prompt: Any = None, answered: Any = None,
          **fields: Any) -> dict[str, Any]:
    return {"startedDateTime": "2026-03-02T11:15:00.000+01:00", "time": 12.5,
            "request": {"method": method, "url": url, "headers": [], **(prompt or {})},
            "response": {"status": 200, "headers": [], "content": {}, **(answered or {})}, **fields}


def read_all(tmp_path: Path, *entries: dict[str, Any]) -> Reading:
    path = tmp_path / "visit.har"
    path.write_bytes(orjson.dumps({"log": {"version": "1.2", "entries": list(entries)}}))
    reading = read(SourceFile(path, path.name))
    assert reading.file.format == "har"
    return reading


def column(reading: Reading, name: str, kind: str = "request") -> list[Any]:
    """Return a column of JSON, as values."""
    return [orjson.loads(text) for text in reading.events.filter(kind=kind)[name]]


def test_bodies_are_the_values_that_they_spell(tmp_path: Path) -> None:
    spelled = base64.b64encode('{"café":1}'.encode()).decode()
    reading = read_all(
        tmp_path,
        entry("POST", prompt={"postData": {"mimeType": "application/json", "text": '{"n": 1}'}},
              answered={"content": {"mimeType": "application/json", "text": spelled, "encoding": "base64"}}),
        entry("POST", prompt={"postData": {"mimeType": "application/x-www-form-urlencoded", "text": "a=1&b=&a=2"}},
              answered={"content": {"mimeType": "image/png", "text": "iVBORw0KGgo=", "encoding": "base64"}}),
        entry("POST", prompt={"postData": {"mimeType": "multipart/form-data", "params": [
            {"name": "file", "fileName": "x.pdf"}, {"name": "note", "value": "hi"}]}},
              answered={"content": {"mimeType": "text/event-stream", "text": "data: {}\n\n"}}),
        entry("PUT", prompt={"postData": {"mimeType": "application/json", "text": "{torn"}}, answered={"content": {"size": 9}}))
    assert [each.get("body") for each in column(reading, "arguments")] == [
        {"n": 1}, {"a": ["1", "2"], "b": ""}, {"file": "x.pdf", "note": "hi"}, "{torn"]
    assert [each.get("body") for each in column(reading, "value")] == [{"café": 1}, "iVBORw0KGgo=", "data: {}\n\n", None]
    assert reading.events["lossy"].to_list() == [None, None, None, '["response body not captured"]']


def test_query_host_headers_and_time(tmp_path: Path) -> None:
    headers = [{"name": "X-Session-Id", "value": "s1"}, {"name": "X-Tool-Call-Id", "value": "c1"},
               {"name": "X-User-Id", "value": "ann"}]
    reading = read_all(tmp_path, entry(url="https://shop.example/api/a%20b?x=1&x=2#top", prompt={"headers": headers},
                                       answered={"headers": [{"name": "x-request-id", "value": "r1"}]}))
    [event] = reading.events.to_dicts()
    assert event["tool"] == "GET /api/a%20b" and orjson.loads(event["arguments"]) == {"query": {"x": ["1", "2"]}}
    assert (event["session_id"], event["requestor"], event["call_id"]) == ("s1", "c1", "r1")
    assert (event["name"], event["service"], event["latency_ms"]) == ("ann", "shop.example", 12.5)
    assert event["happened_at"].isoformat() == "2026-03-02T10:15:00+00:00"


def test_parts_of_pages_are_log_lines_and_nothing_vanishes(tmp_path: Path) -> None:
    picture = {"content": {"mimeType": "image/png"}}
    reading = read_all(
        tmp_path, entry(url="https://shop.example/", _resourceType="document"), entry("OPTIONS", _resourceType="preflight"),
        entry(url="https://shop.example/a.png", answered=picture), entry("POST", _resourceType="document"),
        entry(_resourceType="xhr", answered=picture),
        entry(_resourceType="fetch", answered={"status": 0, "_error": "net::ERR"}),
        entry(_resourceType="websocket", _webSocketMessages=[{"type": "send", "time": 1772446500.5, "data": "hello"}]),
        {"request": None}, entry(time=-1))
    assert reading.events["kind"].to_list() == ["page", "log", "log"] + ["request"] * 4 + ["log", "request"]
    assert reading.events["content"].drop_nulls().to_list()[-1] == "hello"
    assert [each["status"] for each in column(reading, "value")] == [200, 200, None, 200, 200]
    assert 'no answer net::ERR' in (reading.events["lossy"].to_list()[5] or "")
    assert reading.events["latency_ms"].to_list()[-1] is None
    assert reading.decisions.filter(~pl.col("kept"))["reason"].to_list() == ["malformed_record"]


def test_browsers_tell_pages_apart_from_calls_alike(tmp_path: Path) -> None:
    """One visit as Chrome exports it (with `_resourceType`) and as Firefox does (with the headers of the request)."""
    page = {"content": {"mimeType": "text/html; charset=utf-8", "text": "<p>17</p>"}}
    visit = [("document", "document", "GET", page), ("stylesheet", "style", "GET", {}), ("document", "iframe", "GET", page),
             ("document", "document", "POST", page), ("fetch", "empty", "GET", page), ("xhr", "empty", "POST", {})]
    accepted = {"document": "text/html,application/xhtml+xml", "iframe": "text/html,*/*"}

    def headers(kind: str, is_old: bool) -> dict[str, Any]:
        stated = [] if is_old else [{"name": "Sec-Fetch-Dest", "value": kind}]
        return {"headers": [{"name": "Accept", "value": accepted.get(kind, "*/*")}, *stated]}

    chrome = read_all(tmp_path, *(entry(method, answered=answered, _resourceType=kind) for kind, _, method, answered in visit))
    firefox = read_all(tmp_path, *(
        entry(method, answered=answered, prompt=headers(kind, False)) for _, kind, method, answered in visit))
    assert chrome.events["kind"].to_list() == firefox.events["kind"].to_list() == [
        "page", "log", "page", "request", "request", "request"]
    older = read_all(tmp_path, entry(prompt=headers("document", True), answered=page), entry(
        prompt=headers("empty", True), answered=page))
    assert older.events["kind"].to_list() == ["page", "request"]
    for reading in (chrome, firefox):
        assert column(reading, "value", "page") == [{"status": 200, "type": "text/html", "body": "<p>17</p>"}] * 2


def test_pages_say_where_they_lead_and_which_file_they_are(tmp_path: Path) -> None:
    moved = {"status": 302, "redirectURL": "", "headers": [{"name": "Location", "value": "/login?next=/"}],
             "content": {"size": 0, "mimeType": "text/html; charset=utf-8", "text": ""}}
    names = ['attachment; filename="may 1.pdf"', "attachment; filename*=UTF-8''may%201.pdf", "attachment; filename=may.pdf"]
    content = {"mimeType": "application/pdf", "size": 9}
    files = [{"headers": [{"name": "Content-Disposition", "value": name}], "content": content} for name in names]
    reading = read_all(tmp_path, entry(_resourceType="document", answered=moved),
                       *(entry(_resourceType="other", answered=each) for each in files),
                       entry("POST", _resourceType="document", answered={**moved, "status": 303}))
    assert reading.events["kind"].to_list() == ["page"] * 4 + ["request"]
    leads = {"location": "/login?next=/", "type": "text/html"}
    assert column(reading, "value", "page") == [{"status": 302, **leads}, *(
        {"status": 200, "type": "application/pdf", "file": name, "size": 9} for name in ("may 1.pdf", "may 1.pdf", "may.pdf"))]
    assert column(reading, "value") == [{"status": 303, **leads}]
    assert reading.events["lossy"].to_list() == [None, *['["response body not captured"]'] * 3, None]


def test_passwords_and_tokens_of_pages_and_forms_are_not_kept(tmp_path: Path) -> None:
    page = """<meta name="csrf-token" content="T0PSECRET1"><meta content="T0PSECRET2" name="csrf-token"/>
        <form><input type="hidden" name='csrfmiddlewaretoken' value='T0PSECRET3'>
        <input value=T0PSECRET4 name=authenticity_token><input type="password" id="id_pw" value="T0PSECRET5">
        <INPUT TYPE=password VALUE='T0PSECRET6'>
        <textarea name="session_token">T0PSECRET7</textarea><input name="title" value="kept &amp; shown">
        <a href="/reset?token=T0PSECRET8&amp;page=2">x</a></form>
        <script>var csrfToken = "T0PSECRET9"; App.boot({"xsrf_token": 'T0PSECRET10', "name": "kept"});</script>"""
    html = {"content": {"mimeType": "text/html", "text": page}}
    form = {"postData": {"mimeType": "application/x-www-form-urlencoded", "params": [
        {"name": "username", "value": "ann"}, {"name": "password", "value": "T0PSECRET11"},
        {"name": "csrfmiddlewaretoken", "value": "T0PSECRET12"}]}}
    signed = "https://shop.example/login?access_token=T0PSECRET13&x=1"
    reading = read_all(tmp_path, *(entry(_resourceType="document", answered=html, **each) for each in (
        {}, {"method": "POST", "prompt": form}, {"url": signed})))
    written = reading.events.write_ndjson()
    assert re.findall(r"T0PSECRET\d+", written) == []
    assert written.count("kept &amp; shown") == 3 and "username" in written and "page=2" in written


def test_a_form_in_parts_is_its_fields_without_its_credentials(tmp_path: Path) -> None:
    text = "".join(f'--x1\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in (
        ("csrfmiddlewaretoken", "abcdefghijkl"), ("note", "two\r\nlines"), ("tag", "a"), ("tag", "b")))
    file = ('--x1\r\nContent-Disposition: form-data; name="cv"; filename="cv.pdf"\r\nContent-Type: application/pdf\r\n\r\n'
            "%PDF\r\n--x1--\r\n")
    reading = read_all(tmp_path, entry("POST", prompt={"postData": {
        "mimeType": "multipart/form-data; boundary=x1", "text": text + file}}))
    assert column(reading, "arguments")[0]["body"] == {
        "csrfmiddlewaretoken": "[secret]", "note": "two\nlines", "tag": ["a", "b"], "cv": {"file": "cv.pdf"}}


def test_what_a_form_sent_for_a_page_s_password_field_is_cut_whatever_its_name(tmp_path: Path) -> None:
    page = {"mimeType": "text/html", "text": "<form><input name='who'><input type=password name=w2></form>"}
    posted = {"mimeType": "application/x-www-form-urlencoded", "text": "who=ada&w2=hush"}
    reading = read_all(
        tmp_path, entry("POST", prompt={"postData": posted}), entry(answered={"content": page}, _resourceType="document"))
    assert column(reading, "arguments")[0]["body"] == {"who": "ada", "w2": "[secret]"}


def test_the_user_of_basic_authentication_is_who_asks_and_no_password_stays(tmp_path: Path) -> None:
    first, second, broken = entry(), entry(), entry()
    second["request"]["headers"].append({"name": "Authorization", "value": "Basic YWRhOmtleS1vZi1hZGE="})
    broken["request"]["headers"].append({"name": "Authorization", "value": "Basic 12"})
    reading = read_all(tmp_path, first, second, broken)
    assert reading.events["name"].to_list() == [None, "ada", None]
    assert not any("key-of-ada" in str(row) or "YWRhOm" in str(row) for row in reading.events.to_dicts())


@pytest.mark.parametrize(("mime", "charset", "meta"), [
    ("text/html; charset=iso-8859-1", "latin-1", ""), ("text/html", "cp1252", '<meta charset="windows-1252">'),
    ("text/html", "utf-8", ""), ("text/html; charset=shift_jis", "shift_jis", "")])
def test_a_page_in_an_older_encoding_is_read(tmp_path: Path, mime: str, charset: str, meta: str) -> None:
    page = f"{meta}<p>{'書' if charset == 'shift_jis' else 'Müller'}</p>"
    row = entry(url="https://shop.example/a")
    row["_resourceType"] = "document"
    content = base64.b64encode(page.encode(charset)).decode()
    row["response"]["content"] = {"mimeType": mime, "encoding": "base64", "text": content}
    assert column(read_all(tmp_path, row), "value", "page")[0]["body"] == page
