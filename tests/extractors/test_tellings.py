"""One conversation told by several files and formats: once, with what each knows more."""

from __future__ import annotations

import random
from typing import Any

import polars as pl
import pytest

from extractors.sessions import AssembledSessions, assemble
from warehouse.records import Event, frame

T0 = 1_772_446_500_000_000


def told(log_format: str, file_id: str, *parts: dict[str, Any], session_id: str | None = "s", at: int | None = None
         ) -> list[dict[str, Any]]:
    """Events of one file: parts in order."""
    return [dict.fromkeys(Event.model_fields) | {
        "event_id": f"{file_id}-{number:03d}", "record_id": f"{file_id}-r", "file_id": file_id, "source": "main",
        "format": log_format, "session_id": session_id, "position": number,
        "happened_at": None if at is None else T0 + at + number * 1000, **part} for number, part in enumerate(parts)]


def said(role: str, content: str) -> dict[str, Any]:
    return {"kind": "message", "role": role, "content": content}


def call(call_id: str | None, arguments: str = "{}", **more: Any) -> dict[str, Any]:
    return {"kind": "call", "role": "assistant", "tool": "open", "call_id": call_id, "arguments": arguments, **more}


def result(call_id: str | None, content: str | None, **more: Any) -> dict[str, Any]:
    return {"kind": "result", "call_id": call_id, "content": content, **more}


TALK = [said("user", "open the door"), call("c1", '{"door": 1}'), result("c1", "it is stuck"),
        said("assistant", "It is stuck.")]
SPANS = [call("c1"), result("c1", None, is_error=True)]


def made_of(*tellings: list[dict[str, Any]], seed: int | None = None) -> AssembledSessions:
    rows = [row for telling in tellings for row in telling]
    if seed is not None:
        random.Random(seed).shuffle(rows)
    events = frame(Event, [{**row, "happened_at": None} for row in rows]).with_columns(
        pl.Series("happened_at", [row["happened_at"] for row in rows], pl.Int64()).cast(pl.Datetime("us")).dt.replace_time_zone(
            "UTC"))
    return assemble(events)


@pytest.mark.parametrize("formats", [("logs", "spans"), ("spans", "logs"), ("x", "x"), ("otlp", "otlp")])
@pytest.mark.parametrize("first", [0, 60_000_000])
def test_spans_fill_in_times_and_errors_of_a_talk(formats: tuple[str, str], first: int) -> None:
    talk, spans = told(formats[0], "a", *TALK), told(formats[1], "b", *SPANS, at=first)
    made = made_of(talk, spans)
    assert made.sessions["session_id"].to_list() == ["s"] and made.turns["kind"].to_list() == ["message", "call", "message"]
    [row] = made.turns.filter(kind="call").to_dicts()
    assert (row["content"], row["is_error"], row["arguments"]) == ("it is stuck", True, '{"door":1}')
    assert row["happened_at"] is not None and row["answered_at"] is not None
    assert made.decisions.filter(~pl.col("kept"))["reason"].to_list() in (["duplicate_session"], ["repeated_history"])
    for seed in range(3):
        assert made_of(talk, spans, seed=seed).turns.equals(made.turns)


def test_what_the_log_says_is_not_overwritten() -> None:
    talk = [*TALK[:2], {**TALK[2], "is_error": False}, TALK[3]]
    [row] = made_of(told("logs", "a", *talk), told("spans", "b", *SPANS)).turns.filter(kind="call").to_dicts()
    assert row["is_error"] is False


def test_answers_alone_join_the_talk_and_go_on_after_it() -> None:
    answers = [TALK[1], TALK[3], said("assistant", "Anything else?")]
    made = made_of(told("x", "a", *TALK), told("x", "b", *answers, at=0))
    assert made.sessions.height == 1
    said_so = made.turns.sort("position")["content"].to_list()
    assert said_so == ["open the door", "it is stuck", "It is stuck.", "Anything else?"]


def test_two_formats_that_tell_nothing_in_common_are_two_conversations() -> None:
    made = made_of(told("x", "a", *TALK), told("y", "b", said("user", "where is my lamp"), said("assistant", "At the shop.")))
    assert sorted(made.sessions["n_messages"]) == [2, 2]
    assert made.decisions.filter(reason="shared_session_id").height == 1


def test_calls_without_a_word_in_two_files_are_one_session_in_order_of_time() -> None:
    made = made_of(told("mcp", "b", call("1", '{"n": 2}'), result("1", "two"), at=5_000_000),
                   told("mcp", "a", call("1", '{"n": 1}'), result("1", "one"), at=0))
    assert made.sessions.height == 1 and made.turns["content"].to_list() == ["one", "two"]


def test_steps_in_files_of_their_own_are_one_conversation() -> None:
    steps = [told("x", f"f{number}", part, session_id=None, at=number * 1_000_000) for number, part in enumerate(TALK)]
    made = made_of(*steps, seed=3)
    assert made.sessions.height == 1 and made.turns["kind"].to_list() == ["message", "call", "message"]
    assert made.turns["content"].to_list() == ["open the door", "it is stuck", "It is stuck."]


def test_exchanges_in_files_of_their_own_are_joined_by_their_history() -> None:
    """They are no steps: each holds what was asked and what was answered."""
    first, second = [TALK[0], said("assistant", "Yes?")], [TALK[0], said("assistant", "Yes?"), said("user", "now")]
    made = made_of(told("x", "a", *first, session_id=None, at=0), told("x", "b", *second, session_id=None, at=9_000_000))
    assert made.turns["content"].to_list() == ["open the door", "Yes?", "now"]
