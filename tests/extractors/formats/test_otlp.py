"""OTLP in all dialects: what the samples do not show."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors.formats import Head
from extractors.formats.otlp import claims
from extractors.formats.otlp_span import hex_id, plain
from tests.extractors.formats.spans import (
    TRACE,
    any_value,
    batch,
    chat,
    dumped,
    log,
    logs,
    read_batches,
    rows,
    span,
    text_message,
    words,
)

LONG = "an answer that is long enough to be known again"
RUN = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look"}


def test_ids_in_any_spelling_are_one_trace() -> None:
    raw = bytes.fromhex(TRACE)
    assert {hex_id(TRACE.upper()), hex_id(base64.b64encode(raw).decode()), hex_id(TRACE)} == {TRACE}
    assert hex_id(None) == "" and hex_id("=" * 12) == "=" * 12 and hex_id("tr-1") == "tr-1"
    first, second = chat(1, [("user", "hi")], [("assistant", LONG)], None), chat(2, [("user", "more")], [], None)
    second["traceId"] = base64.b64encode(raw).decode()
    emit = read_batches(batch(first), batch(second))
    assert {each["session_id"] for each in rows(emit)} == {f"trace:{TRACE}"} and len(rows(emit)) == 3


@given(value=st.recursive(st.none() | st.booleans() | st.integers() | st.text(),
                          lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8))
def test_a_value_survives_its_wrapping(value: Any) -> None:
    assert plain(any_value(value)) == value


def test_turns_without_a_session_are_one_conversation_that_other_files_can_name() -> None:
    history = [("user", "one"), ("assistant", LONG), ("user", "two")]
    emit = read_batches(batch(chat(9, history, [("assistant", "end")], None, trace="b" * 32)),
                batch(chat(1, history[:1], [("assistant", LONG)], None, trace="a" * 32)))
    assert [each["content"] for each in rows(emit)] == ["one", LONG, "two", "end"]
    assert {each["session_id"] for each in rows(emit)} == {"trace:" + "a" * 32}
    assert [(each["session_id"], each["value"]) for each in rows(emit, "link")] == [("trace:" + "a" * 32, "trace:" + "b" * 32)]


def test_a_session_that_one_span_states_is_its_traces() -> None:
    run = span(2, {**RUN, "gen_ai.tool.call.arguments": "{}", "gen_ai.tool.call.result": "7"})
    other = span(3, {"db.system": "postgresql"})
    emit = read_batches(batch(other), batch(run), batch(chat(1, [("user", "hi")], [], "s1")))
    assert {each["session_id"] for each in emit.events} == {"s1"} and not emit.rejects
    assert [each["kind"] for each in emit.events] == ["log", "message", "call", "result", "link"]


def test_one_call_that_three_spans_tell_of_counts_once() -> None:
    outer = span(1, {**RUN, "gen_ai.tool.call.id": "c1"})
    client = span(2, {**RUN, "mcp.method.name": "tools/call", "gen_ai.tool.call.arguments": '{"n":1}'},
                  parentSpanId=f"{1:016x}", kind=3)
    http = span(3, {"http.request.method": "POST"}, parentSpanId=f"{2:016x}")
    server = span(4, {"mcp.method.name": "tools/call", "gen_ai.tool.name": "look", "gen_ai.tool.call.result": "7",
                      "error.type": "tool_error"}, parentSpanId=f"{3:016x}", kind="SPAN_KIND_SERVER")
    emit = read_batches(batch(server, http, client, outer))
    assert [(each["kind"], each.get("call_id"), each.get("arguments"), each.get("content")) for each in rows(emit)] == [
        ("call", "c1", '{"n":1}', None), ("result", "c1", None, "7")]
    alone = read_batches(batch(server))
    assert [each["kind"] for each in rows(alone)] == ["call", "result"] and rows(alone)[1]["is_error"] is True


@pytest.mark.parametrize(("status", "expected"), [
    ({}, False), (None, None), ({"code": 2}, True), ({"code": "STATUS_CODE_OK"}, False), ({"code": "STATUS_CODE_ERROR"}, True),
    ({"code": "else"}, None)])
def test_the_error_of_a_run_is_what_its_status_says(status: Any, expected: bool | None) -> None:
    emit = read_batches(batch(span(1, {**RUN, "gen_ai.tool.call.result": "7"}, status=status)))
    assert rows(emit, "result")[0].get("is_error") is expected


def test_a_content_that_was_cut_off_is_kept_as_it_is() -> None:
    torn = chat(2, [], [("assistant", "end")])
    torn["attributes"][2]["value"] = {"stringValue": dumped([text_message("user", "two")])[:-9]}
    emit = read_batches(batch(chat(1, [("user", "one")], [("assistant", LONG)])), batch(torn))
    assert [each["content"] for each in rows(emit)] == ["one", LONG, "end"]
    [rejected] = rows(emit, "log")
    assert (
        rejected["content"].startswith('[{"role":"user"')
        and rejected["lossy"] == ["truncated"]
        and rejected["session_id"] == "s1"
    )
    assert [(record.line, reason) for record, reason, _ in emit.rejects] == [(2, "torn_attribute")]


def test_an_agents_span_counts_where_its_parts_are_not_logged() -> None:
    agent = chat(1, [("user", "hi")], [("assistant", "hello")])
    agent["attributes"][0] = {"key": "gen_ai.operation.name", "value": {"stringValue": "invoke_agent"}}
    assert words(read_batches(batch(agent))) == [("message", "user", "hi"), ("message", "assistant", "hello")]
    emit = read_batches(batch(agent), batch(chat(2, [("user", "hi")], [("assistant", "hello")])))
    assert len(rows(emit)) == 2 and {each["record_id"][-1] for each in rows(emit)} == {"2"}


def test_answers_without_content_leave_their_tokens() -> None:
    emit = read_batches(batch(span(1, {"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 7,
                               "gen_ai.usage.cache_read.input_tokens": 3}), span(2, {**RUN})))
    [answer] = rows(emit, "log")
    assert answer["usage"] == '{"cached_tokens":3,"input_tokens":7}' and answer["lossy"] == ["content not captured"]
    assert [each["position"] for each in rows(emit)] == [0, 1], "a log event takes no place in the conversation"


def test_parts_of_all_kinds() -> None:
    parts = [{"type": "thinking", "content": "hm"}, {"type": "text", "content": "a"}, {"type": "uri", "uri": "x"},
             {"type": "text", "content": "b"},
             {"type": "server_tool_call", "id": "w", "name": "web", "server_tool_call": {"q": 1}},
             {"type": "server_tool_call_response", "id": "w", "server_tool_call_response": {"r": 2}},
             {"type": "new", "x": 1}, 7]
    call = {"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "look", "arguments": '{"n":'}],
            "finish_reason": "length"}
    answer = {"role": "user", "parts": [{"type": "tool_call_response", "id": "c", "result": ["x"], "name": "look"}]}
    emit = read_batches(batch(chat(1, [{"role": "assistant", "parts": parts}, answer], [call])))
    assert words(emit) == [("message", "assistant", "ab"), ("call", "web", '{"q":1}'), ("result", None, '{"r":2}'),
                           ("result", None, '["x"]'), ("call", "look", '{"n":')]
    assert [each["content"] for each in rows(emit, "reasoning", "log")] == ["hm", '{"type":"new","x":1}', "7"]
    lossy = [each["lossy"] for each in rows(emit)]
    assert lossy[0][0].startswith("part uri sha256:") and lossy[-1] == ["args_parse_error", "finish_reason length"]


def test_logs_and_spans_of_one_generation_in_one_file_are_read_once() -> None:
    details = log("gen_ai.client.inference.operation.details", None, {
        "gen_ai.operation.name": "chat", "gen_ai.conversation.id": "s1",
        "gen_ai.input.messages": [text_message("user", "hi")], "gen_ai.output.messages": [text_message("assistant", "hello")]})
    bare = span(1, {"gen_ai.operation.name": "chat", "gen_ai.usage.output_tokens": 3, "gen_ai.request.model": "m"})
    for order in ([batch(bare), logs(details)], [logs(details), batch(bare)]):
        emit = read_batches(*order)
        assert words(emit) == [("message", "user", "hi"), ("message", "assistant", "hello")]
        assert rows(emit)[1]["usage"] == '{"output_tokens":3}' and rows(emit)[1]["model"] == "m"


def test_dialects_of_one_file_meet_in_one_conversation() -> None:
    """An agent instrumented by two libraries: OpenInference for the model, GenAI conventions for the tool."""
    model = span(1, {"openinference.span.kind": "LLM", "session.id": "s1", "llm.input_messages.0.message.role": "user",
                     "llm.input_messages.0.message.content": "hi", "llm.output_messages.0.message.role": "assistant",
                     "llm.output_messages.0.message.tool_calls.0.tool_call.id": "c1",
                     "llm.output_messages.0.message.tool_calls.0.tool_call.function.name": "look"})
    run = span(2, {**RUN, "gen_ai.tool.call.id": "c1", "gen_ai.tool.call.result": {"n": [1, None]}})
    assert words(read_batches(batch(run), batch(model))) == [
        ("message", "user", "hi"), ("call", "look", "{}"), ("result", None, '{"n":[1,null]}')]


def test_other_shapes_of_batches() -> None:
    inner = chat(1, [("user", "hi")], [])
    snake = {"trace_id": TRACE, "span_id": "1" * 16, "start_time_unix_nano": "1772446500000000000", "name": "x", "attributes": [
        {"key": "gen_ai.operation.name", "value": {"string_value": "execute_tool"}},
        {"key": "gen_ai.tool.call.arguments", "value": {"kvlist_value": {"values": [
            {"key": "n", "value": {"int_value": 3}}]}}}]}
    tempo = {"batches": [{"resource": {}, "instrumentationLibrarySpans": [{"spans": [inner]}]}]}
    for value, kinds in ((tempo, ["message"]), ({"data": [snake], "next_cursor": None}, ["call"]),
                         ({"resource_spans": [{"scope_spans": [{"spans": [snake]}]}]}, ["call"])):
        assert claims(Head("lines", [value])) and [each["kind"] for each in rows(read_batches(value))] == kinds
    assert not claims(Head("lines", [{"data": [{"context": {}}]}])) and not claims(Head("table", [tempo]))
    assert rows(read_batches({"data": [snake]}))[0]["arguments"] == '{"n":3}'


KEYS = ["resourceSpans", "scopeSpans", "spans", "resourceLogs", "scopeLogs", "logRecords", "attributes", "key", "value",
        "parts", "traceId", "spanId", "parentSpanId", "events", "links", "status", "code", "name", "role", "body", "eventName",
        "resource", "stringValue", "kvlistValue", "arrayValue", "values", "intValue", "type", "content"]
WORDS = ["gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.operation.name", "execute_tool", "chat", "c", "1" * 16,
         "openinference.span.kind", "LLM", "TOOL", "llm.input_messages.0.message.content", "annotations.0.annotation.name",
         "ai.operationId", "ai.toolCall", "x.doGenerate", "ai.prompt.messages", "gen_ai.prompt.0.role", "traceloop.span.kind",
         "tool", "gen_ai.choice", "gen_ai.user.message", "gen_ai.evaluation.result",
         "gen_ai.client.inference.operation.details",
         "gen_ai.content.prompt", "gen_ai.prompt", '[{"role":"user"}]', '[{"role":', "gen_ai.system_instructions"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 2**60) | st.sampled_from(WORDS),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5), max_leaves=12)
ATTRIBUTES = st.lists(st.fixed_dictionaries({"key": st.sampled_from(WORDS), "value": st.one_of(
    VALUES, st.builds(lambda text: {"stringValue": text}, st.sampled_from(WORDS)),
    st.builds(lambda inner: {"arrayValue": {"values": [inner]}}, VALUES))}), max_size=5)
SPANS = st.fixed_dictionaries({"attributes": ATTRIBUTES | VALUES, "traceId": VALUES, "spanId": VALUES, "events": VALUES,
                               "links": VALUES, "status": VALUES, "body": VALUES,
                               "eventName": st.sampled_from(WORDS) | VALUES})


@given(spans=st.lists(SPANS, max_size=3), records=st.lists(SPANS, max_size=3))
def test_nothing_vanishes_and_nothing_breaks(spans: list[Any], records: list[Any]) -> None:
    emit = read_batches(batch(*spans), logs(*records))
    told_of = {row["record_id"] for row in emit.events} | {record.record_id for record, _, _ in emit.rejects}
    assert len(told_of) == 2
    assert len({row["event_id"] for row in emit.events}) == len(emit.events)


def test_messages_as_events_of_the_span() -> None:
    """As libraries write them that have no log records."""
    def event(name: str, **attributes: Any) -> dict[str, Any]:
        return {"name": name, "attributes": [{"key": key, "value": any_value(value)} for key, value in attributes.items()]}

    calls = dumped([{"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}])
    first = span(1, {"gen_ai.operation.name": "chat"}, events=[
        event("gen_ai.user.message", content=dumped([{"type": "text", "text": "hi"}])),
        event("gen_ai.choice", message=dumped({"role": "assistant", "tool_calls": calls}), finish_reason="tool_use")])
    second = span(2, {"gen_ai.operation.name": "chat"}, events=[
        event("gen_ai.user.message", **{"gen_ai.event.content": dumped({"content": "hi"})}),
        event("gen_ai.assistant.message", content="", tool_calls=calls), event("gen_ai.tool.message", id="c1", content="7"),
        event("gen_ai.choice", message="seven")])
    third = span(
        3,
        {"gen_ai.operation.name": "chat"},
        events=[
            event(
                "gen_ai.client.inference.operation.details",
                **{
                    "gen_ai.input.messages": dumped([text_message("user", "more")]),
                    "gen_ai.output.messages": dumped([text_message("assistant", "no")]),
                },
            )
        ],
    )
    assert words(read_batches(batch(first, second, third))) == [
        ("message", "user", "hi"), ("call", "look", "{}"), ("result", None, "7"), ("message", "assistant", "seven"),
        ("message", "user", "more"), ("message", "assistant", "no")]
