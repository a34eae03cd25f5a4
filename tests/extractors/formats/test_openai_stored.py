from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from extractors.formats.openai_stored import FORMAT
from tests.extractors.formats.provider_reading import JSON, damaged, log, logs, nothing_vanishes, rejected_reasons, spoken_turns


def completion(number: int, *answers: str, session: str | None = "s") -> dict[str, Any]:
    return {"id": f"c{number}", "object": "chat.completion", "created": 1772446500 + number, "model": "m",
            "choices": [{"index": i, "message": {"role": "assistant", "content": each}, "finish_reason": "stop"}
                        for i, each in enumerate(answers)],
            "usage": {"prompt_tokens": 5, "completion_tokens": number}, "metadata": {"session_id": session} if session else {}}


def listed(*actual: Any) -> dict[str, Any]:
    return {"object": "list", "data": list(actual), "has_more": False}


def page(number: int, *said_so_far: tuple[str, str]) -> dict[str, Any]:
    return listed(*({"id": f"c{number}-{i}", "role": role, "content": text} for i, (role, text) in enumerate(said_so_far)))


PROMPT = [("user", "a"), ("assistant", "A"), ("user", "b")]


def test_a_page_and_a_list_are_one_conversation_in_any_order(tmp_path: Path) -> None:
    answers, prompt = [listed(completion(2, "B"), completion(1, "A"))], [page(2, *PROMPT)]
    for files in ({"1": answers, "2": prompt}, {"2": prompt, "1": answers}):
        made = logs(tmp_path, files)
        assert spoken_turns(made) == [*PROMPT, ("assistant", "B")] and made.sessions["session_id"].to_list() == ["s"]
        times = made.turns.sort("position")["happened_at"].to_list()
        assert times[0] is None and times[1] < times[3], "the list dates answers; nothing dates questions"


def test_an_earlier_page_holds_what_it_holds(tmp_path: Path) -> None:
    made = logs(tmp_path, {"list": [listed(*(completion(n, text) for n, text in enumerate("AB", 1)))],
                           "page": [page(1, ("user", "a"))]})
    assert ("assistant", "B") in [turn for each in made.sessions["session_id"] for turn in spoken_turns(made, each)]


def test_answers_alone_say_that_their_input_is_not_known(tmp_path: Path) -> None:
    reading, made = log(tmp_path, [completion(2, "B"), completion(1, "A", "A2")])
    assert spoken_turns(made) == [("assistant", "A"), ("assistant", "B")]
    notes = [orjson.loads(each) for each in reading.events["lossy"].drop_nulls()]
    assert sorted(map(len, notes)) == [1, 1, 2] and all("input not captured" in each for each in notes)
    assert [orjson.loads(each)["output_tokens"] for each in reading.events["usage"].drop_nulls()] == [1, 2]


def test_without_metadata_the_completion_names_the_session(tmp_path: Path) -> None:
    made = logs(tmp_path, {"list": [listed(completion(2, "B", session=None))], "page": [page(2, ("user", "b"))]})
    assert made.sessions["session_id"].to_list() == ["trace:c2"]


def test_pages_in_several_records_and_parts_of_content(tmp_path: Path) -> None:
    first, second = page(3, ("user", "a"), ("assistant", "A")), page(3, ("user", "x"), ("user", "y"), ("user", "b"))
    second["data"] = second["data"][2:]
    second["data"][0] |= {"content": None, "content_parts": [{"type": "text", "text": "b"}, {"type": "image_url"}]}
    reading, made = log(tmp_path, [first, second, {"object": "list", "data": []}])
    assert spoken_turns(made) == PROMPT and rejected_reasons(reading) == ["no_data"]
    assert "part image_url" in reading.events["lossy"].to_list()[-1]


@given(value=JSON, place=st.lists(st.integers(0, 7), min_size=1, max_size=7))
def test_no_damage_makes_anything_vanish(value: Any, place: list[int]) -> None:
    nothing_vanishes(FORMAT, [damaged(orjson.loads(FORMAT.sample()), place, value), value])
