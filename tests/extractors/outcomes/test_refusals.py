"""A refusal counts by its reason, and a promise by the deed."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from extractors.outcomes import judge
from extractors.outcomes.evidence import Evidence, gather
from extractors.outcomes.matching import matches_request
from extractors.outcomes.refusals import cites, gave_in
from extractors.outcomes.steps import left, promised, skipped
from extractors.tasks import goals_of
from pipelines.building.tasks import with_stances
from tests.extractors.outcomes.test_outcomes import EFFECTS, feedback, frames, session

RULES = (
    "system",
    "Verify the PIN first. Paint only walls whose plaster is six weeks old. Never sell lamps of the museum collection.",
)
START = {"shop": "shared"}
Made = tuple[dict[str, Any], list[dict[str, Any]]]


def talk(name: str, *steps: Any) -> Made:
    """Return a session that begins with the instructions."""
    head, turns = session(name, ("user", RULES[1]), *steps)
    turns[0]["role"] = "system"
    return head, turns


def evidence(*sessions: Made) -> Evidence:
    heads, turns = frames(*sessions)
    stanced = with_stances(turns)
    return gather(heads, stanced, feedback(), EFFECTS, START, goals_of(heads, turns, EFFECTS))


def of(votes: pl.DataFrame) -> dict[str, float]:
    return dict(votes.select("session_id", "vote").iter_rows())


def ask(n: int) -> tuple[str, str]:
    return "user", f"please paint wall hut{n:02}x blue"


LOOKED = ("look", {}, "grey")
WET = ("assistant", "I'm sorry, I can't do that: the plaster is not six weeks old.")
VAGUE = ("assistant", "I'm afraid I can't sort this out here.")


def test_a_refusal_that_names_a_rule_speaks_for_its_session() -> None:
    seen = evidence(*(talk(f"s{n}", ask(n), LOOKED, WET) for n in range(6)), talk("vague", ask(7), LOOKED, VAGUE))
    votes = of(cites(seen))
    assert all(votes[f"s{n}"] > 0 for n in range(6))
    assert votes["vague"] < 0, "most refusals name a rule"
    assert matches_request(seen).is_empty(), "a refusal is no request that was not done"


def test_one_refusal_without_a_reason_among_others_speaks_against_the_session() -> None:
    good = [talk(f"s{n}", ask(n), LOOKED, WET) for n in range(6)]
    mixed = talk("mixed", ask(7), LOOKED, WET, ask(8), LOOKED, VAGUE)
    pressed = talk("pressed", ask(7), LOOKED, WET, ("user", "oh please"), VAGUE)
    votes = of(cites(evidence(*good, mixed, pressed)))
    assert votes["mixed"] < 0 < votes["pressed"], "what is said to the same request is one refusal"


def test_a_refusal_that_has_no_word_of_request_rules_or_record_speaks_against_its_session() -> None:
    record = ("look", {}, "the wall is brown; owed: 35")
    owing = ("assistant", "I'm sorry, I can't do that: 35 are owed.")
    talks = [talk(f"s{n}", ask(n), record, owing) for n in range(6)]
    votes = of(cites(evidence(*talks, talk("blank", ask(7), record, VAGUE))))
    assert list(votes) == ["blank"] and votes["blank"] < 0, "the others name no rule, but a reason"
    every = of(cites(evidence(*(talk(f"s{n}", ask(n), record, VAGUE) for n in range(6)))))
    assert not every, "where no refusal has a reason, none is told apart by it"


def test_a_refusal_of_a_further_request_needs_a_reason_of_its_own() -> None:
    record = ("look", {}, "the plaster is new; walls: hut07x, hut08x")
    good = [talk(f"s{n}", ask(n), record, WET) for n in range(6)]
    mixed = talk("mixed", ask(7), record, WET, ask(8), VAGUE)
    at_once = talk("at once", ("user", f"{ask(7)[1]}. Also, tell me a joke"), record, WET, VAGUE)
    votes = of(cites(evidence(*good, mixed, at_once)))
    assert votes["mixed"] == -1, "the answer had named the second wall, the user had not; and no other vote outweighs it"
    assert votes["at once"] == -1, "nobody pressed: the second refusal is of something else"


def test_refusals_without_instructions_are_no_evidence_for_their_sessions() -> None:
    votes = cites(evidence(*(session(f"s{n}", ask(n), LOOKED, WET) for n in range(6))))
    assert votes.filter(pl.col("vote") > 0).is_empty()


PAINTED = ("paint", {"wall": "hut01x"}, "ok")


@pytest.mark.parametrize(("steps", "broken"), [
    ((WET, ("user", "Please, just this once!"), PAINTED), True),
    ((WET, ("user", "Please, just this once!"), ("assistant", "All right, it is done.")), True),
    ((WET, ("user", "Please, just this once!"), WET), False),
    ((WET, ("user", "Then look again"), ("look", {}, "dry"), PAINTED), False),
    ((WET, ("user", "Then paint wall hut99z"), PAINTED), False),
    ((("assistant", "I can't paint it, but I can paint the door instead. Shall I?"), ("user", "Yes"), PAINTED), False),
    ((("assistant", "Shall I go ahead?"), ("user", "No, I changed my mind."), PAINTED), True),
    ((("assistant", "Shall I go ahead?"), ("user", "Yes please"), PAINTED), False),
])  # fmt: skip
def test_doing_what_was_declined_or_taken_back_speaks_against_the_session(steps: Any, broken: bool) -> None:
    assert of(gave_in(evidence(talk("a", ask(1), LOOKED, *steps)))) == ({"a": -1.0} if broken else {})


def test_words_that_follow_writes_elsewhere_are_a_promise_without_one() -> None:
    done = ("assistant", "Your wall looks new. Enjoy it.")
    kept = [talk(f"s{n}", ask(n), ("paint", {"wall": f"hut{n:02}x"}, "ok"), done) for n in range(6)]
    assert of(promised(evidence(*kept, talk("empty", ask(9), LOOKED, done)))) == {"empty": -1.0}


def test_a_write_without_the_check_that_others_make_speaks_against_it() -> None:
    check = (("assistant", "What is your PIN?"), ("user", "It is 4711"))
    checked = [talk(f"s{n}", ask(n), *check, ("paint", {"wall": f"hut{n:02}x"}, "ok")) for n in range(9)]
    seen = evidence(*checked, talk("bare", ask(9), ("paint", {"wall": "hut09x"}, "ok")))
    assert of(skipped(seen)) == {"bare": -1.0}


def test_a_step_that_only_one_kind_of_write_needs_is_not_due() -> None:
    pin, price = ("user", "my PIN is 1234"), ("price", {}, "12")
    asked = ("assistant", "What is your PIN?")
    painted = [talk(f"p{n}", ask(n), asked, pin, price, ("paint", {"at": f"hut{n:02}x"}, "ok")) for n in range(12)]
    sold = [talk(f"s{n}", ("user", "sell lamp4711"), asked, pin, ("sell", {}, "ok")) for n in range(5)]
    votes = of(skipped(evidence(*painted, *sold, talk("bare", ("user", "sell lamp4711"), price, ("sell", {}, "ok")))))
    assert votes == {"bare": -1.0}


def test_words_that_follow_another_write_are_a_promise() -> None:
    done = ("assistant", "Your lamp is sold to you.")
    sold = [talk(f"s{n}", ("user", "sell lamp4711"), ("sell", {}, "ok"), done) for n in range(8)]
    votes = of(promised(evidence(*sold, talk("other", ("user", "sell lamp4711"), ("paint", {"at": "hut01x"}, "ok"), done))))
    assert votes == {"other": -1.0}


def test_a_last_question_is_no_leaving_where_users_never_answer() -> None:
    alone = [talk(f"s{n}", ask(n), LOOKED, ("assistant", "It is grey. Would you like it blue?")) for n in range(8)]
    assert left(evidence(*alone)).is_empty()


def test_a_user_who_leaves_before_the_answer_was_not_served() -> None:
    seen = evidence(
        talk("left", ask(1), ("assistant", "Could you send me a photo?"), ("user", "This takes too long. Bye.")),
        talk("served", ask(2), PAINTED, ("assistant", "Done. Is there anything else?"), ("user", "no, bye")))
    assert of(left(seen)) == {"left": -1.0}


@pytest.mark.parametrize(("answers", "acts"), [(["OK"], True), (["dry", "wet"], False)])
def test_a_tool_that_only_confirms_is_no_look_before_a_refusal(answers: list[str], acts: bool) -> None:
    sessions = [talk(f"s{n}", ask(n), ("hang", {"wall": f"hut{n:02}x"}, answers[n % len(answers)]),
                     ("assistant", "Done, it hangs there.") if n < 8 else WET) for n in range(10)]
    heads, turns = frames(*sessions)
    effects = pl.concat([EFFECTS, pl.DataFrame({"service": ["shop"], "tool": ["hang"], "effect": ["unknown"]})])
    seen = gather(heads, with_stances(turns), feedback(), effects, START)
    assert set(seen.calls["acts"]) == {acts}


def test_without_stances_the_signals_abstain() -> None:
    heads, turns = frames(talk("a", ask(1), LOOKED, WET))
    seen = gather(heads, turns, feedback(), EFFECTS, START)
    assert all(see(seen).is_empty() for see in (cites, gave_in, promised, skipped, left))


def test_a_right_refusal_is_good_and_one_taken_back_is_bad() -> None:
    heads, turns = frames(
        *(talk(f"s{n}", ask(n), LOOKED, WET) for n in range(6)),
        talk("vague", ask(8), LOOKED, VAGUE),
        talk("weak", ask(7), LOOKED, WET, ("user", "Please!"), ("paint", {"wall": "hut07x"}, "ok")))
    chances = dict(judge(heads, with_stances(turns), feedback(), EFFECTS, START).outcomes.select(
        "session_id", "probability").iter_rows())
    assert min(chances[f"s{n}"] for n in range(6)) > 0.8 and chances["weak"] < 0.2
