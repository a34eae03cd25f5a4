"""A value speaks against its session where such values usually come from elsewhere."""

from __future__ import annotations

from typing import Any

from extractors.outcomes.given import misstated, other_record, superseded, unsaid
from tests.extractors.outcomes.test_refusals import evidence, of, talk

SHELF = ('[{"slot": "s71", "day": "2026-03-04", "hour": "10:45"}, {"slot": "s72", "day": "2026-03-05", "hour": "11:30"}, '
         '{"slot": "s73", "day": "2026-03-06", "hour": "08:15"}]')
DAYS = ("2026-03-04 at 10:45", "2026-03-05 at 11:30", "2026-03-06 at 08:15")


def painted(n: int, wall: str, *later: Any) -> Any:
    return talk(f"s{n:02}", ("user", f"please paint wall hut{n:02}x blue"), ("paint", {"at": wall}, "painted"), *later)


def test_a_value_other_than_the_one_that_users_state_speaks_against_its_session() -> None:
    right = [painted(n, f"hut{n:02}x") for n in range(10)]
    silent = talk("silent", ("user", "please paint my wall blue"), ("paint", {"at": "hut77x"}, "painted"))
    again = talk("again", ("user", "paint hut88x"), ("paint", {"at": "hut888x", "c": "blue"}, "no such wall"),
                 ("paint", {"at": "hut88x", "c": "blue"}, "painted"))
    votes = of(unsaid(evidence(*right, painted(99, "hut41x"), silent, again)))
    assert votes == {"s99": -1.0}, "who named nothing contradicts nothing, and a call that the next one corrects is no deed"


def test_an_argument_that_users_do_not_state_is_left_alone() -> None:
    assert unsaid(evidence(*(painted(n, f"hut{n + 50}x") for n in range(10)))).is_empty()
    assert unsaid(evidence(*(painted(n, f"hut{n:02}x") for n in range(4)), painted(99, "hut41x"))).is_empty(), "too few"


def test_writing_what_a_declined_request_named_instead_of_the_next_speaks_against_the_session() -> None:
    colours = "red", "blue", "green"
    first, refusal = ("user", "paint it red"), ("assistant", "I'm sorry, I can't do that: the plaster is not dry.")
    also, red, blue = ("user", "also paint it blue"), ("paint", {"c": "red"}, "ok"), ("paint", {"c": "blue"}, "ok")
    usual = [talk(f"s{n:02}", ("user", f"paint it {colours[n % 3]}"), ("paint", {"c": colours[n % 3]}, "ok"))
             for n in range(12)]
    votes = of(superseded(evidence(
        *usual, talk("stale", first, refusal, also, red), talk("both", first, also, red, blue),
        talk("refused", first, also, refusal, red), talk("last", first, refusal, also, blue),
        talk("answer", first, ("assistant", "Which colour is it now?"), ("user", "it is blue"), red))))
    assert votes == {"stale": -1.0}, "who serves both requests, or declines the second, may still serve the first"


def test_taking_another_record_than_the_words_describe_speaks_against_the_session() -> None:
    def booked(n: int, slot: str) -> Any:
        return talk(f"s{n:02}", ("user", f"I want to come on {DAYS[n % 3]}"), ("look", {}, SHELF),
                    ("paint", {"at": slot}, "done"))

    votes = of(other_record(evidence(*(booked(n, f"s{71 + n % 3}") for n in range(12)), booked(90, "s73"))))
    assert votes == {"s90": -1.0}
    assert other_record(evidence(*(booked(n, "s72") for n in range(12)))).is_empty(), "words tell no record apart there"


def test_a_number_that_nothing_showed_speaks_against_the_session() -> None:
    def weighed(n: int, told: str) -> Any:
        return talk(f"s{n:02}", ("user", "how heavy is it?"), ("look", {}, f'{{"kg": {n}.5, "box": 40.25}}'),
                    ("assistant", f"It weighs {told} kg."))

    reckoned = weighed(50, "90.75")
    votes = of(misstated(evidence(*(weighed(n, f"{n}.5") for n in range(10)), weighed(91, "77.7"), reckoned)))
    assert votes == {"s91": -1.0}, "a sum of what was shown is no invention"
    assert misstated(evidence(*(weighed(n, f"{n + 200}.7") for n in range(10)))).is_empty(), "nobody reads it off there"
