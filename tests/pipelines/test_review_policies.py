"""The sentences of a policy that a reviewer sees first: those that speak of the case."""

from __future__ import annotations

from pipelines.reviewing.policies import MOST, telling_sentences

POLICY = [
    "You are the assistant of a library. Be kind and brief.\n- Books may be renewed only while nobody waits for them.\n"
    "- Fines above 20 EUR must be paid before anything is lent.\n- Rooms are free on Sundays. Bring your card to the desk.",
    "Rooms must never be booked for more than two hours."]


def test_sentences_that_share_rare_words_with_the_case_come_in_the_policys_order() -> None:
    words = ["Could you renew my book until Friday?", "renew_book", "It is renewed."]
    assert telling_sentences(POLICY, words)[0] == "Books may be renewed only while nobody waits for them."
    rooms = telling_sentences(POLICY, ["I need a room for three hours", "bookRoom"])
    assert rooms[-2:] == ["Rooms are free on Sundays.", "Rooms must never be booked for more than two hours."]
    assert telling_sentences(list(reversed(POLICY)), ["I need a room for three hours"])[0].startswith("Rooms must never")


def test_a_short_policy_or_a_case_without_its_words_gives_none() -> None:
    assert telling_sentences(["Be kind. Refuse politely. Look twice."], ["be kind and refuse"]) == []
    assert telling_sentences([], ["room"]) == [] and telling_sentences(POLICY, []) == []
    assert telling_sentences(POLICY, ["xyzzy 42"]) == []
    assert len(telling_sentences(POLICY, POLICY)) == MOST
