"""Traces that name no session."""

from __future__ import annotations

from extractors.formats.conversation import Generation, stitched
from extractors.formats.format import LogRecord

LONG = "an answer that is long enough to be known again"


def turn(number: int, *text: str) -> list[Generation]:
    parts = [{"kind": "message", "role": "assistant" if i % 2 else "user", "content": each, "lossy": []}
             for i, each in enumerate(text)]
    return [Generation(LogRecord("r", 1, None), f"g{number}", number, number + 1, prompt=parts[:-1], answers=[parts[-1:]])]


def test_a_turn_belongs_to_the_conversation_whose_end_it_begins_with() -> None:
    traces = {"c": turn(5, "one", LONG, "two", LONG + "2", "three", "bye"), "a": turn(1, "one", LONG),
              "b": turn(3, "one", LONG, "two", LONG + "2"), "other": turn(2, "uno", LONG),
              "later": turn(9, "uno", LONG, "dos", "x")}
    assert stitched(traces) == {"a": "a", "b": "a", "c": "a", "other": "other", "later": "other"}


def test_a_short_phrase_or_a_turn_before_joins_nothing() -> None:
    assert stitched({"a": turn(1, "hi", "hello"), "b": turn(2, "hi", "hello", "more", "yes")}) == {"a": "a", "b": "b"}
    assert stitched({"a": turn(5, "hi", LONG), "b": turn(2, "hi", LONG, "more", "yes")}) == {"a": "a", "b": "b"}
    assert stitched({"a": [], "b": turn(1, "x", "y")}) == {"b": "b"}
