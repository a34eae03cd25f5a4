"""What an answer is expected to open by what it teaches: sessions like it, and less once another like it was asked."""

from __future__ import annotations

import pytest

from pipelines.reviewing.teaching import Lesson

TRAITS = {"a": frozenset({("end", "same")}), "b": frozenset({("end", "same")}), "c": frozenset({("end", "same")})}
CHANCES = {"a": 0.5, "b": 0.5, "c": 0.5, "far": 0.5}
OPENS = {"b": ["task_b"], "far": ["task_far"]}


def test_an_answer_opens_what_is_like_its_session_more_than_what_is_not() -> None:
    opened = Lesson(CHANCES, TRAITS, ["a", "far"], OPENS).opened("a")
    assert 0.0 < opened["task_far"] < opened["task_b"] < 1.0


def test_a_second_answer_on_the_same_end_teaches_less() -> None:
    lesson = Lesson(CHANCES, TRAITS, ["a", "c"], OPENS)
    before = lesson.opened("c")["task_b"]
    lesson.learn("a")
    assert 0.0 < lesson.opened("c")["task_b"] < before


@pytest.mark.parametrize("asked", [[], ["a"]])
def test_without_open_tasks_nothing_is_opened(asked: list[str]) -> None:
    lesson = Lesson(CHANCES, TRAITS, asked, {})
    assert all(lesson.opened(name) == {} for name in asked)
