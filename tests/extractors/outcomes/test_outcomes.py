"""Signals vote on what they see and abstain on the rest; the probability follows them."""

from __future__ import annotations

import json
import math
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from extractors.outcomes import judge
from extractors.outcomes.combining import BASE_RATE, combine
from extractors.outcomes.evidence import gather
from extractors.outcomes.feedback import from_feedback
from extractors.outcomes.signals import registered
from extractors.tasks import goals_of
from warehouse.records import Feedback, Outcome, Session, Turn, empty, frame, frame_schema

EFFECTS = pl.DataFrame(
    {"service": ["shop"] * 3, "tool": ["look", "paint", "sell"], "effect": ["read", "write", "write"]}
)
RESET = {"shop": "reset"}


def session(name: str, *steps: Any) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a session of messages ("user", text) and calls (tool, arguments, answer[, is_error])."""
    turns = []
    for place, step in enumerate(steps):
        row: dict[str, Any] = dict.fromkeys(frame_schema(Turn))
        row |= {"turn_id": f"{name}-{place}", "session_id": name, "service": "shop", "position": place}
        if step[0] in ("user", "assistant"):
            row |= {"kind": "message", "role": step[0], "content": step[1]}
        else:
            text = json.dumps(step[1], sort_keys=True)
            row |= {"kind": "call", "role": "assistant", "tool": step[0], "arguments": text, "arguments_raw": text}
            row |= {"content": step[2], "is_error": step[3] if len(step) > 3 else None, "requestor": "assistant"}
        turns.append(row)
    head: dict[str, Any] = dict.fromkeys(frame_schema(Session))
    head |= {"session_id": name, "source": "main", "service": "shop", "format": "made"}
    head |= {"n_messages": len(turns), "n_calls": 0}
    return head, turns


def frames(*sessions: tuple[dict[str, Any], list[dict[str, Any]]]) -> tuple[pl.DataFrame, pl.DataFrame]:
    return frame(Session, [head for head, _ in sessions]), frame(Turn, [turn for _, turns in sessions for turn in turns])


def feedback(*rows: tuple[str, str, str]) -> pl.DataFrame:
    return frame(Feedback, [
        {"feedback_id": f"f{i}", "session_id": s, "happened_at": None, "name": n, "value": v, "source": "main"}
        for i, (s, n, v) in enumerate(rows)
    ])  # fmt: skip


def signals_of(outcomes: pl.DataFrame, session_id: str) -> dict[str, float]:
    text = outcomes.filter(pl.col("session_id") == session_id)["signals"][0]
    return {signal["name"]: signal["vote"] for signal in json.loads(text)}


@pytest.mark.parametrize(
    ("name", "value", "vote"),
    [
        ("thumbs", "up", 1.0), ("thumbs", "Down", -1.0), ("rating", "good", 1.0), ("resolved", "yes", 1.0),
        ("resolved", "false", -1.0), ("reopened", "true", -1.0), ("reopened", "no", 1.0), ("decision", "👎", -1.0),
        ("Was that helpful?", "True", 1.0), ("Did it rain?", "True", None), ("colour", "green", None),
        ("rating", "", None),
    ],
)  # fmt: skip
def test_feedback_votes_only_where_the_direction_is_known(name: str, value: str, vote: float | None) -> None:
    sessions, turns = frames(session("a", ("user", "please paint it"), ("assistant", "done")))
    seen = gather(sessions, turns, feedback(("a", name, value)), EFFECTS, {})
    assert from_feedback(seen)["vote"].to_list() == ([] if vote is None else [vote])


def test_a_scale_of_five_is_read_as_a_scale_and_a_lone_1_as_yes() -> None:
    sessions, turns = frames(*(session(name, ("user", "hello there you all")) for name in "abcd"))
    rows = feedback(("a", "stars", "5"), ("b", "stars", "1"), ("c", "stars", "3"), ("d", "solved", "1"))
    votes = dict(from_feedback(gather(sessions, turns, rows, EFFECTS, {})).select("session_id", "vote").iter_rows())
    assert votes == {"a": 1.0, "b": -1.0, "c": 0.0, "d": 1.0}


def test_an_error_counts_only_where_it_was_never_recovered_from() -> None:
    sessions, turns = frames(
        session("recovered", ("user", "paint the door of hut77x red"), ("paint", {"at": "hut77x"}, "Error: no paint"),
                ("paint", {"at": "hut77x"}, "painted"), ("assistant", "done")),
        session("stuck", ("user", "paint the door of hut77x red"), ("paint", {"at": "hut77x"}, "Error: no paint", True),
                ("assistant", "done")),
        session("flagged_fine", ("user", "paint the door of hut77x red"),
                ("paint", {"at": "hut77x"}, "Error codes: none", False), ("assistant", "done")),
    )  # fmt: skip
    outcomes = judge(sessions, turns, empty(Feedback), EFFECTS).outcomes
    assert signals_of(outcomes, "stuck")["error_last"] == -1.0
    assert "error_last" not in signals_of(outcomes, "recovered")
    assert "error_last" not in signals_of(outcomes, "flagged_fine")


def test_having_written_is_no_signal_by_itself() -> None:
    ask = ("user", "what is the state of things today")
    sessions, turns = frames(
        session("wrote", ask, ("paint", {"n": 1}, "painted"), ("assistant", "so it is")),
        session("looked", ask, ("look", {"n": 1}, "fine"), ("assistant", "so it is")),
    )
    outcomes = judge(sessions, turns, empty(Feedback), EFFECTS, {"shop": "shared"}).outcomes
    assert outcomes["probability"].to_list() == [None, None]


def test_end_states_are_compared_in_reset_services_only_and_loners_abstain() -> None:
    ask = ("user", "please paint the north wall of hut77x blue")
    same = [session(name, ask, ("paint", {"c": "blue"}, "ok"), ("assistant", "ok")) for name in ("a", "b", "c")]
    other = session("d", ask, ("paint", {"c": "red"}, "ok"), ("assistant", "ok"))
    loner = session("e", ("user", "sell lamp4711 quickly"), ("sell", {"x": "lamp4711"}, "sold"), ("assistant", "ok"))
    sessions, turns = frames(*same, other, loner)
    outcomes = judge(sessions, turns, empty(Feedback), EFFECTS, RESET).outcomes
    votes = {name: signals_of(outcomes, name).get("end_state") for name in "abcde"}
    assert votes["a"] == votes["b"] == votes["c"]
    assert votes["a"] is not None and votes["d"] is not None and votes["a"] > 0 > votes["d"]
    assert votes["e"] is None
    shared = judge(sessions, turns, empty(Feedback), EFFECTS, {"shop": "shared"}).outcomes
    assert all("end_state" not in signals_of(shared, name) for name in "abcde")


def test_numbers_and_texts_for_people_do_not_part_end_states() -> None:
    ask = ("user", "please sell lamp4711 for ten")
    sessions, turns = frames(
        session("a", ask, ("sell", {"for": 10, "note": "sold it with great joy today"}, "ok"), ("assistant", "ok")),
        session("b", ask, ("sell", {"for": 10.0, "note": "a lamp that was sold at last"}, "ok"), ("assistant", "ok")),
    )
    votes = [signals_of(judge(sessions, turns, empty(Feedback), EFFECTS, RESET).outcomes, name) for name in "ab"]
    assert votes[0]["end_state"] == votes[1]["end_state"] > 0


def test_a_write_of_a_name_that_nobody_said_is_told() -> None:
    sessions, turns = frames(
        session("made_up", ("user", "sell my lamp please now"), ("sell", {"x": "lamp4711"}, "ok"), ("assistant", "ok")),
        session("shown", ("user", "sell my lamp please now"), ("look", {}, '{"id": "lamp4711"}'),
                ("sell", {"x": "lamp4711"}, "ok"), ("assistant", "ok")),
    )  # fmt: skip
    outcomes = judge(sessions, turns, empty(Feedback), EFFECTS).outcomes
    assert signals_of(outcomes, "made_up")["untraced"] == -1.0
    assert "untraced" not in signals_of(outcomes, "shown")
    ask = ("user", "sell my lamp please now")
    several = [session(f"s{n}", ask, ("sell", {"key": f"9f3a{n}77c0"}, "ok"), ("assistant", "ok")) for n in range(6)]
    keys = judge(*frames(*several), empty(Feedback), EFFECTS).outcomes
    assert "untraced" not in signals_of(keys, "s0"), "all agents draw such a key"


def test_unasked_and_missing_writes_are_told() -> None:
    def painting(name: str, *extra: Any) -> Any:
        return session(name, ("user", "please paint the wall"), *extra, ("assistant", "ok"))

    def selling(name: str, *extra: Any) -> Any:
        return session(name, ("user", "kindly sell that lamp"), *extra, ("assistant", "ok"))

    paint, sell = ("paint", {"c": "blue"}, "ok"), ("sell", {"c": "blue"}, "ok")
    sessions, turns = frames(
        *(painting(f"p{i}", paint) for i in range(8)), *(selling(f"s{i}", sell) for i in range(8)),
        painting("unasked", paint, sell), selling("missing"),
    )  # fmt: skip
    goals = goals_of(sessions, turns, EFFECTS)
    outcomes = judge(sessions, turns, empty(Feedback), EFFECTS, goals=goals).outcomes
    assert signals_of(outcomes, "unasked")["as_asked"] == -1.0
    assert signals_of(outcomes, "missing")["as_asked"] == -1.0
    assert all(signals_of(outcomes, f"{kind}{i}")["as_asked"] == 1.0 for kind in "ps" for i in range(8))
    assert "as_asked" not in signals_of(judge(sessions, turns, empty(Feedback), EFFECTS).outcomes, "missing")


def test_an_argument_other_than_the_words_say_is_told() -> None:
    colours = ("blue", "red", "green")

    def painting(n: int) -> Any:
        wall, colour = f"wall4{n:03}", colours[n % 3]
        given = "red" if n == 12 else colour
        return session(f"p{n}", ("user", f"please paint {wall} in {colour}"), ("paint", {"at": wall, "c": given}, "ok"),
                       ("assistant", "ok"))  # fmt: skip

    sessions, turns = frames(*(painting(n) for n in range(14)))
    outcomes = judge(sessions, turns, empty(Feedback), EFFECTS, goals=goals_of(sessions, turns, EFFECTS)).outcomes
    assert [signals_of(outcomes, f"p{n}")["as_asked"] for n in (0, 11, 12, 13)] == [1.0, 1.0, -1.0, 1.0]


@pytest.mark.parametrize("wrong", [3, 5])
def test_what_a_session_is_closed_with_counts_as_the_other_signals_tell(wrong: int) -> None:
    def served(n: int) -> Any:
        bad = n % wrong == 0
        state = "open" if bad == (wrong == 3) else "solved"
        words, tool = ("please paint the wall", "paint") if n % 2 else ("kindly sell that lamp", "sell")
        return session(f"c{n:02}", ("user", words), *([] if bad else [(tool, {"c": "blue"}, "ok")]),
                       ("file", {"case": f"k{n:04}", "state": state}, "ok"), ("assistant", "ok"))  # fmt: skip

    sessions, turns = frames(*(served(n) for n in range(40)))
    effects = pl.concat([EFFECTS, EFFECTS.head(1).with_columns(tool=pl.lit("file"), effect=pl.lit("write"))])
    judged = judge(sessions, turns, empty(Feedback), effects, goals=goals_of(sessions, turns, effects))
    worth = {(row["signal"], row["side"]): row for row in judged.worth.to_dicts()}
    assert worth["closing", "for"]["log_odds"] > 0 > worth["closing", "against"]["log_odds"]
    n_bad = sum(n % wrong == 0 for n in range(40))
    assert worth["closing", "against"]["n_votes"] == n_bad and worth["closing", "against"]["coverage"] == n_bad / 40
    assert worth["closing", "for"]["agreement"] > 0.9
    held = {row["session_id"]: row["probability"] for row in judged.outcomes.to_dicts()}
    assert max(held[f"c{n:02}"] for n in range(0, 40, wrong)) < min(held[f"c{n:02}"] for n in range(40) if n % wrong)


def test_tests_claims_and_a_second_request_are_seen() -> None:
    ask, paint = ("user", "please paint wall4711 in blue"), ("paint", {"at": "wall4711", "c": "blue"}, "ok")
    others = [session(f"o{i}", ("user", f"please paint {wall} in blue"), ("paint", {"at": wall, "c": "blue"}, "ok"),
                      ("assistant", "It has been painted.")) for i in range(8) for wall in [f"wall4{i:03}"]]  # fmt: skip
    sessions, turns = frames(
        session("claims", ask, ("assistant", "It has been painted.")), session("again", ask, paint, ("assistant", "ok")),
        session("red", ask, ("look", {}, "== 2 failed, 7 passed in 1 s =="), ("assistant", "ok")),
        session("green", ask, ("look", {}, "1 failed"), ("look", {}, "== 9 passed in 1 s =="), ("assistant", "ok")), *others,
    )  # fmt: skip
    start = datetime(2031, 1, 1, tzinfo=UTC)
    days = {"again": 2, "red": 40, "green": 80}
    at = [start + timedelta(days=days.get(name, 0)) for name in sessions["session_id"]]
    sessions = sessions.with_columns(pl.Series("started_at", at, pl.Datetime("us", "UTC")))
    seen = judge(sessions, turns, empty(Feedback), EFFECTS, goals=goals_of(sessions, turns, EFFECTS)).outcomes
    assert signals_of(seen, "claims")["claimed"] == -1.0 and "claimed" not in signals_of(seen, "o1")
    assert signals_of(seen, "claims")["asked_again"] == -1.0 and "asked_again" not in signals_of(seen, "again")
    assert (signals_of(seen, "red")["tests"], signals_of(seen, "green")["tests"]) == (-1.0, 1.0)


def test_a_session_that_nothing_speaks_of_is_abstained_on_and_the_decision_says_why() -> None:
    ask = ("user", "do that again please")
    sessions, turns = frames(session("empty"), session("silent", ask, ("assistant", "ok")),
                             session("thanked", ask, ("assistant", "ok"), ("user", "thanks")))
    judged = judge(sessions, turns, empty(Feedback), EFFECTS)
    rows = {row["session_id"]: row for row in judged.outcomes.to_dicts()}
    assert rows["thanked"]["probability"] > BASE_RATE
    assert all(rows[name][each] is None for name in ("empty", "silent") for each in ("probability", "low", "high", "blind"))
    assert judged.decisions.select("subject", "reason").rows() == [("empty", "nothing_to_judge"), ("silent", "no_signal")]
    said = judge(sessions, turns, feedback(("silent", "audit", "good")), EFFECTS, reviews=("audit",))
    assert dict(said.outcomes.select("session_id", "probability").iter_rows())["silent"] > 0.95, "a review speaks"


def test_correlated_votes_of_a_group_count_once() -> None:
    def chance(*names: str) -> float:
        rows = {"session_id": ["s"] * len(names), "name": list(names), "vote": [-1.0] * len(names)}
        return float(combine(pl.DataFrame(rows), {"s": "shop"}, registered()).probabilities["probability"][0])

    assert chance("complaint", "repeats") == chance("complaint")
    assert chance("untraced", "as_asked") < chance("untraced"), "an invented name is another observation"
    assert chance("untraced", "complaint") < chance("untraced")


@pytest.mark.parametrize("good_when_handed", [True, False])
def test_the_sign_of_a_signal_comes_from_the_others(good_when_handed: bool) -> None:
    rated = [(f"s{i}", "feedback", 1.0 if (i % 2 == 0) == good_when_handed else -1.0) for i in range(80)]
    handed = [(f"s{i}", "handover", 1.0) for i in range(0, 80, 2)] + [("new", "handover", 1.0)]
    votes = pl.DataFrame([*rated, *handed], schema=["session_id", "name", "vote"], orient="row")
    services = dict.fromkeys(votes["session_id"].to_list(), "shop") | {"plain": "shop"}
    combined = combine(votes, services, registered())
    chance = dict(combined.probabilities.select("session_id", "probability").iter_rows())
    worth = {(each.group, each.side): each for each in combined.worth}
    assert (chance["new"] > chance["plain"]) == good_when_handed and abs(chance["new"] - chance["plain"]) > 0.25
    assert (worth["handover", 1].log_odds > 1.0) == good_when_handed and worth["handover", 1].n_votes == 41
    assert worth["feedback", -1].log_odds < -1.0 < 1.0 < worth["feedback", 1].log_odds


def test_planted_accuracies_are_found_again_without_labels() -> None:
    draw = random.Random(7)
    accuracy = {"feedback": 0.95, "complaint": 0.8, "error_last": 0.7, "thanks": 0.55}
    truth, rows = {}, []
    for number in range(1500):
        truth[f"s{number}"] = good = draw.random() < 0.7
        rows += [(f"s{number}", name, 1.0 if good == (draw.random() < share) else -1.0) for name, share in accuracy.items()]
    combined = combine(
        pl.DataFrame(rows, schema=["session_id", "name", "vote"], orient="row"), dict.fromkeys(truth, "shop"), registered())
    worth = {registered()[name].group: share for name, share in accuracy.items()}
    for each in combined.worth:
        share = worth[each.group]
        expected = math.log(share / (1 - share)) * each.side
        assert each.log_odds == pytest.approx(expected, abs=0.6), each
    chances = dict(combined.probabilities.select("session_id", "probability").iter_rows())
    assert sum(chances.values()) / len(chances) == pytest.approx(0.7, abs=0.05)
    sure = [session for session, chance in chances.items() if chance > 0.9]
    assert sum(truth[session] for session in sure) / len(sure) > 0.9


def test_a_session_is_contested_by_what_is_worth_something_against_it() -> None:
    praised = [(f"s{i}", "thanks", 1.0) for i in range(20)]
    against = [("s0", "complaint", -1.0), ("s1", "manner", -0.4), ("s2", "manner", -0.05), ("s3", "differs", 1.0)]
    votes = pl.DataFrame([*praised, *against], schema=["session_id", "name", "vote"], orient="row")
    signals = {**registered(), "manner": registered()["thanks"]._replace(name="manner", group="manner", graded=True)}
    rows = combine(votes, {f"s{i}": "shop" for i in range(20)}, signals).probabilities
    assert rows.filter("is_contested")["session_id"].to_list() == ["s0", "s1"], "what is little or unsigned is no objection"


def test_what_people_say_counts_in_full_beside_an_anchor() -> None:
    anchored = [(f"s{i}", "end_state", 0.4 if i % 2 else -0.4) for i in range(60)]
    said = [("s0", "feedback", 1.0), ("s1", "feedback", -1.0), ("s2", "thanks", 1.0)]
    votes = pl.DataFrame([*anchored, *said], schema=["session_id", "name", "vote"], orient="row")
    rows = combine(votes, {f"s{i}": "shop" for i in range(60)}, registered()).probabilities
    chance, blind = (dict(rows.select("session_id", name).iter_rows()) for name in ("probability", "blind"))
    assert chance["s0"] > 0.75 and chance["s1"] < 0.25, "rated otherwise than its end state says"
    assert blind["s0"] == pytest.approx(blind["s4"], abs=0.02) and abs(chance["s2"] - chance["s4"]) < 0.1


def test_services_of_the_same_tools_are_compared_with_each_other() -> None:
    ask = ("user", "please paint the north wall of hut77x blue")
    heads, turns = zip(*(session(name, ask, ("paint", {"c": "blue"}, "ok"), ("sell", {}, "ok"), ("look", {}, "ok"))
                         for name in "ab"), strict=True)
    for row in (heads[1], *turns[1]):
        row["service"] = "store"
    effects = pl.concat([EFFECTS, EFFECTS.with_columns(pl.lit("store").alias("service"))])
    rows = frame(Session, list(heads)), frame(Turn, [turn for each in turns for turn in each])
    judged = judge(*rows, empty(Feedback), effects, {"shop": "reset", "store": "reset"}).outcomes
    assert all(signals_of(judged, name)["end_state"] > 0 for name in "ab")
    apart = judge(*rows, empty(Feedback), effects, {"shop": "reset", "store": "shared"}).outcomes
    assert all("end_state" not in signals_of(apart, name) for name in "ab")


def test_what_reviewers_found_is_known_and_says_which_model_made_the_rest() -> None:
    ask = ("user", "what is the state of things today")
    sessions, turns = frames(*(session(f"s{i}", ask, ("look", {"n": 1}, "fine"), ("assistant", "so")) for i in range(4)))
    rows = feedback(("s0", "audit", "good"), ("s1", "audit", "bad"), ("s2", "audit", "green"))
    told = judge(sessions, turns, rows, EFFECTS, reviews=("audit",)).outcomes
    chance = dict(told.select("session_id", "probability").iter_rows())
    assert chance["s0"] > 0.95 and chance["s1"] < 0.05 and chance["s2"] == chance["s3"]
    assert "feedback" not in signals_of(told, "s0"), "a review is no rating"
    assert ((told["low"] <= told["probability"]) & (told["probability"] <= told["high"])).all()
    assert told["model"].n_unique() == 1 and told["model"][0] != judge(sessions, turns, rows, EFFECTS).outcomes["model"][0]


CALLS = st.tuples(st.sampled_from(["look", "paint", "sell"]),
                  st.dictionaries(st.sampled_from("xy"), st.sampled_from(["lamp4711", "red", 3])),
                  st.sampled_from(["ok", "Error: no", None]))  # fmt: skip
WORDS = st.tuples(st.sampled_from(["user", "assistant"]),
                  st.sampled_from(["thanks, bye", "that is wrong", "paint it", "sell lamp4711 also paint", "", "…"]))

STEPS = st.lists(st.one_of(CALLS, WORDS), max_size=5)


@settings(deadline=None, max_examples=20)
@given(st.lists(STEPS, max_size=6), st.randoms(use_true_random=False), st.booleans())
def test_every_session_has_one_outcome_whatever_the_order_of_rows(steps: list[Any], order: Any, reset: bool) -> None:
    sessions, turns = frames(*(session(f"s{i}", *each) for i, each in enumerate(steps)))
    rated = feedback(*((f"s{i}", "thumbs", "up") for i in range(0, len(steps), 2)))
    starts = {"shop": "reset" if reset else "shared"}
    judged = judge(sessions, turns, rated, EFFECTS, starts)
    assert judged.outcomes["session_id"].to_list() == [f"s{i}" for i in range(len(steps))]
    assert judged.outcomes.schema == pl.Schema(frame_schema(Outcome))
    chances = judged.outcomes["probability"].drop_nulls()
    assert ((chances >= 0) & (chances <= 1)).all()
    places = list(range(turns.height))
    order.shuffle(places)
    again = judge(sessions.reverse(), turns[places], rated.reverse(), EFFECTS.reverse(), starts)
    assert again.outcomes.equals(judged.outcomes) and again.decisions.equals(judged.decisions)


@pytest.mark.parametrize("borne_out", [True, False])
def test_ends_that_agree_make_a_session_nearly_sure_only_where_settled_votes_bear_them_out(borne_out: bool) -> None:
    names = [f"s{n:03}" for n in range(120)]
    apart = {name: n % 3 == 0 for n, name in enumerate(names)}
    against = {name: apart[name] if borne_out else n % 2 == 0 for n, name in enumerate(names)}
    rows = [(name, "end_state", -0.7 if apart[name] else 0.77) for name in names]
    rows += [(name, "in_part", 0.5) for name in names if not apart[name]]
    rows += [(name, "promised", -1.0) for n, name in enumerate(names) if against[name] and n % 4 < 2]
    votes = pl.DataFrame(rows, schema={"session_id": pl.String, "name": pl.String, "vote": pl.Float64}, orient="row")
    chances = dict(combine(votes, dict.fromkeys(names, "shop"), registered()).probabilities.select(
        "session_id", "probability").iter_rows())
    best = max(chances.values())
    assert best >= 0.9 if borne_out else best < 0.9


def test_work_in_which_nothing_finds_a_fault_is_not_doubted_for_want_of_praise() -> None:
    faulty, plain, praised = ([f"{kind}{n}" for n in range(n)] for kind, n in (("bad", 30), ("plain", 40), ("good", 30)))
    rows = [{"session_id": name, "name": "promised", "vote": -1.0} for name in faulty]
    rows += [{"session_id": name, "name": "cites", "vote": 1.0} for name in praised]   # which praises refusals alone
    names = [*faulty, *plain, *praised]
    chances = dict(combine(pl.DataFrame(rows), dict.fromkeys(names, "shop"), registered()).probabilities.select(
        "session_id", "probability").iter_rows())
    assert chances["bad0"] < 0.15 and 0.7 < chances["plain0"] < 0.9 < chances["good0"], "it was 0.65"
