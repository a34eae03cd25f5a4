"""Phrases that are exchanged never overlap, so that texts come back."""

from __future__ import annotations

from itertools import cycle

from hypothesis import given
from hypothesis import strategies as st

from env_builder.runtime.phrases import PhraseExchange, is_phrase, separable

WORDS = st.sampled_from(["a", "b", "c", "B", "a-b", "b,", "a."])
PHRASES = st.sets(st.lists(WORDS, min_size=2, max_size=4).map(" ".join), max_size=8)


@given(PHRASES, st.lists(st.one_of(WORDS, st.sampled_from([" ", "+", "%20", "-", "\\n"])), max_size=16).map("".join))
def test_texts_with_separable_phrases_come_back(phrases: set[str], text: str) -> None:
    kept = sorted(separable(phrases))
    turned = cycle(kept)
    next(turned, None)
    exchange = PhraseExchange(dict(zip(kept, turned, strict=False)))
    assert exchange.shown(exchange.shown(text), back=True) == text
    assert exchange.shown(exchange.shown(text, back=True)) == text


def test_a_phrase_that_is_a_part_of_others_or_overlaps_is_left_out() -> None:
    assert separable({"old lamp on the wall", "lamp on", "red door", "blue door"}) == {"lamp on", "red door", "blue door"}
    assert separable({"red door", "door mat", "blue sky"}) == {"door mat", "blue sky"}, "one of two that overlap stays"
    assert separable({"on and on"}) == set()


def test_phrases_are_several_words_without_signs_that_are_escaped() -> None:
    assert is_phrase("grey sea, at night") and is_phrase("2026-02-03: a note") and is_phrase("it doesn't, caf\u00e9")
    assert not any(map(is_phrase, [
        "lamp", 'the "old" lamp', "two  gaps", "a lamp.", " a lamp", "a + b", "lamp & ink"]))


def test_apostrophes_are_doubled_in_quoted_lines_of_a_snapshot() -> None:
    exchange = PhraseExchange({"it won't go": "red door", "red door": "that isn't so", "that isn't so": "it won't go"})
    assert exchange.shown("- 'link \"#1: that isn''t so\" [ref=e1]'") == "- 'link \"#1: it won''t go\" [ref=e1]'"
    assert exchange.shown("it won't go") == "red door" and exchange.shown("red door", back=True) == "it won't go"


def test_a_phrase_in_small_letters_is_exchanged_as_the_one_with_capitals() -> None:
    exchange = PhraseExchange({"Red door": "Blue sky", "Blue sky": "old lamp", "old lamp": "Red door"})
    assert exchange.shown("q=red+door, Red door") == "q=blue+sky, Blue sky" and exchange.shown("RED DOOR") == "RED DOOR"
