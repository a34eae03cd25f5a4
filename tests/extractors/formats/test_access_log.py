"""Lines of access logs: fields, escapes, garbage."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors.formats import named
from extractors.formats.format import Head
from extractors.formats.line_shapes import fields_of, unescaped
from tests.extractors.formats.application_reading import lines, read_payloads

HEAD = "10.0.0.9 - ann [02/Mar/2026:11:15:03 +0100] "
AT = 1_772_446_503_000_000


def test_a_line_of_the_combined_format() -> None:
    fields = fields_of(HEAD + '"GET /a?b=1 HTTP/1.1" 200 5 "http://x/" "agent (like y)" rt=0.5')
    assert fields == ("10.0.0.9", "ann", AT, "GET", "/a", "b=1", 200, 5, "http://x/", "agent (like y)", " rt=0.5")


@pytest.mark.parametrize(("rest", "method", "path", "referer", "agent"), [
    ('"GET /a\\x22b HTTP/1.1" 200 - "-" "-"', "GET", '/a"b', None, None),
    ('"GET /a"b HTTP/1.1" 200 - "-" "x "quoted" y"', "GET", '/a"b', None, 'x "quoted" y'),
    ('"\\x16\\x03\\x01" 400 150 "-" "-"', None, None, None, None),
    ('"" 408 0 "-" "-"', None, None, None, None),
    ('"-" 408 -', None, None, None, None),
    ('"GET /\\xc3\\xbc HTTP/2.0" 200 1 "-" "a\\\\b"', "GET", "/ü", None, "a\\b"),
    ('"GET /old" 200 7', "GET", "/old", None, None),
])
def test_escapes_quotes_and_what_is_no_request(rest: str, method: str | None, path: str | None, referer: str | None,
                                               agent: str | None) -> None:
    fields = fields_of(HEAD + rest)
    assert fields is not None and fields.logged_at == AT and fields.user == "ann"
    assert (fields.method, fields.path, fields.referer, fields.agent) == (method, path, referer, agent)


@pytest.mark.parametrize("line", [
    "", '"', "a b c [d] \"GET / HTTP/1.1\" x 5", HEAD, HEAD + '"GET / HTTP/1.1"', "[] \"\" 200 5"])
def test_what_is_no_line_of_an_access_log(line: str) -> None:
    assert fields_of(line) is None


def test_a_user_of_two_words_and_an_unknown_time() -> None:
    fields = fields_of('h - ann lee [02/Mar/2026:11:15:03 +0100] "GET / HTTP/1.1" 200 5')
    assert fields is not None and fields.user == "ann lee" and fields.logged_at == AT
    fields = fields_of('h - - [31/Feb/2026:11:15:03 +0100] "GET / HTTP/1.1" 200 5')
    assert fields is not None and fields.logged_at is None and fields.user is None


@given(st.text(max_size=40), st.text(max_size=20))
def test_no_text_breaks_a_line(request: str, agent: str) -> None:
    fields = fields_of(f'{HEAD}"{request}" 200 5 "-" "{agent}"')
    assert fields is None or (fields.host == "10.0.0.9" and (fields.method is None) == (fields.path is None))


@given(st.text().map(lambda text: text.replace("\\", "")))
def test_undoing_escapes_gives_the_text_back(text: str) -> None:
    kept = text.encode("utf-8", "replace")
    assert unescaped("".join(f"\\x{byte:02x}" for byte in kept)) == kept.decode()
    assert unescaped(text) == text


def test_columns_behind_the_fields() -> None:
    line = HEAD + '"GET /a HTTP/1.1" 200 5 "-" "-"'
    emit = read_payloads("access_log", [line + " rt=0.250 rid=r1", line + " 17"])
    first, second = emit.events
    assert (first["happened_at"], first["latency_ms"], first["call_id"]) == (AT - 250_000, 250, "r1")
    assert "columns behind the Combined format: 17" in second["lossy"] and second["happened_at"] == AT


def test_a_real_log_reads_whole(data: Path) -> None:
    logged = lines(data / "access_log/logs/apache_combined.log")
    assert named("access_log").claims(Head("text", [], None, logged[:20]))
    emit = read_payloads("access_log", logged)
    assert len(emit.events) == len(logged) == 10_000 and emit.rejects == []
    assert {event["kind"] for event in emit.events} == {"request"}
    assert {event["tool"].split()[0] for event in emit.events} == {"GET", "POST", "HEAD", "OPTIONS"}
    assert all(event["happened_at"] and event["name"] for event in emit.events)
    statuses = {orjson.loads(event["value"])["status"] for event in emit.events}
    assert {200, 301, 304, 404} <= statuses and all(isinstance(status, int) for status in statuses)
