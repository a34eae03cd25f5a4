"""Traces of the OpenAI Agents SDK: groups, responses without content, errors, hand-offs."""

from __future__ import annotations

from typing import Any

import orjson

from tests.extractors.formats.platforms import events, read_platform_log, reasons, story


def span(number: int, data: dict[str, Any], **fields: Any) -> dict[str, Any]:
    return {"object": "trace.span", "id": f"span_{number}", "trace_id": "trace_1", "parent_id": None, "span_data": data,
            "error": None, "started_at": f"2026-03-02T10:00:0{number}+00:00",
            "ended_at": f"2026-03-02T10:00:0{number}.500000+00:00", **fields}


TRACE = {"object": "trace", "id": "trace_1", "workflow_name": "turn", "group_id": "s", "metadata": {"user_id": "u"}}
ASK = span(1, {"type": "generation", "model": "m", "input": [{"role": "user", "content": "q"}], "output": [
    {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "look_up", "arguments": "{}"}}]}]})


def test_spans_before_their_trace_are_of_its_group() -> None:
    emit = read_platform_log("openai_agents", ASK, TRACE, TRACE)
    assert {row["session_id"] for row in emit.events} == {"s"} and reasons(emit) == ["duplicate_trace"]
    assert {row["name"] for row in emit.events if row["kind"] in ("message", "call")} == {"u"}
    assert [row["value"] for row in events(emit, "link")] == ["trace:trace_1"]
    alone = read_platform_log("openai_agents", ASK)
    assert {row["session_id"] for row in alone.events} == {"trace:trace_1"}
    [link] = events(read_platform_log("openai_agents", TRACE), "link")
    assert (link["session_id"], link["value"]) == ("s", "trace:trace_1")


def test_a_response_known_by_its_id_keeps_its_counts() -> None:
    counts = {"input_tokens": 5, "output_tokens": 2}
    emit = read_platform_log("openai_agents", span(1, {"type": "response", "response_id": "resp_1", "usage": counts}))
    assert story(emit) == [("assistant", None)] and emit.events[0]["lossy"] == ["content not captured"]
    assert orjson.loads(emit.events[0]["usage"]) == counts


def test_a_tools_result_is_as_the_model_saw_it_else_as_python_printed_it() -> None:
    ran = span(2, {"type": "function", "name": "look_up", "input": "{}", "output": "{'ok': True}"})
    again = span(3, {"type": "generation", "input": [*ASK["span_data"]["input"], *ASK["span_data"]["output"],
                                                     {"role": "tool", "tool_call_id": "c", "content": '{"ok":true}'}],
                     "output": [{"role": "assistant", "content": "a"}]})
    assert story(read_platform_log("openai_agents", ASK, ran))[-1] == ("-", "{'ok': True}", False)
    assert story(read_platform_log("openai_agents", ASK, ran, again))[-2:] == [("-", '{"ok":true}', False), ("assistant", "a")]
    failed = {**ran, "span_data": {**ran["span_data"], "output": None},
              "error": {"message": "Error running tool", "data": {"error": "late"}}}
    assert story(read_platform_log("openai_agents", ASK, failed))[-1] == ("-", "late", True)


def test_a_hand_off_goes_on_with_the_conversation() -> None:
    prompt = [{"role": "system", "content": "one"}, {"role": "user", "content": "q"}]
    first = span(1, {"type": "generation", "input": prompt, "output": [
        {"role": "assistant", "tool_calls": [{"id": "h", "function": {"name": "transfer", "arguments": "{}"}}]}]})
    second = span(3, {"type": "generation", "input": [
        {"role": "system", "content": "two"}, {"role": "user", "content": "q"}, *first["span_data"]["output"],
        {"role": "tool", "tool_call_id": "h", "content": "ok"}], "output": [{"role": "assistant", "content": "a"}]})
    emit = read_platform_log(
        "openai_agents", TRACE, first, span(2, {"type": "handoff", "from_agent": "one", "to_agent": "two"}), second
    )
    assert story(emit) == [("system", "one"), ("user", "q"), ("transfer", "{}"), ("-", "ok", None), ("assistant", "a")]
    assert any('"to_agent":"two"' in row["arguments"] for row in events(emit, "log"))
