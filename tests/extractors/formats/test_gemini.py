from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors.formats.gemini import FORMAT, parts
from tests.extractors.formats.provider_reading import JSON, damaged, log, nothing_vanishes, rejected_reasons, spoken_turns

USER = {"role": "user", "parts": [{"text": "where?"}]}


def exchange(contents: list[Any], answers: list[list[Any]], **fields: Any) -> dict[str, Any]:
    return {"request": {"contents": contents}, "response": {"createTime": "2026-03-02T10:00:00Z", "candidates": [
        {"content": {"role": "model", "parts": each}, "finishReason": "STOP"} for each in answers], **fields}}


def test_calls_without_ids_are_paired_by_name_and_order(tmp_path: Path) -> None:
    calls = [{"functionCall": {"name": "find", "args": {"id": n}}} for n in (1, 2)] + [{"functionCall": {"name": "ask"}}]
    results = [{"functionResponse": {"name": "ask", "response": {"error": "no", "code": 4}}},
               {"functionResponse": {"name": "find", "response": {"output": "one"}}},
               {"functionResponse": {"name": "find", "response": {"id": 2}}}]
    history = [USER, {"role": "model", "parts": calls}, {"role": "user", "parts": results}]
    _, made = log(tmp_path, [exchange([USER], [calls]), exchange(history, [[{"text": "done"}]])])
    assert spoken_turns(made) == [("user", "where?"), ("find", "one"), ("find", '{"id":2}'), ("ask", '{"error":"no","code":4}'),
                          ("assistant", "done")]
    assert made.turns.filter(kind="call").select("arguments", "is_error").rows() == [
        ('{"id":1}', False), ('{"id":2}', False), ("{}", True)]


def test_snake_case_thoughts_and_candidates(tmp_path: Path) -> None:
    record = exchange([USER], [[{"text": "hm", "thought": True}, {"text": "A"}], [{"text": "B"}]], usage_metadata={
        "prompt_token_count": 10, "candidates_token_count": 3, "thoughts_token_count": 4, "cached_content_token_count": 6})
    record["request"]["system_instruction"] = {"parts": [{"text": "be kind"}]}
    reading, made = log(tmp_path, [record])
    assert spoken_turns(made) == [("system", "be kind"), ("user", "where?"), ("assistant", "A")]
    assert reading.events.select("kind", "content").rows()[2:] == [("reasoning", "hm"), ("message", "A"), ("message", "B")]
    [usage] = reading.events["usage"].drop_nulls()
    assert orjson.loads(usage) == {"input_tokens": 10, "output_tokens": 7, "cached_tokens": 6, "reasoning_tokens": 4}


@pytest.mark.parametrize("as_text", [True, False])
def test_a_stream_of_partial_responses(tmp_path: Path, as_text: bool) -> None:
    pieces = [exchange([], [[{"text": text}]])["response"] for text in ("he", "re")]
    pieces[-1]["candidates"][0]["finishReason"] = "MAX_TOKENS"
    stream = "".join(f"data: {orjson.dumps(each).decode()}\r\n\r\n" for each in pieces) if as_text else pieces
    reading, made = log(tmp_path, [{"request": {"contents": [USER]}, "response": stream}])
    assert spoken_turns(made)[-1] == ("assistant", "here")
    assert reading.events["lossy"].to_list()[-1] == '["finish_reason length"]'


def test_declared_types_are_those_of_json_schema(tmp_path: Path) -> None:
    record = exchange([USER], [[{"text": "A"}]])
    record["request"]["tools"] = [{"functionDeclarations": [
        {"name": "find", "parameters": {"type": "OBJECT", "properties": {"type": {"type": "STRING"}}}}]}]
    reading, made = log(tmp_path, [record])
    assert orjson.loads(made.tools["input_schema"].item() if made.tools.height else reading.declarations["input_schema"].item(
    )) == {"type": "object", "properties": {"type": {"type": "string"}}}


def test_blocked_and_empty_answers_leave_what_was_asked(tmp_path: Path) -> None:
    blocked = {"request": {"contents": [USER]}, "response": {"promptFeedback": {"blockReason": "SAFETY"}}}
    reading, made = log(tmp_path, [blocked, {"request": {"contents": []}}])
    assert spoken_turns(made) == [("user", "where?")] and rejected_reasons(reading) == ["no_contents"]
    assert "SAFETY" in reading.events.filter(kind="log")["content"].item()


def test_code_that_ran_and_files_that_were_shown() -> None:
    rows = parts({"role": "model", "parts": [
        {"executableCode": {"language": "PYTHON", "code": "1"}}, {"codeExecutionResult": {"outcome": "OUTCOME_FAILED"}},
        {"inline_data": {"mime_type": "image/png", "data": "aGk="}}, {"new": 1}]})
    assert [each["kind"] for each in rows] == ["call", "result", "message", "log"]
    assert rows[0]["tool"] == rows[1]["tool"] and rows[1]["is_error"] is True
    assert rows[2]["lossy"][0].startswith("part inlineData sha256:")


@given(value=JSON, place=st.lists(st.integers(0, 7), min_size=1, max_size=7))
def test_no_damage_makes_anything_vanish(value: Any, place: list[int]) -> None:
    whole = [orjson.loads(line) for line in FORMAT.sample().splitlines()]
    nothing_vanishes(FORMAT, [damaged(each, place, value) for each in whole] + [value])
