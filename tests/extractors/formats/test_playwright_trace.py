"""Traces of Playwright of several versions: requests with their bodies, actions with their elements, no typed password."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path
from typing import Any

import orjson
import pytest

from extractors.inventory import SourceFile
from extractors.reading import Reading, read
from tests.extractors.formats.accounts import problems_of

TYPED = 'hush "hush" 77'
ZERO = {"type": "context-options", "version": 8, "wallTime": 1772445600000, "monotonicTime": 1000.0}


def call(number: int, method: str, started: float, log: tuple[str, ...] = (), ended: dict[str, Any] | None = None,
         **parameters: Any) -> list[dict[str, Any]]:
    about = {"callId": f"call@{number}"}
    return [{"type": "before", **about, "startTime": started, "method": method, "params": parameters, "pageId": "p1"},
            *({"type": "log", **about, "time": started, "message": each} for each in log),
            {"type": "after", **about, "endTime": started + 50, **(ended or {})}]


def exchange(method: str, url: str, content: dict[str, Any], posted: dict[str, Any] | None = None) -> dict[str, Any]:
    prompt = {"method": method, "url": url, "headers": [], "queryString": [], **({"postData": posted} if posted else {})}
    return {"type": "resource-snapshot", "snapshot": {
        "startedDateTime": "2026-03-02T10:00:00.100Z", "time": 6, "_resourceType": "document", "request": prompt,
        "response": {"status": 200, "headers": [], "content": {"mimeType": "text/html", **content}}}}


def read_all(tmp_path: Path, lines: list[Any], network: list[Any] | None = None,
             names: tuple[str, str] = ("trace.trace", "trace.network"), **files: bytes) -> Reading:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(names[0], b"\n".join(map(orjson.dumps, [ZERO, *lines])))
        archive.writestr(names[1], b"\n".join(map(orjson.dumps, network or [])))
        for name, content in files.items():
            archive.writestr(f"resources/{name}", content)
    path = tmp_path / "trace.zip"
    path.write_bytes(packed.getvalue())
    reading = read(SourceFile(path, path.name))
    assert reading.file.format == "playwright_trace" and not problems_of(reading)
    return reading


def acts(reading: Reading) -> list[tuple[str, dict[str, Any]]]:
    rows = reading.events.filter(kind="business").sort("happened_at").select("tool", "arguments").rows()
    return [(tool, orjson.loads(arguments)) for tool, arguments in rows]


@pytest.mark.parametrize("place", [{"_sha1": "a1"}, {"_file": "resources/a1"}])
def test_bodies_come_from_the_archive_in_old_and_new_versions(place: dict[str, str], tmp_path: Path) -> None:
    posted = {"mimeType": "application/x-www-form-urlencoded", "text": "", **{name: value.replace("a1", "b2")
                                                                               for name, value in place.items()}}
    reading = read_all(tmp_path, call(1, "newPage", 1001.0), [
        exchange("GET", "https://desk.example/a", place), exchange("POST", "https://desk.example/a", {}, posted)],
        a1=b"<html>1</html>", b2=b"city=Lyon")
    pages, requests = reading.events.filter(kind="page"), reading.events.filter(kind="request")
    assert orjson.loads(pages["value"][0])["body"] == "<html>1</html>"
    assert orjson.loads(requests["arguments"][0])["body"] == {"city": "Lyon"}
    assert reading.events["session_id"].n_unique() == 1


def test_an_action_has_its_element_its_value_and_its_instant(tmp_path: Path) -> None:
    reading = read_all(tmp_path, [
        *call(1, "goto", 1100.0, url="https://desk.example/a"),
        *call(2, "fill", 1200.0, ('  locator resolved to <input id="c" name="city" type="text"/>',), selector="#c",
              value="Lyon", timeout=30000),
        *call(3, "selectOption", 1300.0, selector="#s", options=[{"valueOrLabel": "xl"}]),
        *call(4, "click", 1400.0, ended={"error": {"message": "Timeout 30000ms exceeded."}}, selector="text=Refund"),
        *call(5, "evaluateExpression", 1500.0, expression="1 + 1")])
    assert acts(reading) == [
        ("goto", {"url": "https://desk.example/a"}),
        ("fill", {"tag": "INPUT", "id": "c", "name": "city", "type": "text", "selector": "#c", "value": "Lyon"}),
        ("select_option", {"selector": "#s", "options": [{"valueOrLabel": "xl"}]}),
        ("click", {"selector": "text=Refund", "error": "Timeout 30000ms exceeded."})]
    rows = reading.events.filter(kind="business").sort("happened_at")
    assert rows["happened_at"][1].isoformat() == "2026-03-02T10:00:00.200000+00:00" and rows["latency_ms"][1] == 50.0
    assert rows["is_error"].to_list() == [None, None, None, True]
    assert reading.events.filter(kind="log")["tool"].to_list() == ["evaluate_expression"]


@pytest.mark.parametrize(("selector", "log"), [
    ("form >> nth=1", '  locator resolved to <input name="w" type="password"/>'), ("internal:label=\"Password\"i", ""),
    ("#x", '  locator resolved to <input name="user[password]"/>')])
def test_a_typed_password_is_kept_nowhere(selector: str, log: str, tmp_path: Path) -> None:
    form = b'<html><form><input type="password" name="w"></form></html>'
    posted = {"mimeType": "application/json", "text": orjson.dumps({"w": TYPED, "again": {"free": TYPED}}).decode()}
    reading = read_all(tmp_path, [
        *call(1, "fill", 1200.0, (log, f'  fill("{TYPED}")'), selector=selector, value=TYPED,
              ended={"error": {"message": f'fill("{TYPED}") failed'}}),
        *call(2, "keyboardType", 1300.0, text=TYPED), *call(3, "fill", 1400.0, selector="#other", value="Lyon")],
        [exchange("GET", "https://desk.example/a", {"_sha1": "a1"}), exchange("POST", "https://desk.example/a", {}, posted)],
        a1=form)
    text = reading.events.write_json()
    assert "hush" not in text and "Lyon" in text and len(acts(reading)) == 3


def test_parts_with_numbers_of_a_test_runner_s_trace_are_read(tmp_path: Path) -> None:
    reading = read_all(tmp_path, call(1, "goto", 1100.0, url="https://desk.example/a"),
                       [exchange("GET", "https://desk.example/a", {})], ("0-trace.trace", "0-trace.network"))
    assert sorted(reading.events["kind"]) == ["business", "page"]


def test_a_trace_without_a_line_that_is_read_has_a_decision(tmp_path: Path) -> None:
    assert "no_trace" in read_all(tmp_path, []).decisions["reason"].to_list()
