"""Families that are served otherwise since a sentence of the instructions changed; no others."""

from __future__ import annotations

from env_builder.audit.reinstructed import Reinstructed, ServedTask, reinstructed
from tests.env_builder.audit.test_outdated import task

OLD, NEW = "Close boxes when asked.", "Never close boxes."
CALLS, NONE = [{"tool": "close", "arguments": {"box": "b1"}}], [{"say": "I may not."}]


def at(number: int) -> str:
    return f"2026-03-01T08:{number:02}:00.000000Z"


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


def test_without_a_changed_sentence_or_enough_evidence_nothing_is_found() -> None:
    assert hall("c" * 20 + "-" * 12, "o" * 32, [NEW]) == [], "it says the same on both sides"
    assert hall("c" * 20 + "-" * 12, "o" * 20 + "n" * 12, []) == [], "no sentence changed"
    assert hall("c" * 20 + "-" * 12, "o" * 25 + "n" * 7, [NEW]) == [], "it changed elsewhere"
    assert hall("c" * 20 + "-" * 9, "o" * 20 + "n" * 9, [NEW]) == [], "few since"
    assert hall("c-" * 10 + "-" * 12, "o" * 20 + "n" * 12, [NEW]) == [], "half were refused before"
    assert hall("c" * 20 + "c-" * 6, "o" * 20 + "n" * 12, [NEW]) == [], "some are done since"
