"""MLflow: both schemas, streams, exceptions, assessments."""

from __future__ import annotations

from typing import Any

import orjson

from extractors.formats import named, recognise
from tests.extractors.formats.platforms import events, head, read_platform_log, story


def text(value: Any) -> str:
    return orjson.dumps(value).decode()


def span(number: int, kind: str, inputs: Any, outputs: Any, **fields: Any) -> dict[str, Any]:
    return {"trace_id": "AA==", "span_id": f"s{number}", "parent_span_id": None, "name": "look_up",
            "start_time_unix_nano": (1772446500 + number) * 10**9, "end_time_unix_nano": (1772446501 + number) * 10**9 - 1000,
            "events": [], "status": {"code": "STATUS_CODE_OK"}, "attributes": {
                "mlflow.spanType": text(kind), "mlflow.spanInputs": text(inputs), "mlflow.spanOutputs": text(outputs)},
            **fields}


def trace(*spans: dict[str, Any], **info: Any) -> dict[str, Any]:
    return {"info": {"trace_id": "tr-1", "request_time": "2026-03-02T10:15:00Z", "state": "OK",
                     "trace_metadata": {"mlflow.trace.session": "s"}, "tags": {}, "assessments": [], **info},
            "data": {"spans": [*spans]}}


PROMPT = {"messages": [{"role": "user", "content": "q"}], "model": "m"}


def test_a_stream_that_nobody_put_together() -> None:
    def chunk(number: int, delta: dict[str, Any]) -> dict[str, Any]:
        return {"name": f"mlflow.chunk.item.{number}", "attributes": {"mlflow.chunk.value": text(
            {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta}]})}}

    content = [chunk(10, {"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]}),
            chunk(2, {"tool_calls": [{"index": 0, "id": "c", "function": {"name": "look_up", "arguments": '{"a"'}}]}),
            chunk(0, {"role": "assistant", "content": "One "}), chunk(1, {"content": "moment"})]
    emit = read_platform_log("mlflow", trace(span(1, "CHAT_MODEL", PROMPT, None, events=content)))
    assert story(emit) == [("user", "q"), ("assistant", "One moment"), ("look_up", '{"a":1}')]


def test_what_a_tool_raised_is_its_result_where_no_message_tells_another() -> None:
    call = {"choices": [{"message": {"role": "assistant", "tool_calls": [
        {"id": "c", "function": {"name": "look_up", "arguments": "{}"}}]}}]}
    raised = [{"name": "exception", "attributes": {"exception.message": "late", "exception.type": "Timeout"}}]
    failed = span(2, "TOOL", {}, None, events=raised, status={"code": "STATUS_CODE_ERROR", "message": "Timeout: late"})
    emit = read_platform_log("mlflow", trace(span(1, "CHAT_MODEL", PROMPT, call), failed))
    assert story(emit) == [("user", "q"), ("look_up", "{}"), ("-", "late", True)]
    assert any('"error":"late"' in row["arguments"] for row in events(emit, "log"))


def test_assessments_that_count_and_those_that_do_not() -> None:
    def assessment(name: str, **fields: Any) -> dict[str, Any]:
        return {"assessment_id": f"a-{name}", "assessment_name": name, "source": {"source_type": "HUMAN"}, "valid": True,
                "create_time": "2026-03-02T11:00:00Z", **fields}

    emit = read_platform_log("mlflow", trace(assessments=[
        assessment("first", feedback={"value": 1}),
        assessment("second", feedback={"value": 2}, overrides="a-first", rationale="why"),
        assessment("void", feedback={"value": 3}, valid=False), assessment("wanted", expectation={"value": "x"})]))
    [opinion] = events(emit, "feedback")
    keys = ("name", "value", "content", "call_id", "session_id")
    assert [opinion[key] for key in keys] == ["second", "2", "why", "tr-1", "s"]
    assert [row["name"] for row in events(emit, "log") if row["tool"] == "assessment"] == ["first", "void", "wanted"]


def test_schema_2() -> None:
    old = {"info": {"request_id": "r1", "experiment_id": "0", "timestamp_ms": 1772446500000, "status": "OK",
                    "request_metadata": {"mlflow.trace.session": "s", "mlflow.traceInputs": "{}"}, "tags": []},
           "data": {"spans": [{"name": "look_up", "context": {"trace_id": "0x1", "span_id": "0x3"}, "parent_id": "0x2",
                               "start_time": 1772446501000000000, "end_time": 1772446502000000000, "status_code": "ERROR",
                               "status_message": "late", "events": [],
                               "attributes": {"mlflow.spanType": '"TOOL"', "mlflow.spanInputs": '{"a":1}',
                                              "mlflow.spanOutputs": "null"}},
                              {"name": "model", "context": {"trace_id": "0x1", "span_id": "0x2"}, "parent_id": None,
                               "start_time": 1772446500000000000, "end_time": 1772446503000000000, "status_code": "OK",
                               "attributes": {"mlflow.spanType": '"AGENT"', "mlflow.spanInputs": text({"question": "q"}),
                                              "mlflow.spanOutputs": '"a"'}}]}}
    assert recognise(head(old)) is named("mlflow")
    emit = read_platform_log("mlflow", old)
    assert {row["session_id"] for row in emit.events} == {"s"}
    assert story(emit) == [("user", "q"), ("look_up", '{"a":1}'), ("-", "late", True), ("assistant", "a")]


def test_a_row_of_a_data_frame() -> None:
    whole = trace(span(1, "LLM", PROMPT, {"choices": [{"text": "a"}]}))
    row = {**whole["info"], "spans": whole["data"]["spans"], "trace": text(whole), "request": None, "response": None}
    assert named("mlflow").claims(head(row))
    assert (
        story(read_platform_log("mlflow", row))
        == story(read_platform_log("mlflow", whole))
        == [("user", "q"), ("assistant", "a")]
    )
