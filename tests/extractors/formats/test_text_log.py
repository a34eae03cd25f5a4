"""Text logs: how lines begin, what joins, what is no log, and syslog's two headers."""

from __future__ import annotations

import gzip
from pathlib import Path

import orjson
import pytest

from extractors.content import head_of
from extractors.formats import registered
from extractors.formats.format import Head
from extractors.formats.instants import Yearless, microseconds
from extractors.formats.line_shapes import shape_of, syslog_of
from tests.extractors.formats.application_reading import canonical, lines, read_payloads, requests

ROOT = Path(__file__).parents[3]
AT = "2026-03-02T10:15:02Z"


def claimed(text: list[str]) -> list[str]:
    return [each.name for each in registered() if each.claims(Head("text", [], None, text[:20]))]


@pytest.mark.parametrize(("line", "time", "level", "rest"), [
    ("2026-03-02 10:15:02,250 ERROR worker x", "2026-03-02 10:15:02,250", "ERROR", "worker x"),
    ("[2026-03-02T10:15:02Z] info: up", "2026-03-02T10:15:02Z", "INFO", "up"),
    ("2026/03/02 10:15:02 [error] 7#7: *1 open() failed", "2026/03/02 10:15:02", "ERROR", "7#7: *1 open() failed"),
    ("1772446502.123 up", "1772446502.123", None, "up"),
    ("E0302 10:15:02.123456   17 main.go:1] bad", None, "ERROR", "17 main.go:1] bad"),
    ("10:15:02.123 [main] INFO up", None, None, "[main] INFO up"),
    ("[WARN] late", None, "WARN", "late"),
    ("2026-03-02T10:15:02.1Z stdout F hello", "2026-03-02T10:15:02.1Z", None, "hello"),
])
def test_how_a_line_begins(line: str, time: str | None, level: str | None, rest: str) -> None:
    shape = shape_of(line)
    assert shape is not None and (shape.time, shape.level, shape.rest) == (time, level, rest)
    assert time is None or microseconds(time) is not None


@pytest.mark.parametrize("line", [
    "", "  indented 2026-03-02 10:15:02", "Traceback (most recent call last):", "On 2026-03-02 it fell.", "Information is",
    "def f(x): return x", "- [ ] item", "2026-03-02 Fixed the door"])
def test_what_begins_no_record(line: str) -> None:
    assert shape_of(line) is None


def test_lines_of_many_notations_in_one_file(data: Path) -> None:
    mixed = lines(data / "format_samples/10_edge/log_lines_mixed.log")
    assert claimed(mixed) == ["text_log"]
    emit = read_payloads("text_log", mixed)
    assert [event["kind"] for event in emit.events] == ["log", "log", "log", "log", "request", "log", "log"]
    assert emit.events[2]["content"].count("\n") == 3 and emit.events[2]["content"].endswith("ValueError: boom")
    assert [(record.line, reason) for record, reason, _ in emit.rejects] == [(line, "joined_line") for line in (4, 5, 6)]
    assert emit.events[1]["happened_at"] == microseconds("2026-03-02T09:15:00.5Z")
    assert emit.events[4]["tool"] == 'GET /a"b' and emit.events[5]["content"] == mixed[8]
    assert (emit.events[6]["service"], emit.events[6]["tool"]) == ("app", "no structured data")


def test_an_export_that_puts_a_time_before_each_line(data: Path) -> None:
    packed = (data / "format_samples/08_app/cloudwatch_s3_export/000000.gz").read_bytes()
    exported = gzip.decompress(packed).decode().splitlines()
    assert claimed(exported) == ["text_log"]
    assert requests(read_payloads("text_log", exported)) == canonical(data)


@pytest.mark.parametrize("line", [
    f"{AT} GET /a?b=1 200 12 ms", f'{AT} "GET /a?b=1 HTTP/1.1" 200 12ms', f"{AT} INFO http: GET /a?b=1 -> 200 in 12ms",
    f'ts={AT} level=info method=GET path="/a?b=1" status=200 duration=12ms',
    f"at=info ts={AT} method=GET path=/a?b=1 status=200 duration_ms=12"])
def test_a_request_told_in_a_sentence_or_in_pairs(line: str) -> None:
    [request_row] = requests(read_payloads("text_log", [line]))
    assert (request_row["method"], request_row["path"], request_row["status"], request_row["duration_ms"]) == (
        "GET",
        "/a?b=1",
        200,
        12,
    )
    assert request_row["at"] == microseconds("2026-03-02T10:15:01.988Z")


@pytest.mark.parametrize("text", [
    ["The door opened at 10:15.", "Nobody came in.", "ERROR is human."],
    ["# Changes", "2026-03-02 Fixed the door", "2026-03-01 Broke it"],
    ["import os", "", "def f() -> None:", "    return 1"],
    ["a,b", "1,2"], ["1", "00:00:01,000 --> 00:00:02,000", "Hello"], ["data: {}", "data: [DONE]"], []])
def test_prose_and_code_are_no_logs(text: list[str]) -> None:
    assert claimed(text) == []


def test_our_own_source_and_words_are_no_logs() -> None:
    files = [*ROOT.glob("extractors/**/*.py"), *ROOT.glob("docs/*.md"), *ROOT.glob("*.md"), ROOT / "pyproject.toml"]
    assert len(files) > 50
    for path in files:
        if path.read_bytes().strip():
            head = head_of(path.read_bytes())
            assert [each.name for each in registered() if each.claims(head)] == [], path
            assert claimed(path.read_text("utf-8").splitlines()) == [], path


def test_headers_of_syslog() -> None:
    syslog_line = syslog_of('83 <165>1 2026-03-02T10:15:05Z host app 7 id [a@1 b="x\\"y\\]"][c] \ufeffhello')
    assert (
        syslog_line is not None and syslog_line.parameters == {"a": {"b": 'x"y]'}, "c": {}} and syslog_line.message == "hello"
    )
    assert (syslog_line.severity, syslog_line.host, syslog_line.application, syslog_line.message_id) == (5, "host", "app", "id")
    bare = syslog_of("Mar  2 10:15:02 host sshd[71]: Accepted password")
    assert bare is not None and (bare.priority, bare.application, bare.message) == (None, "sshd", "Accepted password")
    assert syslog_of("<192>1 - - - - - -") is None and syslog_of("Marc 2: no") is None
    emit = read_payloads(
        "syslog", ["<165>1 - - - - - - nothing else", '<14>Mar  2 10:15:02 h app: {"level":"info","msg":"up","n":1}']
    )
    assert [event["content"] for event in emit.events] == ["nothing else", "up"]
    assert orjson.loads(emit.events[1]["arguments"]) == {"level": "info", "n": 1}
    assert emit.events[0]["happened_at"] is None and "year not stated" in emit.events[1]["lossy"]


def test_the_year_turns_where_the_months_start_again() -> None:
    clock = Yearless(2025)
    written = ("Dec 31 23:59:59", "Jan  1 00:00:00", "Dec 31 23:59:58", "Jan  1 00:00:01")
    told_at = [clock.microseconds(text) for text in written]
    assert told_at == [microseconds(text) for text in (
        "2025-12-31T23:59:59Z", "2026-01-01T00:00:00Z", "2025-12-31T23:59:58Z", "2026-01-01T00:00:01Z")]
    assert clock.microseconds("Feb 30 00:00:00") is None and Yearless().microseconds("Feb 29 00:00:00") is not None
