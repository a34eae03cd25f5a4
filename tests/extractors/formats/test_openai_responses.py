from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from extractors.formats.openai_responses import FORMAT
from extractors.formats.provider_parts import responses_parts
from tests.extractors.formats.provider_reading import JSON, damaged, log, logs, nothing_vanishes, rejected_reasons, spoken_turns


def exchange(number: int, text: str, answer: str | list[Any], previous: int | None = None, **fields: Any) -> dict[str, Any]:
    output = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": answer}]}] if isinstance(
        answer, str) else answer
    before = None if previous is None else f"r{previous}"
    return {"request": {"input": text, "previous_response_id": before, **fields.pop("request", {})},
            "response": {"id": f"r{number}", "object": "response", "created_at": 1772446500.5 + number, "model": "m",
                         "status": "completed", "output": output, **fields}}


def test_a_chain_is_rebuilt_from_what_each_request_brings(tmp_path: Path) -> None:
    call = {"type": "function_call", "call_id": "c", "id": "fc_1", "name": "find", "arguments": '{"id":7}'}
    thought = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "look it up"}], "encrypted_content": "xx"}
    output = {"type": "function_call_output", "call_id": "c", "output": "x"}
    records = [exchange(1, "where?", [thought, call]), exchange(2, "", "There.", 1, request={"input": [output]}),
               exchange(3, "thanks", "Bye.", 2)]
    reading, made = log(tmp_path, records)
    assert spoken_turns(made) == [
        ("user", "where?"),
        ("find", "x"),
        ("assistant", "There."),
        ("user", "thanks"),
        ("assistant", "Bye."),
    ]
    assert reading.events.filter(kind="reasoning").select("content", "lossy").rows() == [
        ("look it up", '["encrypted_content"]')]
    assert made.turns["is_error"].to_list()[1] is None, "the log does not say"


def test_a_replayed_history_is_read_once(tmp_path: Path) -> None:
    first = exchange(1, "", "Hi.", request={"input": [{"role": "user", "content": "hello"}]})
    replayed = [{"role": "user", "content": "hello"}, {"type": "reasoning", "encrypted_content": "x", "summary": []},
                *first["response"]["output"], {"role": "user", "content": "more"}]
    _, made = log(tmp_path, [first, exchange(2, "", "More.", request={"input": replayed})])
    assert spoken_turns(made) == [("user", "hello"), ("assistant", "Hi."), ("user", "more"), ("assistant", "More.")]


def test_two_answers_to_one_response_are_a_retry(tmp_path: Path) -> None:
    _, made = log(tmp_path, [exchange(1, "a", "A"), exchange(2, "b", "B", 1), exchange(3, "b, I mean c", "C", 1)])
    stories = sorted([spoken_turns(made, each) for each in made.sessions["session_id"]], key=len)
    assert [("user", "a"), ("assistant", "A"), ("user", "b, I mean c"), ("assistant", "C")] in stories


def test_a_conversation_that_the_server_keeps(tmp_path: Path) -> None:
    kept = {"conversation": {"id": "conv_1"}}
    _, made = log(tmp_path, [exchange(1, "a", "A", **kept), exchange(2, "b", "B", **kept), exchange(1, "a", "A", **kept)])
    assert made.sessions["session_id"].to_list() == ["conv_1"]
    assert [text for _, text in spoken_turns(made)] == ["a", "A", "b", "B"]


def test_a_chain_goes_on_in_another_file_in_any_order(tmp_path: Path) -> None:
    begun = [exchange(1, "a", "A", metadata={"session_id": "s"})]
    gone_on = [exchange(2, "b", "B", 1), exchange(3, "c", "C", 2)]
    for files in ({"1": begun, "2": gone_on}, {"2": gone_on, "1": begun}):
        made = logs(tmp_path, files)
        assert made.sessions["session_id"].to_list() == ["s"]
        assert [text for _, text in spoken_turns(made)] == ["a", "A", "b", "B", "c", "C"]


def test_bare_responses_and_polls(tmp_path: Path) -> None:
    queued = exchange(1, "", [])["response"] | {"status": "queued"}
    done = exchange(1, "", "A")["response"] | {"instructions": "be kind", "status": "incomplete",
                                               "incomplete_details": {"reason": "max_output_tokens"}}
    reading, made = log(tmp_path, [queued, done, done, {"id": 1}])
    assert spoken_turns(made) == [("system", "be kind"), ("assistant", "A")]
    assert rejected_reasons(reading) == ["no_answer", "duplicate_response", "no_response"]
    notes = orjson.loads(reading.events.filter(role="assistant")["lossy"].item())
    assert notes == ["finish_reason length", "input not captured"]


def test_calls_that_the_server_ran() -> None:
    [call, result] = responses_parts({"type": "mcp_call", "id": "m1", "name": "find", "server_label": "x", "arguments": "{}",
                            "output": None, "error": "no such thing"})
    assert (call["kind"], call["tool"], call["call_id"]) == ("call", "find", "m1")
    assert (result["content"], result["is_error"], result["call_id"]) == ("no such thing", True, "m1")
    [search] = responses_parts({"type": "web_search_call", "id": "w", "status": "completed", "action": {"query": "x"}})
    assert (search["tool"], search["arguments"]) == ("web_search", '{"query":"x"}')
    [odd] = responses_parts({"type": "compaction", "encrypted_content": "zz"})
    assert odd["kind"] == "log" and "zz" in odd["content"]


@given(value=JSON, place=st.lists(st.integers(0, 7), min_size=1, max_size=6))
def test_no_damage_makes_anything_vanish(value: Any, place: list[int]) -> None:
    whole = [orjson.loads(line) for line in FORMAT.sample().splitlines()]
    nothing_vanishes(FORMAT, [damaged(each, place, value) for each in whole] + [value])
