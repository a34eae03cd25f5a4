"""Facts in text: one thing told in many forms is one fact, and nothing in a text is more than text."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from env_builder.runtime import words
from env_builder.runtime.words import Fact, bare, fact_of, facts_in, forms_of, heard_in, hints_of


def told(fact: Fact, text: str) -> bool:
    return not forms_of(fact).isdisjoint(heard_in(text))


@pytest.mark.parametrize(
    "text", ["You owe $1,234.50.", "1234.5 in all", "EUR 1.234,50", "1\u202f234.50!", "(1,234.5)", "-1234.50"]
)
def test_a_number_is_one_fact_in_every_form(text: str) -> None:
    assert told(fact_of("number", "1,234.50"), text)
    assert not told(fact_of("number", "1234.51"), text)


@pytest.mark.parametrize(
    "text",
    [
        "2024-05-15",
        "May 15, 2024",
        "on May 15th",
        "15 May 2024",
        "the 15th of May",
        "05/15/2024",
        "15.05.24",
        "2024-05-15T10:00:00",
    ],
)
def test_a_date_is_one_fact_in_every_form(text: str) -> None:
    assert told(fact_of("date", "2024-05-15"), text)
    assert not told(fact_of("date", "2024-05-16"), text)


def test_the_year_counts_where_it_is_told() -> None:
    assert not told(fact_of("date", "2024-05-15"), "May 15, 2023")
    assert told(fact_of("date", "--05-15"), "May 15, 2023")


@pytest.mark.parametrize("text", ["door #AB12-9 is open", "ab12-9.", "**AB12-9**", "(Ab12-9)"])
def test_an_id_is_found_whatever_its_case_and_marks(text: str) -> None:
    assert told(fact_of("id", "#AB12-9"), text)


@pytest.mark.parametrize("text", ["XAB12-9", "AB12-99", "AB12", "12-9"])
def test_an_id_is_no_part_of_another(text: str) -> None:
    assert not told(fact_of("id", "AB12-9"), text)


def test_times_and_measures_are_no_facts() -> None:
    assert facts_in("at 10:30, the 5th, 15kg") <= {("number", "5")}


def test_zeros_alone_are_no_number() -> None:
    assert not told(fact_of("number", "0.00"), "You owe 7. 00.")   # the rest of another number
    assert told(fact_of("number", "0.00"), "You owe 0.00.") and told(fact_of("number", "0.00"), "You owe 0.")


def test_a_fraction_may_be_rounded_to_cents() -> None:
    assert told(fact_of("number", "54.0399999"), "That is $54.04.")
    assert not told(fact_of("number", "54.04"), "That is $54.05.")


@pytest.mark.parametrize(("kind", "value"), [("number", "ten"), ("date", "yesterday"), ("mood", "good")])
def test_a_fact_that_cannot_be_read_is_an_error(kind: str, value: str) -> None:
    with pytest.raises(ValueError):
        fact_of(kind, value)


@given(st.text(max_size=400))
def test_any_text_can_be_read(text: str) -> None:
    assert all(kind in ("number", "date", "id") for kind, _ in facts_in(text))


@given(st.decimals(min_value=0, max_value=10**9, places=2))
def test_every_amount_is_found_with_and_without_marks(amount: Decimal) -> None:
    fact = fact_of("number", f"{amount:f}")
    assert told(fact, f"{amount:,}") and told(fact, f"it is {amount:f} now")


@given(st.dates(min_value=date(1900, 1, 1), max_value=date(2100, 1, 1)))
def test_every_day_is_found_in_words_and_in_iso(day: date) -> None:
    fact = fact_of("date", day.isoformat())
    assert told(fact, day.isoformat())
    assert told(fact, f"{day:%B} {day.day}, {day.year:04}") and told(fact, f"{day.day} {day:%b}")


PIECES = st.sampled_from([
    "May", "may I", "Sept.", "of", "the", "15th", "15", "2024", "2024-05-15", "05/15/2024", "15.05.24", "1,234.50", "7",
    "AB-1234", "a-b-c", "x@y.z9", "10:30", "2kg", "1\u00a0234", ",", ", ", " ", "  ", "\n", ".", "-", "_", "#W1234567",
    "00012.500", "hello" * 9,
])  # fmt: skip


@given(st.lists(PIECES, max_size=25), st.sampled_from(["", " "]))
def test_what_is_far_from_digits_says_nothing(pieces: list[str], between: str) -> None:
    """Searching the parts with digits alone finds what searching the whole text does."""
    text = between.join(pieces)
    found: set[words.Fact] = set()
    rest = words._GROUP_SPACE.sub(",", text)
    rest = words._ISO.sub(lambda m: words._take(found, [(m[1], m[2], m[3])]), rest)
    rest = words._MONTH_FIRST.sub(lambda m: words._take(found, [(m[3], words._month(m[1]), m[2])]), rest)
    rest = words._DAY_FIRST.sub(lambda m: words._take(found, [(m[3], words._month(m[2]), m[1])]), rest)
    year = words._year
    rest = words._PARTS.sub(lambda m: words._take(found, [(year(m[4]), m[1], m[3]), (year(m[4]), m[3], m[1])]), rest)
    rest = words._ID.sub(lambda m: words._take_id(found, m[0]), words._CLOCK.sub(" ", rest))
    found.update(("number", value) for token in words._NUMBER.findall(rest) for value in words._values(token))
    assert facts_in(text) == found


@given(st.lists(st.one_of(
    st.from_regex(r"[#$*(]{0,2}[0-9A-Za-z_.,/:\-@]{1,14}[.,;:!?)%]{0,2}", fullmatch=True),
    st.from_regex(r"[0-9]{1,8}(,[0-9]{2,8}){0,2}([.][0-9]{1,8})?[.,;]?", fullmatch=True),
    st.text(max_size=8)), max_size=6))
@settings(deadline=None)
def test_words_that_need_no_search_state_what_a_search_finds(parts: list[str]) -> None:
    text = " ".join(parts)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(words, "_taken", lambda found, word: False)
        searched = facts_in.__wrapped__(text)
    assert facts_in.__wrapped__(text) == searched


@settings(deadline=None)
@given(st.text(alphabet="0123456789 ,.-/:#aAbz\u00a0\u202f\u0130\u00dfmayMrch\n", max_size=40))
def test_a_text_that_states_a_fact_holds_a_hint_of_it(text: str) -> None:
    for kind, value in facts_in(text):
        forms = forms_of(fact_of(kind, value))
        assert any(hint in bare(text) for hint in hints_of(forms)), (kind, value)


@pytest.mark.parametrize(
    ("kind", "value"), [("number", "1,234.505"), ("number", "0.50"), ("id", "AB.12-9"), ("date", "--05-05")])
def test_hints_are_those_of_every_form_that_is_heard(kind: str, value: str) -> None:
    forms = forms_of(fact_of(kind, value))
    assert all(forms.isdisjoint(heard_in(text)) for text in ("nothing of it", "7 77 777"))
    for text in ("1.234,51!", "0.5", "ab.12-9", "5/5/2024", "May 5"):
        hinted = any(hint in bare(text) for hint in hints_of(forms))
        assert hinted or forms.isdisjoint(heard_in(text))
