from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors.formats.openai_conversation import FORMAT
from tests.extractors.formats.provider_reading import JSON, damaged, log, nothing_vanishes, rejected_reasons, spoken_turns


def words(role: str, text: str) -> dict[str, Any]:
    return {"id": f"m_{text}", "type": "message", "role": role, "content": [{"type": "input_text", "text": text}]}


ITEMS = [words("user", "a"), {"id": "f", "type": "function_call", "call_id": "c", "name": "find", "arguments": "{}"},
         {"id": "o", "type": "function_call_output", "call_id": "c", "output": "x"}, words("assistant", "A")]


@pytest.mark.parametrize("items", [ITEMS, ITEMS[::-1]])
def test_items_in_either_order(tmp_path: Path, items: list[Any]) -> None:
    _, made = log(tmp_path, [{"object": "list", "data": items, "has_more": False}])
    assert spoken_turns(made) == [("user", "a"), ("find", "x"), ("assistant", "A")]


def test_words_alone_are_told_from_the_user_on(tmp_path: Path) -> None:
    _, made = log(tmp_path, [{"object": "list", "data": [words("assistant", "A"), words("user", "a")]}])
    assert spoken_turns(made) == [("user", "a"), ("assistant", "A")]


def test_lists_are_conversations_of_their_own_with_what_they_do_not_know(tmp_path: Path) -> None:
    odd = {"type": "image_generation_call", "id": "i", "status": "completed", "result": "aGk="}
    lists: list[dict[str, Any]] = [{"data": [*ITEMS, odd]}, {"data": ITEMS, "session_id": "s"}, {"data": []}]
    reading, made = log(tmp_path, [{"object": "list", **each} for each in lists])
    assert made.sessions.height == 2 and "s" in made.sessions["session_id"].to_list()
    assert ("image_generation", "aGk=") in spoken_turns(made) and rejected_reasons(reading) == ["no_items"]
    assert made.turns["happened_at"].null_count() == made.turns.height


@given(value=JSON, place=st.lists(st.integers(0, 17), min_size=1, max_size=6))
def test_no_damage_makes_anything_vanish(value: Any, place: list[int]) -> None:
    nothing_vanishes(FORMAT, [damaged(orjson.loads(FORMAT.sample()), place, value), value])
