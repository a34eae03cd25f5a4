"""However somebody is spelt whom a field knows: the same pseudonym stands there, spelt the same way."""

from __future__ import annotations

import json
import unicodedata
from urllib.parse import quote, unquote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors.privacy.letters import camel, encoded, runs
from tests.extractors.privacy.test_carrying import MADE, cleaned

RECORD = {"user_id": "hope_young_4410", "first_name": "Hope", "last_name": "Young", "email": "zoë.müller77@corp.io",
          "phone": "+1 (212) 555-0147"}
OTHER = {"full_name": "Zoë Müller-Kern", "user_id": "zo_m_99871"}
CYRILLIC = {"full_name": "Ольга Смирнова"}


def told(text: str) -> str:
    records = [("result", json.dumps(each)) for each in (RECORD, OTHER, CYRILLIC)]
    return cleaned(*records, ("message", text))[-1]


@pytest.mark.parametrize(("before", "kind", "value", "after"), [
    ("q=", "name", "Hope Young", "&n=1"), ("it was ", "name", "hope young", " here"), ("for ", "name", "HOPE YOUNG", ""),
    ("cart:", "id", "hope_young_4410", "_v2"), ("s3://b/", "id", "hope_young_4410", "/x.json"),
    ("ring ", "phone", "2125550147", ""),
    ("dear ", "name", "Zoë Müller-Kern", ","), ("an ", "id", "zoë.müller77", " is taken")])
def test_one_pseudonym_stands_in_its_place(before: str, kind: str, value: str, after: str) -> None:
    assert told(f"{before}{value}{after}") == f"{before}{MADE.of(kind, value)}{after}"


def test_what_is_encoded_is_encoded_again() -> None:
    assert told(f"/find?q={quote('Ольга Смирнова')}&n=1") == f"/find?q={quote(MADE.of('name', 'Ольга Смирнова'))}&n=1"
    assert told("/find?q=Hope+Young") == f"/find?q={MADE.of('name', 'Hope Young').replace(' ', '+')}"
    mail = quote(RECORD["email"], safe="")
    assert unquote(told(f"m={mail}")) == f"m={MADE.of('email', RECORD['email'])}" != f"m={RECORD['email']}"


def test_accents_apart_are_the_same_letters() -> None:
    assert told(unicodedata.normalize("NFD", "Zoë Müller-Kern")) == MADE.of("name", "Zoë Müller-Kern")


def test_names_are_found_where_they_are_written_together_and_shortened() -> None:
    first, last = MADE.of("name", "Hope Young").split()
    assert told("class HopeYoungProfile") == f"class {first}{last}Profile"
    assert told("signed H. Young") == f"signed H. {last}"


@pytest.mark.parametrize("text", [
    "young people hope so", "HopeProfile", "part B. Young trees", "a+b=c", "100%25 of it", "2125550148", "x_y_4410"])
def test_what_only_looks_like_it_stays(text: str) -> None:
    assert told(text) == text


def test_a_field_that_holds_names_of_known_people_is_one_of_names() -> None:
    people = [("result", json.dumps({"first_name": f"Xa{a}ra", "last_name": f"Quil{a}dor"})) for a in "bcdf"]
    rows = [("row_change", json.dumps({"who": f"Quil{a}dor", "colour": "brown", "n": 1})) for a in "bcdf"]
    made = cleaned(*people, *rows, ("message", "then Quilbdor came"))
    assert not [a for a in "bcdf" if any(f"Quil{a}dor" in text for text in made)]
    assert all('"colour": "brown"' in text for text in made[4:8])


@given(st.text("ab%2-_.@+ é", max_size=20))
def test_parts_are_parts_and_codes_are_read_back(text: str) -> None:
    assert all(0 <= start <= end <= len(text) and end - start < len(text) for start, end in runs(text))
    if told_of := encoded(quote(text, safe="")):
        plain, again = told_of
        assert plain == text and unquote(again(plain)) == text.replace("+", "+")


@given(st.lists(st.from_regex(r"[A-Z][a-z]{1,5}", fullmatch=True), min_size=1, max_size=4))
def test_words_that_are_written_together_come_apart(words: list[str]) -> None:
    assert camel("".join(words)) == words
