"""Names of one class are exchanged among each other wherever they stand, and what was exchanged comes back."""

from __future__ import annotations

import json
from datetime import date

from hypothesis import given
from hypothesis import strategies as st

from env_builder.runtime.exchanges import NameClasses, NameExchange
from env_builder.runtime.relabelling import Renaming

CLASSES = NameClasses(
    numbers=(("100001", "100002", "100003"), ("017", "018", "2030")), words=(("lamp", "harbour", "quill"), ("ann", "bo")),
    codes=(("a1b2c", "d3e4f", "z9y8x"), ("lamp1", "quill7")), secrets=("dd09e66d69", "sesame"), years=(2025, 2026, 2027),
    slugs=(("old-lamp_7", "quill_12", "the-harbour-2_3"),), ids=(("28", "41", "57", "12"), ("120", "345")), stems=("card",),
    counting=("of {}", "{} days", "page={}"), phrases=(("dull lens", "grey sea, at night", "no ink here"),))
NAMES = [name for each in (*CLASSES.numbers, *CLASSES.words, *CLASSES.codes) for name in each]
PIECES = st.sampled_from([
    *NAMES, *map(str.upper, NAMES), *map(str.capitalize, NAMES), "dd09e66d69", "sesame", "2026", "202601", "20260131", "1998",
    "2054", "205401", "57", "28", "120", "345", "card", "card 41", "of ", " days", "page=", "#", ":", ",", "%20", "+", "\\n",
    "dull lens", "grey+sea,+at+night", "no%20ink%20here", "sea, at",
    "quill_12", "old-lamp_7", "old-lamp_", "\\", '"', "u", "-", "_", ".", "/", " ", "e12", "é", "7"])
TEXTS = st.lists(st.one_of(PIECES, st.text(max_size=4)), max_size=12).map("".join)


@given(st.integers(0, 9), TEXTS)
def test_every_text_comes_back(seed: int, text: str) -> None:
    exchange = NameExchange(CLASSES, seed)
    assert exchange.shown(exchange.shown(text), back=True) == text
    assert exchange.shown(exchange.shown(text, back=True)) == text


@given(st.integers(0, 9))
def test_no_name_keeps_its_place(seed: int) -> None:
    exchange = NameExchange(CLASSES, seed)
    for names in (*CLASSES.numbers, *CLASSES.words, CLASSES.codes[0]):
        shown = [exchange.shown(name) for name in names]
        assert sorted(shown) == sorted(names) and not any(one == other for one, other in zip(names, shown, strict=True))
    assert exchange.shown("dd09e66d69") != "dd09e66d69" != exchange.shown("sesame")
    assert exchange.shown("lamp1") == f"{exchange.shown('lamp')}1", "what holds a word is named after it"


@given(st.integers(0, 9), st.dates(date(2025, 1, 1), date(2027, 12, 31)))
def test_days_keep_their_weekdays(seed: int, day: date) -> None:
    exchange = NameExchange(CLASSES, seed)
    other = date.fromisoformat(exchange.shown(day.isoformat()))
    assert other.year != day.year and (other.weekday(), other.month, other.day) == (day.weekday(), day.month, day.day)
    assert exchange.shown(f"{day:%Y%m%d}") == f"{other:%Y%m%d}" and exchange.shown(f"{day:%B %Y}") == f"{other:%B %Y}"


@given(st.integers(0, 5), st.recursive(st.one_of(TEXTS, st.integers()), lambda one: (
    st.lists(one) | st.dictionaries(TEXTS, one))))
def test_json_values_and_their_text_agree(seed: int, value: object) -> None:
    renaming = Renaming(frozenset(), seed, CLASSES)
    assert renaming.meant(renaming.shown(value)) == value


def test_one_name_is_exchanged_alike_wherever_it_stands() -> None:
    exchange = NameExchange(CLASSES, 3)
    number, word = exchange.shown("100001"), exchange.shown("quill")
    for text in ("/things/{}/", "thing-{}.pdf", "2019-01-02_x_{}.pdf", "x{}y", "#{}", "a/b/{}.csv"):
        assert exchange.shown(text.format("100001")) == text.format(number)
    assert exchange.shown("the Quill, QUILL-quill_12") == f"the {word.capitalize()}, {word.upper()}-{word}_12"
    assert exchange.shown(json.dumps("\nquill")) == json.dumps(f"\n{word}"), "the letter of an escape is none of a word"
    assert exchange.shown("quilLs Quills 1000011") == "quilLs Quills 1000011"


def test_short_numbers_are_exchanged_behind_the_words_of_an_address_alone() -> None:
    exchange = NameExchange(CLASSES, 1)
    shown = exchange.shown("/things/old-lamp_7/ costs 7, or old-lamp_99")
    number = shown.partition("_")[2].partition("/")[0]
    assert number in ("3", "12") and shown.endswith(f" costs 7, or old-{exchange.shown('lamp')}_99")


def test_ids_of_few_digits_are_exchanged_where_nothing_says_that_they_count() -> None:
    exchange = NameExchange(CLASSES, 2)
    other = exchange.shown("28")
    assert other in ("41", "57"), "12 is a number behind the words of an address"
    for text in ("#{}", "card {}", "card{}", "/cards/{}", "/cards/{}/edit", 'link "{}" [ref=e28]',
                 "x%20{}", "card%20{}&", "({})", "{}, red", '["{}"]'):
        assert exchange.shown(text.format("28")) == text.format(other)
    for text in ("1 of 28", "28 days", "?page=28", "2019-01-28", "12:28", "28.5", "1.28", "28/12/2019", "e28", "28px", "%28",
                 "nth=28", "1,345", "120,345", "12,120", "028", "2800"):
        assert exchange.shown(text) == text


def test_phrases_are_exchanged_as_wholes_in_sentences_and_addresses() -> None:
    exchange = NameExchange(CLASSES, 2)
    other = exchange.shown("dull lens")
    assert other in ("grey sea, at night", "no ink here")
    assert exchange.shown("a dull lens.") == f"a {other}."
    assert exchange.shown("/?q=dull+lens&x=dull%20lens") == f"/?q={other.replace(' ', '+')}&x={other.replace(' ', '%20')}"
    assert exchange.shown("a dull lense; dull  lens; Dull lens") == "a dull lense; dull  lens; Dull lens"
