"""Audit logs, load balancers, team chat and gateways: what one file of them gives beyond the shapes."""

from __future__ import annotations

import csv
import io
import zipfile
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from extractors.inventory import SourceFile
from extractors.reading import Reading, read
from extractors.sessions import assemble
from tests.extractors.formats.provider_reading import rejected_reasons


def read_bytes(folder: Path, content: bytes, name: str = "log") -> Reading:
    (folder / name).write_bytes(content)
    return read(SourceFile(folder / name, name))


def read_lines(folder: Path, *values: Any) -> Reading:
    return read_bytes(folder, b"".join(orjson.dumps(each) + b"\n" for each in values))


def audit(stage: str, **fields: Any) -> dict[str, Any]:
    return {"kind": "Event", "apiVersion": "audit.k8s.io/v1", "auditID": "a", "verb": "create", "requestURI": "/pods?x=1",
            "user": {"username": "system:admin"}, "impersonatedUser": {"username": "mara"}, "stage": stage,
            "requestReceivedTimestamp": "2026-03-02T10:15:00.100000Z",
            "stageTimestamp": "2026-03-02T10:15:00.150000Z", **fields}


def test_the_stages_of_an_audited_call_are_one_request_in_any_order(tmp_path: Path) -> None:
    done = audit("ResponseComplete", responseStatus={"code": 201}, requestObject={"n": 1})
    for stages in ([audit("RequestReceived"), done], [done, audit("RequestReceived")]):
        reading = read_lines(tmp_path, *stages)
        assert reading.events.select("kind", "tool", "name", "latency_ms").rows() == [("request", "POST /pods", "mara", 50.0)]
        assert orjson.loads(reading.events["arguments"][0]) == {"query": {"x": "1"}, "body": {"n": 1}}
        assert rejected_reasons(reading) == ["earlier_stage"]


def test_a_call_of_a_trail_that_only_reads_is_a_get_and_a_sign_in_is_no_call(tmp_path: Path) -> None:
    event = {"eventVersion": "1.11", "eventSource": "s3.amazonaws.com", "eventName": "ListBuckets", "readOnly": True,
             "eventTime": "2026-03-02T10:15:00Z", "eventID": "1", "userIdentity": {"arn": "arn:aws:iam::1:user/mara"}}
    sign_in = {**event, "eventID": "2", "eventName": "ConsoleLogin", "eventType": "AwsConsoleSignIn"}
    reading = read_lines(tmp_path, {"Records": [event, event, sign_in]})
    assert reading.events.sort("kind").select("kind", "tool").rows() == [
        ("log", "ConsoleLogin"), ("request", "GET /s3/ListBuckets")]
    assert rejected_reasons(reading) == ["duplicate_event"] and set(reading.events["name"]) == {"arn:aws:iam::1:user/mara"}


def message(ts: str, text: str, **fields: Any) -> dict[str, Any]:
    return {"type": "message", "user": "U1", "ts": ts, "text": text, **fields}


def test_a_zip_of_slack_gives_threads_by_channel_across_days(tmp_path: Path) -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        for name, value in {
            "users.json": [{"id": "U1"}], "channels.json": [{"name": "desk"}],
            "desk/2026-03-02.json": [message("1772446500.000100", "order 17?", thread_ts="1772446500.000100"),
                                     message("1772446505.000100", "lunch?")],
            "desk/2026-03-03.json": [message("1772532900.000100", "on its way", thread_ts="1772446500.000100", bot_id="B1"),
                                     message("1772532905.000100", "tea?")]}.items():
            archive.writestr(name, orjson.dumps(value))
    reading = read_bytes(tmp_path, content.getvalue())
    sessions = assemble(reading.events, reading.declarations).turns.group_by("session_id").agg("role").sort("session_id").rows()
    assert sessions == [("desk:1772446500.000100", ["user", "assistant"]), ("desk:talk:1772446505.000100", ["user"]),
                        ("desk:talk:1772532905.000100", ["user"])]
    assert reading.events.filter(kind="log").height == 2, "the lists of users and channels"


def test_a_patch_without_its_post_and_a_batch_that_a_later_one_goes_on_with_are_accounted_for(tmp_path: Path) -> None:
    def piece(run_id: str, **fields: Any) -> dict[str, Any]:
        return {"id": run_id, "trace_id": "t", "dotted_order": f"1{run_id}", **fields}

    posted = piece("a", run_type="llm", name="chat", start_time="2026-03-02T10:15:00", inputs={
        "messages": [{"role": "user", "content": "go"}]})
    patched = piece("a", end_time="2026-03-02T10:15:01", outputs={"choices": [{"message": {
        "role": "assistant", "content": "done"}}]})
    reading = read_lines(tmp_path, {"post": [posted]}, {"patch": [patched, piece("b", end_time="2026-03-02T10:15:02", outputs={
        "answer": 42})]})
    assert rejected_reasons(reading) == ["joined_run"]
    assert reading.events.filter(kind="message")["content"].to_list() == ["go", "done"]
    assert "42" in reading.events.filter(kind="log")["content"].item()


def test_rows_of_a_gateway_without_bodies_are_rejected_and_providers_may_mix(tmp_path: Path) -> None:
    def row(name: str, request: Any, response: Any) -> dict[str, Any]:
        return {"request_id": name, "request_created_at": "2026-03-02T10:15:00Z", "request_body": request,
                "response_body": response, "request_properties": {"Helicone-Session-Id": f"s-{name}"}}

    asked = {"messages": [{"role": "user", "content": "go"}]}
    reading = read_lines(tmp_path, {"data": [
        row("1", asked, {"choices": [{"message": {"role": "assistant", "content": "one"}}]}),
        row("2", asked, {"type": "message", "role": "assistant", "content": [{"type": "text", "text": "two"}]}),
        row("3", None, None)]})
    turns = assemble(reading.events, reading.declarations).turns.sort("session_id", "position")
    assert turns.select("session_id", "content").rows() == [("s-1", "go"), ("s-1", "one"), ("s-2", "go"), ("s-2", "two")]
    assert rejected_reasons(reading) == ["no_body"] and reading.events["event_id"].is_unique().all()


def table(path: Path, rows: list[dict[str, Any]]) -> Reading:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows({key: each if isinstance(each, str) else orjson.dumps(each).decode() for key, each in row.items()}
                         for row in rows)
    return read(SourceFile(path, path.name))


def test_a_trace_of_langfuses_table_gives_way_to_its_observations(tmp_path: Path) -> None:
    shared = {"sessionId": "s", "traceName": "desk", "traceTags": []}
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "c", "function": {"name": "look", "arguments": "{}"}}]}
    asked = [{"role": "user", "content": "where?"}]
    traces = table(tmp_path / "traces.csv", [{
        "id": "t", "bookmarked": "false", "timestamp": "2026-03-02T10:15:00.000Z", "name": "desk", "sessionId": "s",
        "input": asked, "output": "there", "tags": ["a"], "csat": [4]}])
    observations = table(tmp_path / "observations.csv", [
        {"id": "1", "traceId": "t", "type": "GENERATION", "startTime": "2026-03-02T10:15:00.100Z", "input": asked,
         "output": call, **shared},
        {"id": "2", "traceId": "t", "type": "GENERATION", "startTime": "2026-03-02T10:15:00.300Z",
         "input": [*asked, call, {"role": "tool", "tool_call_id": "c", "content": "here"}], "output": "there", **shared}])
    assert traces.events.filter(kind="feedback").select("session_id", "name", "value").rows() == [("s", "csat", "4")]
    made = assemble(pl.concat([traces.events, observations.events]), traces.declarations)
    assert made.turns.sort("position").select("kind", "content").rows() == [
        ("message", "where?"), ("call", "here"), ("message", "there")]
    assert "duplicate_session" in made.decisions["reason"].to_list()
