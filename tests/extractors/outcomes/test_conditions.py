"""Conditions are learnt from what agents read before they acted or declined, and vote on other sessions."""

from __future__ import annotations

from datetime import date

from extractors.outcomes.conditions import DecisionCase, Written, _votes, learn
from extractors.outcomes.fields import facts_of, facts_said, parse_answer

TODAY = date(2026, 3, 2)
NOTHING = Written(frozenset(), frozenset())


def _case(number: int, acted: bool, **facts: float | str | bool) -> DecisionCase:
    return DecisionCase(f"s{number}", f"t{number}", "cancel" if acted else "", frozenset(), facts)


def _cases() -> list[DecisionCase]:
    """Twenty acts on records that are open, twelve refusals on closed ones."""
    return ([_case(number, True, state="open", noise=float(number % 5)) for number in range(20)]
            + [_case(number, False, state="closed", noise=float(number % 5)) for number in range(20, 32)])


def test_a_value_that_one_record_alone_has_is_no_condition() -> None:
    def held(number: int, acted: bool, owner: str, record: str) -> DecisionCase:
        return _case(number, acted, **{"get.owner": owner, "name of get": record})

    acts = [held(number, True, f"person {number % 7}", f"r{number % 7}") for number in range(28)]
    one = [held(number, False, "nell", "r99") for number in range(28, 36)]
    several = [held(number, False, "nell", f"r{number}") for number in range(28, 36)]
    assert learn([*acts, *one], NOTHING) == [], "it only names the record in other words"
    assert [str(test) for each in learn([*acts, *several], NOTHING) for test in each] == ["get.owner is nell"]
    assert facts_of("get", '{"no": "r99", "owner": "nell"}', "show r99", TODAY)["name of get"] == "r99"


def test_answers_are_read_in_several_notations() -> None:
    assert parse_answer('{"a": 1}') == {"a": 1}
    assert parse_answer("(True, {'a': None})") == (True, {"a": None})
    assert parse_answer("state: open\nage: 4\n") == {"state": "open", "age": "4"}
    assert parse_answer("no;state\n4;open\n") == [{"no": "4", "state": "open"}]
    assert parse_answer("Fines: 7.50. The loan was renewed 2 times.") == {"Fines": "7.50", "The loan was renewed # times": "2"}
    assert parse_answer("Done.") is None


def test_facts_are_ages_counts_differences_and_what_the_user_said() -> None:
    answer = '{"sent": "2026-02-20", "used": 3, "seats": 5, "lines": [1, 2], "mail": "a@b.org", "end": null}'
    facts = facts_of("get", answer, "i am a@b.org", TODAY)
    assert facts["days since get.sent"] == 10.0
    assert facts["number of get.lines"] == 2.0
    assert facts["get.seats minus get.used"] == 2.0
    assert facts["the user said get.mail"] is True
    assert facts["get.end is missing"] is True
    assert "get.mail" not in facts, "what names the record is no condition"


def test_of_a_list_only_the_record_that_the_user_named_is_read() -> None:
    answer = '[{"key": "A-1", "state": "open"}, {"key": "A-2", "state": "closed"}]'
    assert facts_of("find", answer, "drop a-2", TODAY)["find.state"] == "closed"
    assert "find.state" not in facts_of("find", answer, "drop it", TODAY)


def test_the_only_number_of_the_user_is_held_against_fields() -> None:
    assert facts_said("pay back 40", {"get.paid": 30.0}, TODAY)["the number that the user said minus get.paid"] == 10.0
    assert "the number that the user said" not in facts_said("pay 40 or 50", {}, TODAY)


def test_a_condition_is_learnt_where_refusals_go_with_it() -> None:
    (condition,) = learn(_cases(), NOTHING)
    assert str(condition[0]) in ("state is closed", "state is open")
    assert condition[0].holds({"state": "closed"}) is True
    assert condition[0].holds({}) is None


def test_nothing_is_learnt_of_chance_or_of_few() -> None:
    mixed = [case._replace(facts={"noise": case.facts["noise"]}) for case in _cases()]
    assert not learn(mixed, NOTHING)
    assert not learn(_cases()[:23], NOTHING), "three refusals"


def test_votes_follow_rules_of_other_sessions() -> None:
    odd = _case(40, True, state="closed", noise=1.0)
    unread = _case(41, False, noise=1.0)
    vain = _case(42, False, state="open", noise=1.0)
    votes = {session: vote for session, vote, _, _ in _votes({"cancel": [*_cases(), odd, unread, vain]}, NOTHING)}
    assert {votes[f"s{number}"] for number in range(20, 32)} == {1.0}
    assert not {"s0", "s40", "s42"} & votes.keys(), "neither acts nor refusals without a condition are judged"
    assert "s41" not in votes, "the field was not read"


def test_a_session_alone_does_not_vote_for_itself() -> None:
    lone = _case(50, False, state="lost", noise=1.0)
    assert "s50" not in {session for session, vote, _, _ in _votes({"cancel": [*_cases(), lone]}, NOTHING) if vote > 0}
