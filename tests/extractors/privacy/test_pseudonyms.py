"""Pseudonyms: stable, of the same shape, nobody's twice, and never the value itself."""

from __future__ import annotations

import re
from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors.privacy import Pseudonyms
from extractors.privacy.fields import iban_holds, luhn_holds
from extractors.privacy.letters import GENERIC, is_given, is_household
from extractors.privacy.permuting import SCHEMES, Permutation
from extractors.privacy.pseudonyms import _NO_NAME, day_of

KEY = b"k" * 32
MADE = Pseudonyms(KEY)
keys = st.binary(min_size=32, max_size=32)
words = st.text("abcdefghijklmnopqrstuvwxyzéüж", min_size=2, max_size=12)
digits = st.text("0123456789", min_size=3, max_size=12)


def shape(text: str) -> str:
    return re.sub(r"[A-Z]", "A", re.sub(r"[a-z]", "a", re.sub(r"\d", "0", text)))


@given(keys, st.integers(2, 600), st.sampled_from(SCHEMES))
def test_a_permutation_takes_each_number_once_and_leaves_none_where_it_was(key: bytes, n: int, scheme: int) -> None:
    made = Permutation(key, "x", scheme)
    images = [made.number(each, n) for each in range(n)]
    assert sorted(images) == list(range(n)) and all(image != each for each, image in enumerate(images))


@pytest.mark.parametrize(("kind", "value", "expected"), [
    ("name", "Emma Lopez", "Vivian Dupree"), ("email", "emma.lopez@acme.io", "vivian.dupree@scnf.io"),
    ("phone", "555-010-0199", "555-092-2875"), ("id", "CUST-00042", "CUST-07896"), ("ip", "10.1.2.3", "10.114.248.105"),
    ("card", "4111 1111 1111 1111", "4510 4525 4701 0205"), ("date", "1980-03-31", "1979-09-29"),
    ("id", "0123456789abcdef", "5aeaf10ebb226dad"), ("account", "DE89370400440532013000", "DE91140291361181546297")])
def test_a_key_of_the_first_scheme_gives_the_pseudonyms_that_it_gave(kind: str, value: str, expected: str) -> None:
    assert Pseudonyms(KEY, 1).of(kind, value) == expected != MADE.of(kind, value)


@given(st.text("AZaz09-_ é北", max_size=80), st.sampled_from(SCHEMES))
def test_a_shaped_text_keeps_its_shape_and_changes(text: str, scheme: int) -> None:
    made = Permutation(KEY, "x", scheme).shaped(text)
    assert shape(made.replace("é", "e")) == shape(made.replace("é", "e")) and len(made) == len(text)
    assert [sign for sign in made if sign in "-_ "] == [sign for sign in text if sign in "-_ "]
    if re.search(r"[a-zA-Z1-9]", text):
        assert made != text


@pytest.mark.parametrize("kind", ["name", "id", "email", "phone", "address", "zip", "account", "card", "ending"])
def test_no_two_values_have_one_pseudonym(kind: str) -> None:
    values = {
        "name": [f"{one} {two}" for one in ("Omar", "Rose", "Zbrqk", "Emma") for two in ("Smith", "Brown", "Aqzzt", "Lopez")],
        "id": [f"omar_smith_{n}" for n in range(100, 300)] + [f"CUST-{n:05}" for n in range(300)]
              + [f"a{n}b" for n in range(50)],
        "email": [f"u{n}@gmail.com" for n in range(300)] + ["omar.smith@acme.io", "omar.smith@gmail.com"],
        "phone": [f"555-{n:03}-0000" for n in range(300)], "address": [f"{n} Elm Street" for n in range(1, 300)],
        "zip": [f"{n:05}" for n in range(300)], "account": [f"{n:09}" for n in range(300)],
        "card": [f"4111 1111 1111 {n:04}" for n in range(300)], "ending": [f"{n:04}" for n in range(10000)]}[kind]
    made = [MADE.of(kind, value) for value in values]
    assert len(set(made)) == len(values)
    assert all((one != other and shape(one) == shape(other)) or kind in ("name", "id", "email", "address")
               for one, other in zip(values, made, strict=True))
    assert not any(one == other for one, other in zip(values, made, strict=True))
    assert Pseudonyms(KEY).of(kind, values[-1]) == made[-1] != Pseudonyms(b"o" * 32).of(kind, values[-1])


@given(words, words, digits)
def test_a_name_is_the_same_name_in_an_id_an_address_and_a_sentence(one: str, other: str, number: str) -> None:
    name = MADE.of("name", f"{one} {other}").split(" ")
    if not {one, other} & (GENERIC | _NO_NAME):
        made = MADE.of("id", f"{one}_{other}_{number}").split("_")
        assert made[0] == name[0] or len(one) < 3
        assert MADE.of("name", f"{one} {other}".upper()) == " ".join(name).upper()
        assert MADE.of("email", f"{one}.{other}{number}@example.com").split("@")[1] == "example.com"


def test_given_names_become_given_names_and_words_words() -> None:
    made = MADE.of("name", "Emma Brown").split()
    assert is_given(made[0].lower()) and is_household(made[1].lower()) and made[0].istitle()


def test_what_holds_by_its_check_digits_holds() -> None:
    for card in ("4111 1111 1111 1111", "378282246310005", "5555555555554444"):
        made = MADE.of("card", card)
        assert luhn_holds(re.sub(r"\D", "", made)) and made[0] == card[0] and shape(made) == shape(card)
        assert made.replace(" ", "")[-4:] == MADE.of("ending", card.replace(" ", "")[-4:])
    assert not luhn_holds(MADE.of("card", "4111111111111112"))
    assert iban_holds(MADE.of("account", "GB29NWBK60161331926819"))


def test_a_telephone_number_is_one_however_it_is_written() -> None:
    made = {re.sub(r"\D", "", MADE.of("phone", each))[-7:] for each in ("+1 (555) 123-4567", "555-123-4567", "5551234567")}
    assert len(made) == 1 and made != {"1234567"}


@given(st.dates(date(1900, 1, 1), date(2020, 1, 1)), st.dates(date(1900, 1, 1), date(2020, 1, 1)))
def test_dates_keep_their_distances(one: date, other: date) -> None:
    moved = [date.fromisoformat(MADE.of("date", each.isoformat())) for each in (one, other)]
    assert moved[0] - moved[1] == one - other and moved[0] != one
    assert MADE.of("date", f"{one:%m/%d/%Y}") == f"{moved[0]:%m/%d/%Y}" and MADE.of("date", "soon") == "soon"


@pytest.mark.parametrize("value", ["u48.u48231@corp.io", "u4_8801", "qx-1234"])
def test_an_id_in_capitals_is_the_same_id(value: str) -> None:
    kind = "email" if "@" in value else "id"
    assert MADE.of(kind, value.upper()) == MADE.of(kind, value).upper() != value.upper()


@pytest.mark.parametrize("one, other", [("3/30/80", "3/31/80"), ("30.3.80", "31.3.80"), ("3/30/1980", "3/31/1980")])
def test_a_day_moves_however_its_year_is_written(one: str, other: str) -> None:
    first, second = (day_of(MADE.of("date", each)) for each in (one, other))
    assert first is not None and second is not None and (second - first).days == 1 and first != date(1980, 3, 30)
