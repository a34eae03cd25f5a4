"""Which fields of tools' answers a family's sessions tell, and the facts that answer a question in one of them."""

from __future__ import annotations

import json

import pytest

from env_builder.rewards.questions import Questions
from env_builder.rewards.witness import Row, Witness
from env_builder.world.calls import LoggedCall


def session(name: str, answer: str, *words: str, asked: str = "What about my account?") -> Witness:
    """Return a session in which the user asks, the agent looks, and then speaks."""
    rows: list[Row] = [("message", "user", asked, f"{name}u", 0), ("call", "assistant", answer, f"{name}c", 1)]
    rows += [("message", "assistant", text, f"{name}a{n}", n) for n, text in enumerate(words, 2)]
    try:
        parsed = json.loads(answer)
    except ValueError:
        parsed = None
    call = LoggedCall(name, 1, "account", {"of": name}, "{}", answer, parsed, False, None, None, f"{name}c")
    return Witness(name, rows, [call], None, 0.9, frozenset({"account"}))


def accounts(form: str, telling: str, n: int = 5) -> list[Witness]:
    sums = [17.5 + 3 * k for k in range(n)]
    return [session(f"s{k}", form.format(total=total, limit=900 + k), telling.format(total=total))
            for k, total in enumerate(sums)]


@pytest.mark.parametrize("form", [
    '{{"total": {total}, "limit": {limit}}}', "{{'total': {total}, 'limit': {limit}, 'open': None}}",
    "(True, {{'total': {total}, 'limit': {limit}}})", "total {total}\nlimit {limit}"])
def test_what_most_tell_answers_the_question(form: str) -> None:
    sessions = accounts(form, "You owe {total} EUR.")
    assert Questions({"f": sessions}).answer("f", sessions[0]) == [("number", "17.5")]


def test_too_few_sessions_say_nothing() -> None:
    sessions = accounts('{{"total": {total}, "limit": {limit}}}', "You owe {total} EUR.", 3)
    assert Questions({"f": sessions}).answer("f", sessions[0]) == []


def test_a_sentence_of_others_answers_in_another_family_too() -> None:
    sessions = accounts('{{"total": {total}, "limit": {limit}}}', "You owe {total} EUR.")
    other = session("o", '{"total": 99.5, "limit": 1}', "You owe 99.5 EUR. I can't close it.")
    assert Questions({"f": sessions, "g": [other]}).answer("g", other) == [("number", "99.5")]
    reworded = session("o", '{"total": 99.5, "limit": 1}', "It comes to 99.5.")
    assert Questions({"f": sessions, "g": [reworded]}).answer("g", reworded) == []


def test_states_count_as_words_and_names_do_not() -> None:
    def orders(values: list[str]) -> list[Witness]:
        return [session(f"s{k}", json.dumps({"state": value}), f"It is {value}.") for k, value in enumerate(values)]

    sent = orders(["on its way", "delivered"] * 3)
    assert Questions({"f": sent}).answer("f", sent[1]) == [("words", "delivered")]
    named = orders(["Ada", "Bob", "Cleo", "Dora", "Emil", "Fay"])
    assert Questions({"f": named}).answer("f", named[1]) == []


def test_what_the_user_named_is_no_answer() -> None:
    sessions = [session(f"s{k}", json.dumps({"id": f"AB-{k}00"}), f"Your account is AB-{k}00.", asked=f"I am AB-{k}00")
                for k in range(5)]
    assert Questions({"f": sessions}).answer("f", sessions[0]) == []
