"""What every signal keeps to, ours and others': the contract."""

from __future__ import annotations

import polars as pl
import pytest

from extractors.outcomes.consensus import end_state, in_part, right
from extractors.outcomes.endings import unserved
from extractors.outcomes.evidence import VOTES, gather
from extractors.outcomes.manner import amount, excess, manner
from extractors.outcomes.signals import OURS, Signal, registered
from extractors.tasks import goals_of
from tests.extractors.outcomes.test_outcomes import EFFECTS, RESET, feedback, frames, session
from warehouse.records import Feedback, Session, Turn, empty

ASK = ("user", "please paint the north wall of hut77x blue, also sell lamp4711")
SESSIONS = [
    session("a", ASK, ("paint", {"c": "blue"}, "Error: no"), ("assistant", "I transferred you to a human agent")),
    session("b", ASK, ("paint", {"c": "red", "at": "hut99y"}, "ok"), ("assistant", "done"), ("user", "that is wrong")),
    session("c", ASK, ASK, ("assistant", "ok"), ("user", "thanks, great")),
    session("d", ("user", "well well")), session("e"),
]


@pytest.mark.parametrize("signal", registered().values(), ids=lambda signal: signal.name)
def test_a_signal_votes_at_most_once_on_a_session_within_bounds_and_in_order(signal: Signal) -> None:
    sessions, turns = frames(*SESSIONS)
    goals = goals_of(sessions, turns, EFFECTS)
    seen = gather(sessions, turns, feedback(("a", "thumbs", "up"), ("b", "solved", "no")), EFFECTS, RESET, goals)
    votes = signal.see(seen)
    assert votes.schema == pl.Schema(VOTES)
    assert votes["session_id"].is_sorted() and votes["session_id"].is_unique().all()
    assert votes["session_id"].is_in(sessions["session_id"].to_list()).all()
    assert votes["vote"].is_between(-1.0, 1.0).all() and votes["description"].str.len_chars().min() != 0
    of_session = turns.select("turn_id", "session_id")
    proof = votes.select("session_id", "evidence").explode("evidence").drop_nulls("evidence")
    if signal.name != "feedback":
        places = of_session.rename({"turn_id": "evidence"})
        assert proof.join(places, on=["evidence", "session_id"], how="anti").is_empty()
    shuffled = gather(sessions.reverse(), turns.reverse(), seen.feedback, EFFECTS.reverse(), RESET, goals.reverse())
    assert signal.see(shuffled).equals(votes), "the order of rows says nothing"


@pytest.mark.parametrize("signal", OURS, ids=lambda signal: signal.name)
def test_a_signal_abstains_where_there_is_nothing(signal: Signal) -> None:
    seen = gather(empty(Session), empty(Turn), empty(Feedback), EFFECTS.clear(), {})
    assert signal.see(seen).is_empty()


def test_the_right_end_state_is_the_one_that_is_hard_to_reach_by_chance() -> None:
    agreed, alone = right({"sold": 2, "": 1})
    assert agreed > 0.55 > 0.5 > alone
    tied, idle = right({"sold": 12, "": 12})
    assert tied > 0.7 and idle < 0.3, "many ways to err end in nothing; only the right one in the same long order"
    assert right({"": 3})[0] > 0.5, "where nobody writes, nothing was to be written"
    apart = right({"a": 1, "b": 1, "c": 1})
    assert max(apart) < 0.45 and len(set(apart)) == 1


def test_a_session_that_wrote_a_part_of_what_others_wrote_stands_between() -> None:
    ask = ("user", "please paint the north wall of hut77x blue and sell lamp4711")
    paint, sell = ("paint", {"c": "blue"}, "ok"), ("sell", {"x": "lamp4711"}, "sold")
    sessions, turns = frames(
        *(session(f"whole{i}", ask, paint, sell, ("assistant", "ok")) for i in range(7)),
        session("part", ask, paint, ("assistant", "ok")), session("none", ask, ("assistant", "ok")))
    votes = dict(in_part(gather(sessions, turns, feedback(), EFFECTS, RESET)).select("session_id", "vote").iter_rows())
    assert votes["whole0"] > votes["part"] > votes["none"] and len(votes) == 9
    few = sessions["session_id"].head(7)
    kept = turns.filter(pl.col("session_id").is_in(few.implode()))
    assert in_part(gather(sessions.head(7), kept, feedback(), EFFECTS, RESET)).is_empty()


def test_far_more_calls_than_usual_speak_against_a_session_and_few_say_nothing() -> None:
    ask = ("user", "please paint the north wall of hut77x blue")
    sessions, turns = frames(
        *(session(f"s{i}", ask, *[("look", {"n": n}, "grey") for n in range(2 + i % 2)]) for i in range(8)),
        session("many", ask, *[("look", {"n": n}, "grey") for n in range(20)]), session("none", ask))
    chances = sessions.select("session_id", pl.lit(0.6).alias("probability"))
    seen = gather(sessions, turns, feedback(), EFFECTS, RESET)
    votes = dict(excess(seen, chances).select("session_id", "vote").iter_rows())
    assert votes.keys() == {"many"} and -0.4 < votes["many"] < 0.0
    assert excess(seen, chances.filter(pl.col("session_id") != "many")).filter(pl.col("session_id") == "many").is_empty()
    alike, alike_turns = frames(*(session(f"s{i}", ask, ("look", {}, "grey")) for i in range(4)))
    assert excess(gather(alike, alike_turns, feedback(), EFFECTS, RESET), chances.head(4)).is_empty()


def test_what_users_do_with_their_own_tools_belongs_to_the_end_state() -> None:
    ask = ("user", "please paint the north wall of hut77x blue")
    sessions, turns = frames(
        *(session(f"blue{i}", ask, ("look", {}, "grey"), ("paint", {"c": "blue"}, "ok")) for i in range(5)),
        session("none", ask, ("look", {}, "grey"), ("assistant", "ok")))
    by_user = turns.with_columns(
        pl.when(pl.col("tool") == "paint").then(pl.lit("user")).otherwise("requestor").alias("requestor"))
    seen = gather(sessions, by_user, feedback(), EFFECTS, RESET)
    assert seen.writes.is_empty()
    votes = dict(end_state(seen).select("session_id", "vote").iter_rows())
    assert votes["blue0"] > 0.0 > votes["none"]


def test_a_session_that_never_got_as_far_as_a_call_has_come_to_no_end() -> None:
    ask = ("user", "please paint the north wall of hut77x blue")
    served = [session(f"s{i}", ask, ("look", {}, "grey"), ("assistant", "it may not be painted")) for i in range(8)]
    broken = [session(name, ask, *steps, ("assistant", "which hut?"))
              for name, steps in (("off", ()), ("failed", [("look", {}, "Error: no")]))]
    seen = gather(*frames(*served, *broken), feedback(), EFFECTS, RESET)
    assert dict(unserved(seen).select("session_id", pl.col("vote") < -0.3).iter_rows()) == {"off": True, "failed": True}
    assert end_state(seen)["session_id"].to_list() == [f"s{i}" for i in range(8)]
    chatty = gather(*frames(*served[:4], *broken), feedback(), EFFECTS, RESET)
    assert unserved(chatty).is_empty() and end_state(chatty).height == 6, "words alone are an answer there"


@pytest.mark.parametrize("better", ["wrote", "looked"])
def test_what_doing_much_is_worth_is_learnt_from_other_requests(better: str) -> None:
    def asking(n: int) -> tuple[str, str]:
        return ("user", f"please see to the wall of hut{n:02}x{n:02}")

    wrote = [session(f"wrote{n}", asking(n), ("paint", {"n": n}, "ok"), ("assistant", "ok")) for n in range(10)]
    looked = [session(f"looked{n}", asking(n), ("look", {"n": n}, "ok"), ("assistant", "ok")) for n in range(10)]
    seen = gather(*frames(*wrote, *looked), feedback(), EFFECTS, {"shop": "shared"})
    names = seen.session_requests["session_id"].to_list()
    told = pl.DataFrame({"session_id": names, "probability": [0.7 if name.startswith(better) else 0.4 for name in names]})
    for learn in (amount, manner):
        votes = dict(learn(seen, told).select("session_id", "vote").iter_rows())
        assert all((votes[name] > 0) == name.startswith(better) for name in names), learn
    alike = gather(*frames(*wrote), feedback(), EFFECTS, {"shop": "shared"})
    assert amount(alike, told).is_empty() and manner(alike, told).is_empty(), "what all do and say tells nobody apart"
