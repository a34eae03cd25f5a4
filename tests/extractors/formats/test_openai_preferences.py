from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from extractors.formats.openai_preferences import FORMAT
from tests.extractors.formats.provider_reading import JSON, damaged, log, nothing_vanishes, rejected_reasons, spoken_turns

PROMPT = {"messages": [{"role": "user", "content": "q"}], "tools": [{"type": "function", "function": {"name": "f"}}]}


def answer(text: str) -> list[dict[str, Any]]:
    return [{"role": "assistant", "content": text}]


def test_both_answers_are_kept_and_the_preferred_one_goes_on(tmp_path: Path) -> None:
    pairs = [{"input": PROMPT, "preferred_output": answer(f"good {n}"), "non_preferred_output": answer(f"bad {n}")}
             for n in range(2)]
    reading, made = log(tmp_path, pairs)
    assert made.sessions.height == 2
    assert sorted(text or "" for _, text in spoken_turns(made)) == ["good 0", "good 1", "q", "q"]
    others = reading.events.filter(content="bad 0").to_dicts()[0]
    preferred = reading.events.filter(content="good 0").to_dicts()[0]
    assert orjson.loads(others["lossy"]) == ["candidate 1", "not preferred"] and preferred["lossy"] is None
    assert others["position"] == preferred["position"] == 1
    assert made.feedback.select("name", "value").unique().rows() == [("preference", "preferred")]
    assert made.feedback["session_id"].n_unique() == 2 and reading.declarations["tool"].to_list() == ["f"]


def test_older_names_and_texts(tmp_path: Path) -> None:
    prompt, bad = {"messages": PROMPT["messages"]}, {"content": "bad"}
    reading, made = log(tmp_path, [
        {"input": prompt, "preferred_completion": "good", "non_preferred_completion": bad},
        {"input": "q", "preferred_output": [], "non_preferred_output": answer("bad")}, {"input": "q"}])
    assert spoken_turns(made, made.sessions.sort("n_messages")["session_id"].to_list()[-1]) == [
        ("user", "q"),
        ("assistant", "good"),
    ]
    assert rejected_reasons(reading) == ["no_preference"]
    assert reading.events.filter(kind="feedback")["value"].to_list() == ["preferred", "not preferred"]


@given(value=JSON, place=st.lists(st.integers(0, 5), min_size=1, max_size=6))
def test_no_damage_makes_anything_vanish(value: Any, place: list[int]) -> None:
    nothing_vanishes(FORMAT, [damaged(orjson.loads(FORMAT.sample()), place, value), value])
