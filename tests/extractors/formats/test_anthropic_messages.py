from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors.formats.anthropic_messages import FORMAT
from extractors.formats.provider_parts import anthropic_parts
from tests.extractors.formats.provider_reading import JSON, damaged, log, nothing_vanishes, rejected_reasons, spoken_turns

USER = {"role": "user", "content": "where is it?"}
CALL = {"type": "tool_use", "id": "t1", "name": "find", "input": {"id": 7}}
USAGE = {"input_tokens": 10, "cache_read_input_tokens": 90, "cache_creation_input_tokens": 5, "output_tokens": 3}


def answer(content: Any, **fields: Any) -> dict[str, Any]:
    return {"id": "m", "type": "message", "role": "assistant", "model": "m1", "content": content, "stop_reason": "end_turn",
            **fields}


def exchange(messages: list[Any], response: Any, **fields: Any) -> dict[str, Any]:
    return {"ts": "2026-03-02T10:00:00Z", "request": {"model": "m1", "system": "be kind", "messages": messages},
            "response": response, **fields}


def test_a_history_is_read_once_and_counts_hold_the_cache(tmp_path: Path) -> None:
    first = answer([{"type": "text", "text": "I look. "}, {"type": "text", "text": "Wait."}, CALL], usage=USAGE)
    history = [USER, {"role": "assistant", "content": first["content"]}, {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "on its way"}]},
        {"type": "text", "text": "and?"}]}]
    reading, made = log(tmp_path, [exchange([USER], first), exchange(history, answer("It is on its way."))])
    assert spoken_turns(made) == [("system", "be kind"), ("user", "where is it?"), ("assistant", "I look. Wait."),
                          ("find", "on its way"), ("user", "and?"), ("assistant", "It is on its way.")]
    assert reading.events.height == 7 and made.turns["is_error"].to_list()[3] is False
    [usage] = reading.events["usage"].drop_nulls()
    assert orjson.loads(usage) == {"input_tokens": 105, "cached_tokens": 90, "output_tokens": 3}


def test_conversations_without_an_id_are_told_apart_by_their_histories(tmp_path: Path) -> None:
    other = {"role": "user", "content": "hello"}
    reply = [other, {"role": "assistant", "content": "hi"}, {"role": "user", "content": "bye"}]
    _, made = log(tmp_path, [exchange([USER], answer("here")), exchange([other], answer("hi")), exchange(reply, answer("bye"))])
    assert made.sessions.sort("n_messages")["n_messages"].to_list() == [3, 5]


def test_a_turn_that_paused_goes_on(tmp_path: Path) -> None:
    searched = [{"type": "server_tool_use", "id": "s1", "name": "look_up", "input": {}},
                {"type": "web_search_tool_result", "tool_use_id": "s1", "content": {"type": "x_error", "error_code": "no"}}]
    paused = answer(searched, stop_reason="pause_turn")
    _, made = log(tmp_path, [exchange([USER], paused),
                             exchange([USER, {"role": "assistant", "content": searched}], answer("found"))])
    assert spoken_turns(made)[2:] == [("look_up", '{"type":"x_error","error_code":"no"}'), ("assistant", "found")]
    assert made.turns["is_error"].to_list()[2] is True


def test_an_answer_that_failed_stays_as_logged_and_the_retry_follows(tmp_path: Path) -> None:
    failed = {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}
    reading, made = log(tmp_path, [exchange([USER], failed), exchange([USER], answer("here")), exchange([], None)])
    assert spoken_turns(made) == [("system", "be kind"), ("user", "where is it?"), ("assistant", "here")]
    assert "overloaded_error" in reading.events.filter(kind="log")["content"].item() and rejected_reasons(reading) == [
        "no_messages"
    ]


def test_instructions_that_change_are_no_turns(tmp_path: Path) -> None:
    second = exchange([USER, {"role": "assistant", "content": "here"}, USER], answer("still here"))
    second["request"]["system"] = "be kind; it is ten o'clock"
    reading, made = log(tmp_path, [exchange([USER], answer("here")), second])
    assert [name for name, _ in spoken_turns(made)] == ["system", "user", "assistant", "user", "assistant"]
    assert reading.events.filter(kind="log").select("tool", "content").row(0) == ("instructions", "be kind; it is ten o'clock")


@pytest.mark.parametrize("as_text", [True, False])
def test_a_response_logged_as_its_stream(tmp_path: Path, as_text: bool) -> None:
    events = [{"type": "message_start", "message": answer([], usage={"input_tokens": 4, "output_tokens": 1})},
              {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
              {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "he"}},
              {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "re"}},
              {"type": "message_delta", "delta": {"stop_reason": "max_tokens"}, "usage": {"output_tokens": 9}},
              {"type": "message_stop"}]
    text = "".join(f"event: {each['type']}\ndata: {orjson.dumps(each).decode()}\n\n" for each in events)
    reading, made = log(tmp_path, [exchange([USER], text if as_text else events)])
    assert spoken_turns(made)[-1] == ("assistant", "here")
    last = reading.events.filter(role="assistant").to_dicts()[0]
    assert orjson.loads(last["usage"])["output_tokens"] == 9 and orjson.loads(last["lossy"]) == ["finish_reason length"]


def test_what_no_text_carries_is_named() -> None:
    image = {"type": "image", "source": {"type": "base64", "data": "aGk="}}
    content = [{"type": "text", "text": "see"}, image, {"type": "new", "x": 1}]
    [shown, odd] = anthropic_parts({"role": "user", "content": content})
    assert shown["content"] == "see" and shown["lossy"][0].startswith("part image sha256:")
    assert odd == {"kind": "log", "tool": "block new", "content": '{"type":"new","x":1}', "lossy": []}
    [thought, hidden] = anthropic_parts({"role": "assistant", "content": [
        {"type": "thinking", "thinking": "hm", "signature": "x"}, {"type": "redacted_thinking", "data": "zz"}]})
    assert (thought["kind"], thought["content"], hidden["kind"], hidden["content"]) == ("reasoning", "hm", "reasoning", None)


@given(value=JSON, place=st.lists(st.integers(0, 5), min_size=1, max_size=6))
def test_no_damage_makes_anything_vanish(value: Any, place: list[int]) -> None:
    whole = [orjson.loads(line) for line in FORMAT.sample().splitlines()]
    nothing_vanishes(FORMAT, [damaged(each, place, value) for each in whole] + [value])


def test_the_sample_gives_the_same_with_a_session_and_without(data: Path, tmp_path: Path) -> None:
    lines = (data / "format_samples/05_providers/anthropic_messages_log.jsonl").read_bytes().splitlines()
    named = [{**orjson.loads(line), "session_id": "s"} for line in lines]
    _, plain = log(tmp_path, b"\n".join(lines))
    _, event_rows = log(tmp_path, named)
    assert (
        spoken_turns(plain) == spoken_turns(event_rows)
        and event_rows.sessions["session_id"].to_list() == ["s"]
        and len(spoken_turns(plain)) == 14
    )
    assert plain.tools.filter(pl.col("declared")).height == 4
