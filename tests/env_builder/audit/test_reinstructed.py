"""Families that are served otherwise since a sentence of the instructions changed; no others."""

from __future__ import annotations

import pytest

from env_builder.audit.reinstructed import NamedPart, Reinstructed, ServedTask, reinstructed
from tests.env_builder.audit.test_outdated import task

OLD, NEW = "Close boxes when asked.", "Never close boxes."
CALLS, NONE = [{"tool": "close", "arguments": {"box": "b1"}}], [{"say": "I may not."}]


def at(number: int) -> str:
    return f"2026-03-01T{8 + number // 60:02}:{number % 60:02}:00.000000Z"


def hall(calls: str, texts: str, sentences: list[str]) -> list[Reinstructed]:
    """Return the changes of a family of one task a letter. `calls`: `c` calls the tool; `texts`: the instructions are the old
    ones (`o`) or the new ones (`n`)."""
    served = [ServedTask("f", at(number), frozenset({"look", "close"} if call == "c" else {"look"}),
                         f"You serve a hall. {OLD if text == 'o' else NEW} Guest {number} calls.")
              for number, (call, text) in enumerate(zip(calls, texts, strict=True))]
    return reinstructed(served, sentences).get("f", [])


def test_a_family_that_is_refused_since_a_sentence_changed_is_found() -> None:
    assert hall("c" * 20 + "-" * 12, "o" * 20 + "n" * 12, [NEW, OLD]) == [
        Reinstructed("close", at(19), at(20), OLD, False, False)]
    [change] = hall("c" * 20 + "-" * 12, "o" * 20 + "n" * 12, [NEW])
    assert change.is_said and change.sentence == NEW
    assert change.speaks_against(task(at(19)), CALLS) and not change.speaks_against(task(at(20)), CALLS)
    assert not change.speaks_against(task(at(3)), NONE) and not change.speaks_against(task(None), CALLS)


def test_what_was_refused_and_is_done_since_is_found_too() -> None:
    [change] = hall("--c" + "-" * 25 + "c" * 12, "o" * 28 + "n" * 12, [NEW])
    assert (change.is_called, change.last) == (True, at(27))
    assert change.speaks_against(task(at(3)), NONE) and not change.speaks_against(task(at(3)), CALLS)


def of_boxes(words: str, calls: str, sentence: str) -> list[Reinstructed]:
    """Return the changes of a family of one task a word, twenty of them with the old instructions. `calls`: as in `hall`."""
    tools = [frozenset({"close"} if call == "c" else ()) for call in calls]
    served = [ServedTask("f", at(number), own, OLD if number < 20 else f"{OLD} {sentence}", f"Close {word} please.")
              for number, (word, own) in enumerate(zip(words.split(), tools, strict=True))]
    return reinstructed(served, [sentence]).get("f", [])


@pytest.mark.parametrize(("sentence", "words", "calls", "part", "inside", "outside"), [
    ("Close at most 3 boxes.", "2-boxes 5-boxes " * 10 + "5-boxes 2-boxes 3-boxes 4-boxes " * 8, "c" * 20 + "-cc-" * 8,
     NamedPart("", "boxe", 3, True, False), "4 boxes", "3 boxes"),
    ("Close at most 3 boxes.", "2-boxes 5-boxes " * 10 + "5-boxes 2-boxes " * 8, "c" * 20 + "-c" * 8,
     NamedPart("", "boxe", 3, True, True), "3 boxes", "2 boxes"),
    ("Blue ones stay open.", "red blue " * 10 + "blue red " * 8, "c" * 20 + "-c" * 8, NamedPart("blue"), "blue", "red")])
def test_a_part_of_a_family_is_found_by_what_the_sentence_counts_or_names(
    sentence: str, words: str, calls: str, part: NamedPart, inside: str, outside: str,
) -> None:
    [change] = of_boxes(words, calls, sentence)
    assert (change.part, change.tool, change.is_called) == (part, "close", False)
    for text, is_stale in ((inside, True), (outside, False), ("some", False)):
        one = task(at(3))._replace(opening=({"role": "user", "content": f"Close {text}."},))
        assert change.speaks_against(one, CALLS) == is_stale


def test_a_part_that_the_sentence_does_not_name_is_not_guessed() -> None:
    assert of_boxes("red blue " * 10 + "blue red " * 8, "c" * 20 + "-c" * 8, "Some stay open.") == []
    assert of_boxes("blue blue " * 10 + "blue blue " * 8, "c" * 20 + "-c" * 8, "Blue ones stay open.") == []


def test_without_a_changed_sentence_or_enough_evidence_nothing_is_found() -> None:
    assert hall("c" * 20 + "-" * 12, "o" * 32, [NEW]) == [], "it says the same on both sides"
    assert hall("c" * 20 + "-" * 12, "o" * 20 + "n" * 12, []) == [], "no sentence changed"
    assert hall("c" * 20 + "-" * 12, "o" * 25 + "n" * 7, [NEW]) == [], "it changed elsewhere"
    assert hall("c" * 40 + "-" * 4, "o" * 40 + "n" * 4, [NEW]) == [], "few since"
    assert hall("c" * 20 + "-" * 5, "o" * 20 + "n" * 5, [NEW]) == [], "chance may explain five after twenty"
    assert hall("c-" * 10 + "-" * 12, "o" * 20 + "n" * 12, [NEW]) == [], "half were refused before"
    assert hall("c" * 20 + "c-" * 6, "o" * 20 + "n" * 12, [NEW]) == [], "some are done since"
