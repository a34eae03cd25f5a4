"""What the user's words account for speaks for its session, unless something else speaks against the rest of it."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from extractors.outcomes.accounted import as_stated, unaccounted
from extractors.outcomes.combining import combine
from extractors.outcomes.signals import registered
from tests.extractors.outcomes.test_refusals import VAGUE, WET, evidence, of, talk

SLOTS = '[{"slot": "s71", "day": "2026-03-04"}, {"slot": "s72", "day": "2026-03-05"}]'
OWNER = '{"wall": "hut11x", "owner": "ann@example.org", "key": "k904"}'
LATE = ("user", "please paint hut11x on March 5th")


def painted(name: str, *arguments: dict[str, Any], words: tuple[str, str] = LATE, answer: str = SLOTS) -> Any:
    return talk(name, words, ("look", {}, answer), *(("paint", each, "painted") for each in arguments))


def test_values_that_the_words_or_the_record_they_describe_account_for_speak_for_their_session() -> None:
    stated = painted("stated", {"at": "hut11x"})
    described, other = painted("described", {"at": "hut11x", "slot": "s72"}), painted("other", {"at": "hut11x", "slot": "s71"})
    parts = painted("parts", {"at": "hut11x-2026-03-05"}, answer='["hut11x-2026-03-05", "hut11x-2026-03-06"]',
                    words=("user", "paint hut11x, 2026-03-05"))
    unshown = painted("unshown", {"at": "hut11x-2026-03-05"}, words=("user", "paint hut11x, 2026-03-05"))
    votes = of(as_stated(evidence(stated, described, other, parts, unshown, painted("invented", {"at": "hut12x"}))))
    assert votes == {"stated": 1.0, "described": 1.0, "parts": 1.0}


def test_a_value_read_alone_counts_only_if_the_call_that_read_it_is_accounted_for() -> None:
    def keyed(name: str, wall: str) -> Any:
        return talk(name, ("user", "paint hut11x"), ("look", {"wall": wall}, OWNER), ("paint", {"key": "k904"}, "painted"))

    assert of(as_stated(evidence(keyed("own", "hut11x"), keyed("foreign", "hut12x")))) == {"own": 1.0}


def test_a_write_that_only_repeats_the_values_of_another_is_not_accounted_for() -> None:
    once, twice = {"at": "hut11x"}, ({"at": "hut11x", "slot": "s72"}, {"at": "hut11x"})
    both = painted("both", {"at": "hut11x"}, {"at": "hut12x"}, words=("user", "paint hut11x and hut12x"))
    votes = evidence(painted("once", once), painted("twice", *twice), both)
    assert of(as_stated(votes)) == {"once": 1.0, "both": 1.0}
    assert of(unaccounted(votes)) == {"twice": -0.4}, "where most writes are accounted for, the others are doubtful"
    assert unaccounted(evidence(painted("twice", *twice), painted("alone", *twice))).is_empty()


def test_a_session_without_the_proof_that_users_give_is_not_accounted_for() -> None:
    def owned(wall: str, proof: str) -> Any:
        return talk(wall, ("user", f"paint {wall}{proof}"), ("look", {"wall": wall}, OWNER), ("paint", {"at": wall}, "ok"))

    proven = [owned(f"hut{n}x", ", I am ann@example.org") for n in range(8)]
    votes = of(as_stated(evidence(*proven, owned("hut99x", ""))))
    assert votes == dict.fromkeys((f"hut{n}x" for n in range(8)), 1.0)


@pytest.mark.parametrize(("words", "counts"), [("It holds 40.25 kg.", True), ("It holds 40.25 kg and 7 tins.", False),
                                               ("Have a nice day.", False), ("I'm sorry, I can't tell you.", False)])
def test_an_answer_counts_if_all_its_numbers_were_shown(words: str, counts: bool) -> None:
    weighed = talk("s", ("user", "how heavy is hut11x?"), ("look", {"wall": "hut11x"}, '{"kg": 40.25}'), ("assistant", words))
    declined = talk("d", ("user", "paint hut11x"), VAGUE)
    assert of(as_stated(evidence(weighed, declined))) == ({"s": 1.0} if counts else {})
    assert as_stated(evidence(weighed)).is_empty(), "where nobody is seen to decline, an answer may be a refusal"


def test_who_only_prepares_what_is_asked_has_not_written() -> None:
    key = ("sell", {"day": "March 5th"}, "key k904")
    painted_too = [talk(f"p{n}", LATE, key, ("paint", {"at": "hut11x"}, "painted")) for n in range(3)]
    only = talk("only", LATE, key, ("assistant", "That is not possible."))
    assert of(as_stated(evidence(*painted_too, only))) == dict.fromkeys(("p0", "p1", "p2"), 1.0)


@pytest.mark.parametrize(("plaster", "counts"), [("wet", False), ("dry", True)])
def test_an_act_where_others_declined_what_looked_the_same_earns_no_praise(plaster: str, counts: bool) -> None:
    def seen(name: str, wall: str, state: str, *end: Any) -> Any:
        answer = f'{{"wall": "{wall}", "plaster": "{state}", "weeks": 3}}'
        return talk(name, ("user", f"please paint {wall} now"), ("look", {"wall": wall}, answer), *end)

    declined = [seen(f"d{n}", f"hut2{n}x", "wet", WET) for n in range(2)]
    acts = [seen(f"a{n}", f"hut3{n}x", "dry", ("paint", {"at": f"hut3{n}x"}, "ok")) for n in range(3)]
    votes = of(as_stated(evidence(*declined, *acts, seen("act", "hut40x", plaster, ("paint", {"at": "hut40x"}, "ok")))))
    assert ("act" in votes) is counts and votes["a0"] == 1.0


def chances(*votes: tuple[str, str, float]) -> dict[str, float]:
    rows = pl.DataFrame(votes, schema=["session_id", "name", "vote"], orient="row")
    return dict(combine(rows, dict.fromkeys(rows["session_id"].to_list(), "shop"), registered()).probabilities
                .select("session_id", "probability").iter_rows())


def test_praise_of_a_part_counts_for_nothing_beside_a_fault_in_the_rest() -> None:
    praised = [(f"s{n:02}", "as_stated", 1.0) for n in range(20)]
    gave_in = chances(*praised, ("s00", "gave_in", -1.0), ("fault", "gave_in", -1.0))
    assert gave_in["s01"] > 0.9 and gave_in["s00"] == gave_in["fault"] < 0.2
    undone = chances(*praised, ("s00", "as_asked", -1.0), ("fault", "as_asked", -1.0))
    assert undone["s00"] == undone["fault"], "who seldom contradicts the praise looks at another part of the work"
    often = chances(*praised, *((f"s{n:02}", "as_asked", -1.0) for n in range(8)), ("fault", "as_asked", -1.0))
    assert often["s00"] > often["fault"], "who often contradicts it has misread what was asked for"


def test_no_credit_for_faultless_work_where_a_mark_has_turned_out_to_speak_against_it() -> None:
    faults = [(f"f{n}", "gave_in", -1.0) for n in range(30)]
    rated = [(f"r{n}", "feedback", 1.0) for n in range(60)]
    marked = [(f"m{n}", name, sign) for n in range(20) for name, sign in (("differs", 1.0), ("feedback", -1.0))]
    chance = chances(*faults, *rated, *marked, ("marked", "differs", 1.0), ("thanked", "thanks", 1.0))
    assert chance["marked"] < 0.17 and chance["thanked"] > 0.6, "with the credit it would stand above .2"
