"""Texts that are always written in a few forms: what is written otherwise may be refused."""

from __future__ import annotations

from env_builder.behaviour import guards
from env_builder.runtime.writing import usual


def test_a_text_of_another_form_than_was_ever_given_is_no_usual_argument() -> None:
    given = [{"sum": text} for text in ("1.200,00 EUR", "900,00 EUR", "50,00 EUR", "2.000,50 EUR", "7,10 EUR")]
    is_usual = usual({"names": [["sum"]], "arguments": {}, "forms": guards.of_arguments(given)["forms"]})
    assert is_usual({"sum": "3.100,00 EUR"}) and is_usual({"sum": "1,00 EUR"}) and not is_usual({"sum": "XX99"})
    assert guards.of_arguments([{"sum": name} for name in ("rue 1", "rue 2", "rue 12", "sage 3")])["forms"] == {}
