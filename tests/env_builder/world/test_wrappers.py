"""Answers that something around the tools altered, told from the tools' own."""

from __future__ import annotations

import polars as pl

from env_builder.world.calls import LoggedCall, calls_of, unwrap_answers
from tests.env_builder.world.calls import call

OMITTED = "[withheld by the gateway]"


def logged(frame: tuple[str, str], tools: int, replaced: str = OMITTED) -> list[LoggedCall]:
    """Ten answers of each tool as it gave them, one of them once more in a frame, and one question answered by `replaced`."""
    calls: list[LoggedCall] = []
    for tool in (f"tool_{index}" for index in range(tools)):
        calls += [call(tool, {"n": n}, f"{tool} says {n}", f"s{n}") for n in range(10)]
        calls.append(call(tool, {"n": 1}, f"{frame[0]}{tool} says 1{frame[1]}", "framed"))
        calls.append(call(tool, {"n": 2}, replaced, "replaced"))
    return [one._replace(event_id=str(index)) for index, one in enumerate(calls)]


def test_takes_a_frame_off_and_leaves_what_was_replaced() -> None:
    kept, lost = unwrap_answers(logged(("<<", ">>"), 3))
    assert [one.content for one in lost] == [OMITTED] * 3
    assert {one.content for one in kept if one.session_id == "framed"} == {f"tool_{n} says 1" for n in range(3)}
    assert len(kept) + len(lost) == 36


def test_leaves_alone_what_only_two_tools_do() -> None:
    kept, lost = unwrap_answers(logged(("<<", ">>"), 2))
    assert not lost
    assert {one.content for one in kept if one.session_id == "framed"} == {f"<<tool_{n} says 1>>" for n in range(2)}


def test_a_text_that_tools_give_often_is_their_own() -> None:
    calls = logged(("", ""), 3)
    often = [one._replace(session_id=f"more {n}", event_id=f"{one.event_id} {n}") for one in calls for n in range(6)
             if one.content == OMITTED]
    assert unwrap_answers([*calls, *often])[1] == []


def test_short_words_that_many_tools_say_are_their_own() -> None:
    assert unwrap_answers(logged(("<<", ">>"), 3, replaced="None"))[1] == []


def test_nothing_where_a_tool_answers_with_objects_is_a_failure() -> None:
    answers = [("find", '{"door": 1}'), ("find", '{"door": 2}'), ("find", "null"), ("lock", "null"), ("lock", "null")]
    turns = pl.DataFrame([
        {"session_id": "s", "position": n, "kind": "call", "tool": tool, "arguments": "{}", "content": content,
         "is_error": None, "happened_at": None, "result_id": None, "turn_id": str(n)}
        for n, (tool, content) in enumerate(answers)])
    assert [each.failed for each in calls_of(turns)] == [False, False, True, False, False]
    flagged = turns.with_columns((pl.col("position") == 0).alias("is_error"))
    assert [each.failed for each in calls_of(flagged)] == [True, False, False, False, False], "the log says itself what failed"
