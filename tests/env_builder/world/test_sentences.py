"""Sentences with slots are read as objects, and given back byte for byte."""

from __future__ import annotations

import random
from typing import Any

import pytest

from env_builder.runtime.sentences import NoSentence, read_sentence, write_sentence
from env_builder.world.sentences import find

PEOPLE = ["Ada Lovelace", "Béla", "Chen Wei", "Nguyễn Thị Mai", "O'Brien"]


def boat(choose: random.Random, place: int) -> str:
    crew = ", ".join(f"{name} (since 20{choose.randrange(10, 30)})" for name in choose.sample(PEOPLE, choose.randrange(3)))
    berth = f"is moored at pier {choose.randrange(1, 9)}" if place % 3 else "is out since dawn"
    towed = f", towed by B{choose.randrange(100, 999)}" if choose.random() < 0.4 else ""
    dues = f"{choose.randrange(400) / 4:.2f}"
    return f"Boat B{place + 100} of {choose.choice(PEOPLE)} {berth}{towed}. Dues: {dues}. Crew: {crew or '-'}."


@pytest.fixture(scope="module")
def boats() -> list[str]:
    choose = random.Random(4)
    return [boat(choose, place) for place in range(80)]


def test_values_lists_and_what_is_left_out_are_read_and_given_back(boats: list[str]) -> None:
    pieces = find(set(boats))
    assert pieces is not None
    assert [write_sentence(read_sentence(text, pieces), pieces) for text in boats] == boats
    documents = [read_sentence(text, pieces) for text in boats]
    assert len({tuple(document) for document in documents}) == 1
    assert documents[7]["Boat"] == "B107" and isinstance(documents[7]["Dues"], float)
    assert isinstance(documents[7]["Crew"], list) and any(document["Crew"] == [] for document in documents)


def test_a_part_that_comes_and_goes_is_null_where_it_is_not(boats: list[str]) -> None:
    pieces = find(set(boats)) or []
    texts = {"towed by" in text: text for text in boats if "pier" in text}
    absent, there = (read_sentence(texts[towed], pieces) for towed in (False, True))
    (name,) = {name for name in there if there[name] is not None and absent[name] is None}
    assert f"towed by {there[name]}" in texts[True]
    assert f", towed by {there[name]}." in write_sentence({**absent, name: there[name]}, pieces)


def test_an_object_without_a_sentence_is_not_written(boats: list[str]) -> None:
    pieces = find(set(boats)) or []
    document: dict[str, Any] = read_sentence(boats[1], pieces)
    for odd in ({**document, "more": 1}, {**document, "Dues": "many"}, {**document, "Boat": None}):
        with pytest.raises(NoSentence):
            write_sentence(odd, pieces)


@pytest.mark.parametrize("texts", [
    ["Noted.", "OK.", "Done.", "Thank you.", "Right away.", "As you wish."],
    [f"Renewed. The new date is 2026-03-{day}." for day in range(10, 30)],
    ["The sea is calm.", "Rain all day; stay in.", "Wind from the west", "No news", "Fog, then sun.", "Snow?"],
    [f"Boat {n} of Ada\nDues: {n}.00" for n in range(20)]])
def test_texts_that_tell_of_no_record_have_no_template(texts: list[str]) -> None:
    assert find(texts) is None


@pytest.mark.parametrize("flag", ["fragile, ", "not to be tilted, "])
def test_words_that_are_there_or_not_are_a_flag(flag: str) -> None:
    crates = [f"Crate {n + 100}: {n * 7} pieces, {flag if n % 3 else ''}counted on 2026-02-{n:02}." for n in range(10, 28)]
    pieces = find(crates)
    assert pieces is not None
    documents = [read_sentence(text, pieces) for text in crates]
    (name,) = {name for document in documents for name, value in document.items() if value is True}
    assert [document[name] for document in documents] == [True if n % 3 else None for n in range(10, 28)]
    assert [write_sentence(document, pieces) for document in documents] == crates
    with pytest.raises(NoSentence):
        write_sentence({**documents[0], name: "yes"}, pieces)
