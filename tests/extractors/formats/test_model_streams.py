from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors.formats import Emit, LogRecord
from extractors.formats.envelope import Envelope
from extractors.formats.format import Head
from extractors.formats.model_streams import FORMAT
from extractors.formats.streams import anthropic_message, chat_completion, stream_events


def read_stream(events: list[Any], end: str = "\n") -> Emit:
    text = "".join(f"data: {each if isinstance(each, str) else orjson.dumps(each).decode()}{end}{end}" for each in events)
    emit = Emit("file", "main", "model_streams", Envelope())
    FORMAT.read(iter([LogRecord("0" * 64, 1, text)]), emit)
    return emit


def chunk(delta: dict[str, Any], index: int = 0, **fields: Any) -> dict[str, Any]:
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1772446500, "model": "m",
            "choices": [{"index": index, "delta": delta, "finish_reason": fields.pop("finish_reason", None)}], **fields}


def fragment(arguments: str, **fields: Any) -> dict[str, Any]:
    function = {"arguments": arguments, **({"name": fields.pop("name")} if "name" in fields else {})}
    return {"tool_calls": [{**fields, "function": function}]}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_chat_fragments_become_one_answer(end: str) -> None:
    events = [chunk({"role": "assistant", "content": ""}), chunk({"content": "he\u2028"}), chunk({"content": "re"}),
              chunk(fragment('{"x"', index=0, id="a", name="f")), chunk(fragment(":1}", index=0)),
              chunk(fragment("", index=1, id="b", name="g")), chunk({}, finish_reason="tool_calls"),
              {**chunk({}), "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 4}}, "[DONE]"]
    emit = read_stream(events, end)
    assert [(each["kind"], each.get("content"), each.get("arguments")) for each in emit.events] == [
        ("message", "he\u2028re", None), ("call", None, '{"x":1}'), ("call", None, "{}")]
    assert {each["session_id"] for each in emit.events} == {"trace:c1"}
    assert orjson.loads(emit.events[0]["usage"]) == {"input_tokens": 3, "output_tokens": 4}
    assert all(each["lossy"] == ["input not captured"] for each in emit.events)


@pytest.mark.parametrize("repeated", [{}, {"id": "a", "name": "f"}])
def test_servers_without_an_index_and_with_repeated_names(repeated: dict[str, Any]) -> None:
    made = chat_completion([chunk(fragment('{"x"', id="a", name="f")), chunk(fragment(":1}", **repeated)),
                            chunk(fragment("{}", id="b", name="g"))])
    calls = [(each["id"], each["function"]["name"], each["function"]["arguments"])
             for each in made["choices"][0]["message"]["tool_calls"]]
    assert calls == [("a", "f", '{"x":1}'), ("b", "g", "{}")]


def test_candidates_two_answers_and_an_end_too_early() -> None:
    emit = read_stream([chunk({"content": "A"}), chunk({"content": "B"}, index=1), {**chunk({"content": "C"}), "id": "c2"}])
    assert [(each["session_id"], each["content"], each["lossy"]) for each in emit.events] == [
        ("trace:c1", "A", ["input not captured", "finish_reason stream ended early"]),
        ("trace:c1", "B", ["input not captured", "finish_reason stream ended early", "candidate 1"]),
        ("trace:c2", "C", ["input not captured", "finish_reason stream ended early"])]


def test_anthropic_inputs_empty_torn_and_signed() -> None:
    def start(index: int, **block: Any) -> dict[str, Any]:
        return {"type": "content_block_start", "index": index, "content_block": block}

    def delta(index: int, **piece: Any) -> dict[str, Any]:
        return {"type": "content_block_delta", "index": index, "delta": piece}

    message = anthropic_message([
        {"type": "message_start", "message": {"id": "m", "content": [], "usage": {"input_tokens": 2}}},
        start(0, type="thinking", thinking=""), delta(0, thinking="hm"), delta(0, signature="s"),
        start(1, type="tool_use", id="a", name="f", input={}), delta(1, partial_json=""),
        start(2, type="tool_use", id="b", name="g", input={}), delta(2, partial_json='{"x'), {"type": "ping"}])
    assert [each.get("thinking", each.get("input")) for each in message["content"]] == ["hm", {}, '{"x']
    assert message["stop_reason"] == "stream ended early"


def test_responses_hold_their_final_object_and_errors_stay() -> None:
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "here"}]}
    over = {"type": "response.completed", "response": {"id": "r", "object": "response", "output": [item]}}
    torn = [{"type": "response.created", "response": {"id": "q"}}, {"type": "response.output_item.done", "item": item}]
    begun = {"type": "response.created", "response": {"id": "r"}}
    emit = read_stream([*torn, begun, over, {"type": "error", "message": "x"}, "no json"])
    assert [(each["kind"], each["session_id"]) for each in emit.events] == [
        ("message", "trace:q"), ("log", "trace:r"), ("log", "trace:r"), ("message", "trace:r")]
    assert "no json" in emit.events[2]["content"] and emit.events[3]["content"] == "here"


def test_what_it_claims() -> None:
    chat = f"data: {orjson.dumps(chunk({})).decode()}"
    assert FORMAT.claims(Head("text", [], None, [": hello", "event: x", chat]))
    assert not FORMAT.claims(Head("text", [], None, ["a log line", chat]))
    assert not FORMAT.claims(Head("text", [], None, ['data: {"price": 3}']))
    assert stream_events("data: 1\ndata: 2\n\n") == [{"type": "unreadable", "data": "1\n2"}]


@given(st.lists(st.sampled_from(FORMAT.sample().decode().splitlines()) | st.text(max_size=9), max_size=30))
def test_no_shuffling_makes_anything_vanish(lines: list[str]) -> None:
    emit = Emit("file", "main", "model_streams", Envelope())
    FORMAT.read(iter([LogRecord("0" * 64, 1, "\n".join(lines))]), emit)
    assert emit.events or emit.rejects
