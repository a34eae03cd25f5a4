from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from extractors.formats.codex_rollout import FORMAT
from tests.extractors.formats.provider_reading import JSON, damaged, log, nothing_vanishes, rejected_reasons, spoken_turns


def row(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-03-02T10:00:00Z", "type": kind, "payload": payload}


def words(role: str, text: str) -> dict[str, Any]:
    part = "output_text" if role == "assistant" else "input_text"
    return row("response_item", type="message", role=role, content=[{"type": part, "text": text}])


def called(call_id: str) -> dict[str, Any]:
    return row("response_item", type="function_call", name="run", arguments='{"x":1}', call_id=call_id)


def output(call_id: str, text: Any) -> dict[str, Any]:
    return row("response_item", type="function_call_output", call_id=call_id, output=text)


def count(total: int, out: int) -> dict[str, Any]:
    return row("event_msg", type="token_count", info={
        "total_token_usage": {"total_tokens": total}, "last_token_usage": {"input_tokens": 7, "output_tokens": out}})


META = row("session_meta", id="s", base_instructions={"text": "be kind"})


def test_what_the_screen_showed_is_read_once(tmp_path: Path) -> None:
    records = [META, row("turn_context", model="m"), words("user", "<environment_context>\n x\n</environment_context>"),
               words("user", "go"), row("event_msg", type="user_message", message="go"), words("assistant", "gone"),
               row("event_msg", type="agent_message", message="gone"), row("event_msg", type="odd", x=1)]
    reading, made = log(tmp_path, records)
    assert spoken_turns(made) == [("system", "be kind"), ("user", "go"), ("assistant", "gone")]
    assert made.sessions["session_id"].to_list() == ["s"] and made.turns["model"].to_list()[-1] == "m"
    assert "harness" in reading.events["tool"].to_list() and rejected_reasons(reading) == []
    assert set(reading.events["record_id"]) == set(reading.records["record_id"])


def test_a_tag_that_the_user_typed_is_the_users(tmp_path: Path) -> None:
    typed = "<b>bold</b>"
    _, made = log(tmp_path, [META, words("user", typed), row("event_msg", type="user_message", message=typed)])
    assert spoken_turns(made)[-1] == ("user", typed)


def test_errors_and_durations_of_calls(tmp_path: Path) -> None:
    ends = [row("event_msg", type="exec_command_end", call_id="a", exit_code=2, duration={"secs": 1, "nanos": 500_000_000}),
            row("event_msg", type="mcp_tool_call_end", call_id="b", result={"Ok": {"content": [], "isError": False}}),
            row("event_msg", type="mcp_tool_call_end", call_id="c", result={"Err": "gone"}),
            row("event_msg", type="patch_apply_end", call_id="d", success=True)]
    old = '{"output":"x","metadata":{"exit_code":1}}'
    records = [META, *map(called, "abcdef"), *ends, *(output(each, "x") for each in "abcd"), output("e", old), output("f", "y")]
    _, made = log(tmp_path, records)
    calls = made.turns.filter(kind="call")
    assert calls["is_error"].to_list() == [True, False, True, False, True, None]
    assert calls["latency_ms"].to_list()[0] == 1500 and calls["content"].to_list()[4] == old


def test_each_answer_is_counted_once(tmp_path: Path) -> None:
    records = [META, words("user", "go"), called("a"), output("a", "x"), count(10, 3), count(10, 3), words("assistant", "gone"),
               count(30, 5), row("event_msg", type="token_count", info=None)]
    reading, _ = log(tmp_path, records)
    counted = reading.events.filter(pl.col("usage").is_not_null())
    assert counted["kind"].to_list() == ["call", "message"]
    assert [orjson.loads(each)["output_tokens"] for each in counted["usage"]] == [3, 5]


def test_turns_rolled_back_are_not_taken(tmp_path: Path) -> None:
    records = [META, words("user", "one"), words("assistant", "1"), words("user", "two"), called("a"), output("a", "x"),
               words("assistant", "2"), row("event_msg", type="thread_rolled_back", num_turns=1), words("user", "three")]
    reading, made = log(tmp_path, records)
    assert [each for _, each in spoken_turns(made)] == ["be kind", "one", "1", "three"]
    assert reading.events.filter(pl.col("lossy").str.contains("rolled back")).height == 4


def test_the_shape_before_envelopes(tmp_path: Path) -> None:
    records = [{"id": "s", "timestamp": "2025-05-01T10:00:00Z", "instructions": None, "git": {}},
               {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
               {"record_type": "state"}, called("a")["payload"], output("a", "x")["payload"],
               {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "gone"}]}]
    reading, made = log(tmp_path, records)
    assert reading.file.format == "codex" and made.sessions["session_id"].to_list() == ["s"]
    assert spoken_turns(made) == [("user", "go"), ("run", "x"), ("assistant", "gone")]


@given(value=JSON, place=st.lists(st.integers(0, 9), min_size=1, max_size=6), number=st.integers(0, 47))
def test_no_damage_makes_anything_vanish(value: Any, place: list[int], number: int) -> None:
    whole = [orjson.loads(each) for each in FORMAT.sample().splitlines()]
    whole[number % len(whole)] = damaged(whole[number % len(whole)], place, value)
    nothing_vanishes(FORMAT, [*whole, value])
