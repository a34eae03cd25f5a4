"""Payloads of applications, bare and in envelopes: the same requests from every notation, log lines, and nothing lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors.formats import named
from extractors.formats.format import Head
from tests.extractors.formats.application_reading import canonical, lines, objects, read_payloads, requests, without

NAMES = ["access_log", "cloudwatch", "event_table", "gcp_logging", "json_log", "request_log", "syslog", "text_log"]
APP = "format_samples/08_app"
KEYS = ["method", "path", "url", "status", "req", "res", "headers", "message", "msg", "level", "time", "timestamp", "body",
        "id", "session_id", "log", "stream", "duration", "query", "http", "request", "response", "trace", "user",
        "event", "events",
        "logEvents", "awslogs", "data", "httpRequest", "jsonPayload", "labels", "request_id", "results", "field",
        "split", "uid", "totalSplits", "resource", "cookie", "textPayload", "Records"]
TEXTS = ["GET", "/a?b=1", "200", "2026-03-02T10:15:02Z", "12ms", "", "info", "{", '{"a":1}', "<134>1 - - - - - [", "aGk=",
         '1.2.3.4 - - [02/Mar/2026:11:15:04 +0100] "', "a=1 b=2 c=3", "Traceback", "  at x", "http://", "\u0085x\ufeff"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(TEXTS) | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6), max_leaves=25)


@pytest.mark.parametrize(("name", "file"), [
    ("json_log", "ecs.ndjson"), ("json_log", "structlog.jsonl"), ("request_log", "pino_http.ndjson"),
    ("request_log", "bunyan.ndjson"), ("gcp_logging", "gcp_logentries.jsonl")])
def test_objects_tell_the_same_requests(name: str, file: str, data: Path) -> None:
    emit = read_payloads(name, objects(data / APP / file))
    assert requests(emit) == canonical(data) and emit.rejects == []


@pytest.mark.parametrize("file", ["cloudwatch_filter_log_events.json", "cloudwatch_subscription_lambda_event.json"])
def test_exports_tell_the_same_requests(file: str, data: Path) -> None:
    emit = read_payloads("cloudwatch", [orjson.loads((data / APP / file).read_bytes())])
    assert requests(emit) == canonical(data) and emit.rejects == []
    assert {event["service"] for event in emit.events} == {"shop-api"}


def test_nested_and_dotted_keys_are_equal() -> None:
    nested = {"@timestamp": "2026-03-02T10:15:02Z", "http": {"request": {"method": "GET"}, "response": {"status_code": 200}},
              "url": {"path": "/a", "query": "b=1"}, "event": {"duration": 5_000_000}, "labels": {"session_id": "s"}}
    dotted = {"@timestamp": "2026-03-02T10:15:02Z", "http.request.method": "GET", "http.response": {"status_code": 200},
              "url.path": "/a", "url.query": "b=1", "event.duration": 5_000_000, "labels.session_id": "s"}
    [one], [other] = requests(read_payloads("json_log", [nested])), requests(read_payloads("json_log", [dotted]))
    assert one == other and one["duration_ms"] == 5 and one["path"] == "/a?b=1" and one["session"] == "s"


def test_a_request_told_at_its_begin_and_at_its_end_is_one() -> None:
    prompt = {"level": 30, "time": 1_772_446_502_000, "reqId": "r1", "req": {"method": "GET", "url": "/a"}, "msg": "asked"}
    answered = {"level": 30, "time": 1_772_446_502_040, "reqId": "r1", "res": {"statusCode": 404}, "responseTime": 40.5,
                "msg": "request completed"}
    emit = read_payloads("request_log", [prompt, answered])
    [request_row] = requests(emit)
    assert (request_row["status"], request_row["duration_ms"], request_row["at"]) == (404, 40.5, 1_772_446_502_000_000)
    assert [(record.line, reason) for record, reason, _ in emit.rejects] == [(2, "joined_line")]


def test_a_line_of_an_application_is_a_log_line_and_what_it_binds_its_arguments() -> None:
    emit = read_payloads("json_log", [
        {"level": "info", "ts": 1772446500.5, "msg": "room 12 booked", "room": {"number": 12}, "user_id": "ann"},
        {"level": "info", "ts": 1772446501.5, "msg": "room 7 booked", "room": {"number": 7}, "user_id": "bob"}])
    assert [event["kind"] for event in emit.events] == ["log", "log"]
    assert {event["tool"] for event in emit.events} == {"room <*> booked"}
    assert orjson.loads(emit.events[0]["arguments"]) == {"room": {"number": 12}, "level": "info"}
    assert [event["name"] for event in emit.events] == ["ann", "bob"] and emit.events[0]["happened_at"] == 1_772_446_500_500_000


def test_a_route_that_is_registered_is_no_request() -> None:
    emit = read_payloads(
        "json_log", [{"level": "info", "time": "2026-03-02T10:15:02Z", "msg": "route", "method": "GET", "path": "/a"}]
    )
    assert [event["kind"] for event in emit.events] == ["log"]
    assert orjson.loads(emit.events[0]["arguments"]) == {"level": "info", "method": "GET", "path": "/a"}


def test_a_trace_stands_for_a_session_that_nobody_names() -> None:
    line = {"time": "2026-03-02T10:15:02Z", "level": "info", "msg": "x", "trace_id": "ab12"}
    assert read_payloads("json_log", [line]).events[0]["session_id"] == "trace:ab12"
    assert read_payloads("json_log", [{**line, "user_id": "ann"}]).events[0]["session_id"] is None
    assert read_payloads("json_log", [{**line, "session_id": "s"}]).events[0]["session_id"] == "s"


def test_a_cookie_is_an_identity_and_stays_secret() -> None:
    line = {"time": 1_772_446_502_000, "req": {"method": "GET", "url": "/a", "headers": {"cookie": "a=1; connect.sid=s3cret"},
                                               "remoteAddress": "10.0.0.1"}, "res": {"statusCode": 200}}
    [event] = read_payloads("request_log", [line]).events
    assert event["name"].startswith("cookie:") and "s3cret" not in orjson.dumps(event).decode()


def test_what_a_container_wrapped() -> None:
    lines_ = [{"log": '{"level":"info","time":"2026-03-02T10:15:02Z","msg":"hello"}\n', "stream": "stdout",
               "time": "2026-03-02T10:15:03Z"},
              {"log": "x" * 16384, "stream": "stderr", "time": "2026-03-02T10:15:04Z"},
              {"log": "y\n", "stream": "stderr", "time": "2026-03-02T10:15:04Z"}]
    emit = read_payloads("json_log", lines_)
    assert [event["content"] for event in emit.events] == ["hello", "x" * 16384 + "y"]
    assert [(record.line, reason) for record, reason, _ in emit.rejects] == [(2, "joined_line")]


def test_entries_twice_split_and_of_other_payloads() -> None:
    entry = {"logName": "projects/p/logs/l", "timestamp": "2026-03-02T10:15:02.000000001Z", "resource": {"type": "global"}}
    emit = read_payloads("gcp_logging", [
        *[{**entry, "insertId": "a", "textPayload": "started in 12 ms"}] * 2,
        {**entry, "insertId": "b", "textPayload": "one ", "split": {"uid": "u", "index": 0, "totalSplits": 2}},
        {**entry, "insertId": "c", "textPayload": "two", "split": {"uid": "u", "index": 1, "totalSplits": 2}},
        {**entry, "insertId": "d", "protoPayload": {"methodName": "doors.open", "status": {}}}])
    assert [event["content"] for event in emit.events] == ["started in 12 ms", "one two", "doors.open"]
    assert [reason for _, reason, _ in emit.rejects] == ["duplicate_entry", "joined_line"]


def test_messages_in_every_envelope_of_a_subscription(data: Path) -> None:
    packed = orjson.loads((data / APP / "cloudwatch_subscription_lambda_event.json").read_bytes())["awslogs"]["data"]
    kinesis = {"Records": [{"kinesis": {"data": packed}}, {"kinesis": {"data": packed}}]}
    assert len(read_payloads("cloudwatch", [kinesis]).events) == 10
    envelope = {"messageType": "DATA_MESSAGE", "logGroup": "/aws/lambda/doors", "logStream": "x",
                "logEvents": [{"id": "1", "timestamp": 1_772_446_502_000, "message": "opened door 7"}]}
    control = {"messageType": "CONTROL_MESSAGE", "logEvents": []}
    text = orjson.dumps(envelope).decode() * 2 + orjson.dumps(control).decode()
    emit = read_payloads("cloudwatch", [text])
    assert named("cloudwatch").claims(Head("text", [], None, [text]))
    assert [(event["service"], event["tool"]) for event in emit.events] == [("doors", "opened door <*>")] * 2
    assert [reason for _, reason, _ in emit.rejects] == ["control_message"]
    insights = {"results": [[{"field": "@timestamp", "value": "2026-03-02 10:15:02.000"},
                             {"field": "@message", "value": "hello"}]]}
    assert [event["content"] for event in read_payloads("cloudwatch", [insights]).events] == ["hello"]


def test_damaged_packed_data_is_a_reject() -> None:
    emit = read_payloads("cloudwatch", [{"awslogs": {"data": "aGVsbG8="}}, {"awslogs": {"data": "%%"}}, {"events": []}])
    assert [reason for _, reason, _ in emit.rejects] == ["malformed_record", "malformed_record", "no_log_events"]


def test_a_table_of_clicks() -> None:
    row = {"eventType": "open", "timeStamp": "2026-03-02T10:15:02Z", "userID": "ann", "Sheet": "", "Value": "3"}
    emit = read_payloads("event_table", [row, {**row, "eventType": ""}])
    [event] = emit.events
    assert (event["kind"], event["tool"], event["name"], event["arguments"]) == ("business", "open", "ann", '{"Value":"3"}')
    assert [reason for _, reason, _ in emit.rejects] == ["no_event_name"]


@pytest.mark.parametrize("name", NAMES)
@given(values=st.lists(VALUES, min_size=1, max_size=4))
def test_any_value_becomes_an_event_or_a_reject(name: str, values: list[Any]) -> None:
    emit = read_payloads(name, values)
    spoken_of = {event["record_id"] for event in emit.events} | {record.record_id for record, _, _ in emit.rejects}
    assert spoken_of == {f"{line:064d}" for line in range(1, len(values) + 1)}
    assert all(event["tool"] for event in emit.events)
    assert all(isinstance(orjson.loads(event["arguments"]), dict) for event in emit.events)


@pytest.mark.parametrize(("name", "file"), [("access_log", "nginx_combined_plus.log"), ("syslog", "syslog_rfc3164.log")])
@given(st.data())
def test_a_damaged_line_breaks_nothing(name: str, file: str, data: Path, drawn: st.DataObject) -> None:
    line = drawn.draw(st.sampled_from(lines(data / APP / file)))
    at = drawn.draw(st.integers(0, len(line)))
    damaged = line[:at] + drawn.draw(st.text(max_size=5)) + line[at + drawn.draw(st.integers(0, 10)):]
    emit = read_payloads(name, [damaged])
    assert len(emit.events) + len(emit.rejects) == 1


def test_lines_without_what_the_notation_cannot_say(data: Path) -> None:
    plus = read_payloads("access_log", lines(data / APP / "nginx_combined_plus.log"))
    assert without(requests(plus), "at") == without(canonical(data), "at")
    assert all(abs(one["at"] - other["at"]) < 1_000_000 for one, other in zip(requests(plus), canonical(data), strict=True))
    common = requests(read_payloads("access_log", lines(data / APP / "apache_common.log")))
    assert without(common, "at", "duration_ms", "request_id", "call_id", "session") == without(
        canonical(data), "at", "duration_ms", "request_id", "call_id", "session")
    assert {(row["duration_ms"], row["request_id"], row["session"]) for row in common} == {(None, None, None)}
    assert requests(read_payloads("syslog", lines(data / APP / "syslog_rfc5424.log"))) == canonical(data)
    old = read_payloads("syslog", lines(data / APP / "syslog_rfc3164.log"))
    assert without(requests(old), "at") == without(canonical(data), "at")
    assert all("year not stated" in event["lossy"] for event in old.events)


def test_a_traceback_of_a_container_joins_the_line_before() -> None:
    wrapped = [{"log": f"{line}\n", "stream": "stderr", "time": "2026-03-02T10:15:04Z"} for line in (
        "ERROR it broke", "Traceback (most recent call last):", '  File "x.py", line 1', "ValueError: boom", "went on")]
    emit = read_payloads("json_log", wrapped)
    assert [event["content"].splitlines()[0] for event in emit.events] == ["ERROR it broke", "went on"]
    assert emit.events[0]["content"].endswith("ValueError: boom") and emit.events[0]["tool"] == "it broke"
