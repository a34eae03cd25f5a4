"""Mining: good sessions propose, bad sessions dispose, and what cannot be known is a decision."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from env_builder.rewards import Rewards, mine
from env_builder.rewards.corrections import Corrections
from env_builder.rewards.persons import StatedCheck
from env_builder.rewards.policies import Ask
from env_builder.runtime.canonical import canonical
from env_builder.runtime.grading import grade
from env_builder.runtime.records import Episode
from warehouse.records import Outcome, Session, Task, Turn, frame

CLOSED: dict[str, Any] = {"documents": {}, "write_calls": []}
OPENED: dict[str, Any] = {"documents": {"door/7": '{"open":true}'}, "write_calls": []}
LIFTED: dict[str, Any] = {"documents": {"door/7": '{"open":"lifted"}'}, "write_calls": []}
Step = tuple[Any, ...]
"""("user" | "agent", text) or (tool, arguments, answer)."""

ASK: Step = ("user", "Door 7 please, by 2024-05-15; my number is 5550123")
LOOK: Step = ("look", {"door": 7}, '{"open": false, "code": 4711, "fee": 12.5, "owner": "AB-123"}')
OPEN: Step = ("open", {"door": 7}, "done")
HAND: Step = ("escalate", {"text": "The caller wants door seven opened and nobody here is allowed to do that."}, "ok")


class Desk:
    """Sessions of one task in the tables' own shapes."""

    def __init__(self, goal: str = "g") -> None:
        self.goal = goal
        self.turns: list[dict[str, Any]] = []
        self.outcomes: list[dict[str, Any]] = []
        self.differences: list[tuple[str, str | None]] = []

    def session(self, name: str, probability: float | None, end: dict[str, Any] | None, *steps: Step,
                is_contested: bool = False) -> None:
        empty: dict[str, Any] = dict.fromkeys(Turn.model_fields)
        for position, step in enumerate(steps):
            row = {**empty, "turn_id": f"{name}{position}", "session_id": name, "service": "main", "position": position}
            if step[0] in ("user", "agent", "system"):
                role = "assistant" if step[0] == "agent" else step[0]
                row |= {"kind": "message", "role": role, "content": step[1]}
            else:
                row |= {"kind": "call", "role": "assistant", "tool": step[0], "content": step[2]}
                row |= {"arguments": json.dumps(step[1])}
            self.turns.append(row)
        self.outcomes.append({"session_id": name, "probability": probability, "is_contested": is_contested, "signals": "[]"})
        self.differences.append((name, None if end is None else json.dumps(end)))

    def mined(
        self, said: Iterable[StatedCheck] = (), ask: Ask | None = None, corrections: Corrections | None = None,
    ) -> Rewards:
        names = [row["session_id"] for row in self.outcomes]
        good = [row["session_id"] for row in self.outcomes if (row["probability"] or 0) > 0.5]
        empty: dict[str, Any] = dict.fromkeys(Task.model_fields)
        task = {**empty, "task_id": "t", "service": "main", "family": "f", "slots": "{}", "goal": self.goal, "split": "train"}
        session = {**dict.fromkeys(Session.model_fields), "source": "x", "service": "main", "format": "x"}
        return mine(
            frame(Task, [{**task, "session_ids": names, "succeeded_session_ids": good}]),
            frame(Session, [{**session, "session_id": name, "n_messages": 1, "n_calls": 1} for name in names]),
            frame(Turn, self.turns),
            frame(Outcome, self.outcomes),
            pl.DataFrame(
                self.differences, schema={"session_id": pl.String(), "difference": pl.String()}, orient="row"
            ),
            pl.DataFrame(
                [("main", "look", "read"), ("main", "open", "write"), ("main", "escalate", "unknown")],
                schema=["service", "tool", "effect"], orient="row",
            ).with_columns(presumed="effect", counted="effect"),
            said, ask, corrections,
        )

    def rubric(self) -> dict[str, Any]:
        return {"checks": json.loads(self.mined().rubrics["checks"][0])}


def kinds(rubric: dict[str, Any], role: str = "gate") -> list[str]:
    return sorted(check["kind"] for check in rubric["checks"] if check["role"] == role)


def reward(rubric: dict[str, Any], end: dict[str, Any], *steps: Step) -> float | None:
    rows = [
        {"kind": "say", "content": step[1]} if step[0] == "agent"
        else {"kind": "call", "tool": step[0], "arguments": step[1], "is_error": False, "tier": "recorded"}
        for step in steps
    ]  # fmt: skip
    return grade(rubric, Episode(tuple(rows), end, (), frozenset({"open", "escalate"}))).reward


def test_the_end_of_a_good_session_is_the_gate_and_nothing_else_may_change() -> None:
    desk = Desk()
    desk.session("good", 0.9, OPENED, ASK, LOOK, OPEN, ("agent", "Done, code 4711."))
    desk.session("bad", 0.1, LIFTED, ASK, OPEN, ("agent", "Done."))
    rubric = desk.rubric()
    assert kinds(rubric) == ["not_denied", "state", "untouched"]
    assert reward(rubric, OPENED) == 1.0 and reward(rubric, LIFTED) == reward(rubric, CLOSED) == 0.0
    state = next(check for check in rubric["checks"] if check["kind"] == "state")
    assert state["provenance"] == {
        "supporting": ["good"], "contrary": [], "support": 1, "confidence": 0.9,
        "events": {"supporting": ["good2"], "contrary": []},
        "values": [{"tool": "open", "argument": "door", "value": "7", "source": "user"}],
    }, "the call that opened the door bears it"


def test_free_text_counts_neither_among_arguments_nor_where_it_stands_in_what_changed() -> None:
    def ended(note: str, is_open: bool = True) -> dict[str, Any]:
        door = {"open": is_open, "notes": [{"text": note, "by": "agent"}]}
        return {"documents": {"door/7": json.dumps(door)}, "write_calls": []}

    note = "The caller stands outside of door seven and has shown her card twice."
    desk = Desk()
    desk.session("good", 0.9, ended(note), ASK, LOOK, ("open", {"door": 7, "note": note}, "done"), ("agent", "Done."))
    rubric, other = desk.rubric(), "She says that she lost the key of this door on her way to work."
    acted = ("open", {"door": 7, "note": other}, "done")
    assert reward(rubric, ended(other), acted) == 1.0
    assert reward(rubric, ended(other, is_open=False), acted) == 0.0


def test_words_that_deny_the_deed_are_not_paid_unless_good_sessions_say_so() -> None:
    desk = Desk()
    desk.session("good", 0.9, OPENED, ASK, OPEN, ("agent", "It is open."))
    rubric = desk.rubric()
    for words, worth in (("Bitte sehr.", 1.0), ("I have not done anything.", 0.0)):
        assert reward(rubric, OPENED, OPEN, ("agent", words)) == worth
    assert reward(rubric, OPENED, ("agent", "I have not done anything yet."), OPEN, ("agent", "Done.")) == 1.0
    quiet = Desk()
    quiet.session("good", 0.9, OPENED, ASK, ("agent", "Let me see."), OPEN)
    assert reward(quiet.rubric(), OPENED, OPEN, ("agent", "I have not done anything.")) == 0.0
    other = Desk()
    other.session("good", 0.9, OPENED, ASK, OPEN, ("agent", "I could not close it."))
    assert reward(other.rubric(), OPENED, OPEN, ("agent", "I cannot close it, sorry.")) == 1.0
    assert reward(other.rubric(), OPENED, OPEN, ("agent", "Nothing was changed.")) == 0.0


def test_certain_sessions_give_alternatives_and_only_those_seen() -> None:
    desk = Desk()
    desk.session("one", 0.95, OPENED, ASK, OPEN, ("agent", "Done."))
    desk.session("two", 0.9, LIFTED, ASK, OPEN, ("agent", "Done."))
    desk.session("guess", 0.8, CLOSED, ASK, ("agent", "Done."))
    rubric = desk.rubric()
    other = {"documents": {"door/7": '{"open":"kicked"}'}, "write_calls": []}
    assert reward(rubric, OPENED) == reward(rubric, LIFTED) == 1.0
    assert reward(rubric, other) == reward(rubric, CLOSED, ("agent", "Done.")) == 0.0


def test_where_likely_sessions_disagree_the_most_decide_and_else_nobody() -> None:
    desk = Desk()
    desk.session("one", 0.8, OPENED, ASK, OPEN, ("agent", "Done."))
    desk.session("two", 0.7, LIFTED, ASK, OPEN, ("agent", "Done."))
    assert desk.mined().decisions.select("kept", "reason").rows() == [(False, "no_agreed_end_state")]
    desk.session("three", 0.6, LIFTED, ASK, OPEN, ("agent", "Lifted."))
    mined = desk.mined()
    rubric = {"checks": json.loads(mined.rubrics["checks"][0])}
    assert reward(rubric, LIFTED) == 1.0 and reward(rubric, OPENED) == 0.0
    assert {"say": "Done."} in json.loads(mined.rubrics["solution"][0]), "the solution is one that agrees"


def test_where_as_many_disagree_one_that_is_likely_right_alone_decides() -> None:
    desk = Desk()
    desk.session("one", 0.85, OPENED, ASK, OPEN, ("agent", "Done."))
    desk.session("two", 0.6, LIFTED, ASK, OPEN, ("agent", "Done."))  # odds 5.7, 1.5 and 1 for none: .70, .18, .12
    rubric = desk.rubric()
    assert reward(rubric, OPENED) == 1.0 and reward(rubric, LIFTED) == 0.0


@pytest.mark.parametrize(("probability", "is_contested", "reason"), [
    (0.6, False, "rubric_mined"), (0.6, True, "doubtful_success"), (0.95, True, "rubric_mined")])
def test_a_session_alone_that_something_speaks_against_is_no_word_for_what_is_right(
    probability: float, is_contested: bool, reason: str
) -> None:
    desk = Desk()
    desk.session("open", probability, OPENED, ASK, OPEN, ("agent", "Done."), is_contested=is_contested)
    assert desk.mined().decisions["reason"].to_list() == ["rubric_mined"], "one has to begin"
    desk.session("bad", 0.02, LIFTED, ASK, OPEN, ("agent", "Done."))
    desk.session("worse", 0.03, LIFTED, ASK, OPEN, ("agent", "Done."))
    mined = desk.mined()
    assert mined.decisions["reason"].to_list() == [reason] and mined.rubrics.is_empty() == (reason != "rubric_mined")
    desk.session("second", 0.55, OPENED, ASK, OPEN, ("agent", "Done."), is_contested=is_contested)
    desk.session("third", 0.01, CLOSED, ASK, ("agent", "Done."))
    assert desk.mined().decisions["reason"].to_list() == ["rubric_mined"], "two ended alike"


def test_an_idle_task_gets_explicit_gates_and_doing_nothing_is_worth_nothing() -> None:
    desk = Desk()
    desk.session("good", 0.9, CLOSED, ASK, LOOK, ("agent", "The fee would be 12.50, and owner ab-123 says no."))
    rubric = desk.rubric()
    assert kinds(rubric) == ["call", "declined", "honeypot", "must_not_write", "said", "spoke"]
    assert reward(rubric, CLOSED, LOOK, ("agent", "No: AB-123 refuses.")) == 1.0
    assert reward(rubric, CLOSED) == reward(rubric, CLOSED, LOOK) == 0.0
    assert reward(rubric, CLOSED, ("agent", "No: AB-123 refuses.")) == 0.0, "it looked nothing up"
    assert reward(rubric, OPENED, LOOK, ("agent", "AB-123")) == 0.0, "it wrote"
    tries = [{"kind": "call", "tool": "look", "arguments": LOOK[1], "is_error": False, "tier": "recorded"},
             {"kind": "say", "content": "No: AB-123 refuses."}]
    for tier, worth in (("recorded", 1.0), ("unknown", 0.0)):
        tried = {"kind": "call", "tool": "open", "arguments": OPEN[1], "is_error": True, "tier": tier}
        unknown_writes = (tried,) if tier == "unknown" else ()
        played = Episode((*tries, tried), CLOSED, unknown_writes, frozenset({"open", "escalate"}))
        assert grade(rubric, played).reward == worth, "to be refused is no harm, to try where nobody knows is"


def test_only_facts_that_a_tool_gave_and_the_user_did_not_have_to_be_said() -> None:
    desk = Desk()
    said = "Your number 5550123, door 7, May 15: the code is 4711, I add 99.5."
    desk.session("good", 0.9, CLOSED, ASK, LOOK, ("agent", said))
    facts = next(check for check in desk.rubric()["checks"] if check["kind"] == "said")["parameters"]["facts"]
    assert facts == [{"type": "number", "value": "4711"}]


def test_with_several_good_sessions_most_must_have_told_a_fact() -> None:
    desk = Desk()
    for name, said in (("a", "code 4711, fee 12.5"), ("b", "fee 12.50"), ("c", "owner AB-123, fee 12.5")):
        desk.session(name, 0.9, CLOSED, ASK, LOOK, ("agent", said), ("agent", "Bye"))
    facts = next(check for check in desk.rubric()["checks"] if check["kind"] == "said")["parameters"]["facts"]
    assert facts == [{"type": "number", "value": "12.5"}]


def test_a_bad_session_with_the_right_end_makes_what_it_left_unsaid_a_gate() -> None:
    desk = Desk()
    desk.session("good", 0.9, OPENED, ASK, LOOK, OPEN, ("agent", "Done, the code is 4711."))
    desk.session("bad", 0.1, OPENED, ASK, LOOK, OPEN, ("agent", "Done, the fee is 12.5."))
    rubric = desk.rubric()
    assert kinds(rubric) == ["not_denied", "said", "state", "untouched"]
    assert reward(rubric, OPENED, ("agent", "Fee 12.5")) == 0.0 and reward(rubric, OPENED, ("agent", "4711")) == 1.0
    state = next(check for check in rubric["checks"] if check["kind"] == "state")
    assert state["provenance"]["contrary"] == ["bad"]


def test_free_text_of_a_hand_over_is_no_part_of_the_end() -> None:
    end = {"documents": {}, "write_calls": [["escalate", json.dumps(HAND[1])]]}
    desk = Desk()
    sorry: Step = ("agent", "I'm sorry, I can't do that. Somebody will call you back.")
    desk.session("good", 0.9, end, ASK, LOOK, HAND, sorry)
    other: Step = ("escalate", {"text": "Door."}, "ok")
    rubric = desk.rubric()
    ended = {"documents": {}, "write_calls": [["escalate", '{"text":"Door."}']]}
    assert kinds(rubric) == ["call", "declined", "honeypot", "must_not_write", "spoke"]
    assert reward(rubric, ended, LOOK, other, sorry) == 1.0
    assert reward(rubric, CLOSED, LOOK, ("agent", "Wait.")) == 0.0
    assert reward(rubric, ended, other, sorry) == 0.0, "nothing was looked up"


def test_a_refusal_may_give_another_reason_than_the_good_sessions_gave() -> None:
    desk = Desk()
    desk.session("good", 0.9, CLOSED, ASK, LOOK, ("agent", "I'm sorry, I can't do that: the fee of 12.50 is open."))
    desk.session("silent", 0.1, CLOSED, ASK, LOOK)
    rubric = desk.rubric()
    assert "said" not in kinds(rubric) and "said" in kinds(rubric, "diagnostic")
    assert reward(rubric, CLOSED, LOOK, ("agent", "I can't do that: AB-123 does not want it.")) == 1.0
    assert reward(rubric, CLOSED, ("agent", "I can't do that: the fee of 12.50 is open.")) == 0.0, "it looked nothing up"
    assert reward(rubric, CLOSED, LOOK, ("agent", "The fee of 12.50 is open.")) == 0.0, "it declines nothing"


def test_a_hand_over_at_once_is_no_task() -> None:
    end = {"documents": {}, "write_calls": [["escalate", json.dumps(HAND[1])]]}
    desk = Desk()
    desk.session("good", 0.9, end, ASK, HAND, ("agent", "I'm sorry, I can't help you. Somebody will call you back."))
    assert desk.mined().decisions.select("kept", "reason").rows() == [(False, "nothing_to_reward")]


def test_requests_without_words_are_rewarded_for_what_they_change_and_for_nothing_else() -> None:
    desk = Desk("open (door: 7)")
    desk.session("good", 0.9, OPENED, LOOK, OPEN)
    rubric = desk.rubric()
    assert kinds(rubric) == ["state", "untouched"]
    assert reward(rubric, OPENED, OPEN) == 1.0 and reward(rubric, CLOSED, LOOK) == 0.0
    desk = Desk()
    desk.session("good", 0.9, CLOSED, LOOK)
    mined = desk.mined()
    assert mined.rubrics.height == 0
    assert mined.decisions.select("kept", "reason").rows() == [(False, "nothing_to_reward")]


@pytest.mark.parametrize(("probability", "end", "reason"), [
    (0.2, OPENED, "no_known_success"), (None, OPENED, "no_known_success"), (0.9, None, "no_known_end_state")])
def test_a_task_that_cannot_be_graded_is_a_decision(probability: Any, end: Any, reason: str) -> None:
    desk = Desk()
    desk.session("s", probability, end, ASK, OPEN)
    mined = desk.mined()
    assert mined.rubrics.height == 0
    assert mined.decisions.select("subject", "kept", "reason").rows() == [("t", False, reason)]


def test_the_solution_is_the_best_good_session_whose_end_is_known() -> None:
    desk = Desk()
    desk.session("lost", 0.95, None, ASK, ("agent", "lost"))
    desk.session("good", 0.9, OPENED, ASK, OPEN, ("agent", "Done."))
    solution = json.loads(desk.mined().rubrics["solution"][0])
    assert solution == [{"tool": "open", "arguments": {"door": 7}}, {"say": "Done."}]


def test_the_same_sessions_give_the_same_bytes_in_any_order() -> None:
    desk, other = Desk(), Desk()
    for name, end in (("a", OPENED), ("b", LIFTED), ("c", OPENED)):
        desk.session(name, 0.95, end, ASK, LOOK, OPEN, ("agent", f"Done, code 4711 {name}."))
    other.turns, other.outcomes, other.differences = desk.turns[::-1], desk.outcomes, desk.differences[::-1]
    assert desk.mined().rubrics.equals(other.mined().rubrics)
    assert len(desk.mined().rubrics["rubric_id"][0]) == 64


VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3), max_leaves=5)


@settings(max_examples=25, deadline=None)
@given(st.lists(VALUES, min_size=8, max_size=8), VALUES)
def test_arguments_and_answers_of_any_type_are_mined(values: list[Any], answer: Any) -> None:
    """An argument may be a text here and a list there: each of these sessions writes one of them."""
    desk = Desk()
    ends = [{"documents": {}, "write_calls": [["open", canonical({"door": value, "how": value})]]} for value in values]
    for n, (value, end) in enumerate(zip(values, ends, strict=True)):
        words = ("user", f"Open it with {json.dumps(value, ensure_ascii=False)}.")
        steps = [words, ("look", {"door": value}, json.dumps(answer)), ("open", {"door": value, "how": value}, "done")]
        desk.session(f"s{n}", 0.95 if n < 6 else 0.05, end, *steps, ("agent", "Done, it is open."))
    mined = [json.loads(checks) for checks in desk.mined().rubrics["checks"]]
    if not mined:
        return   # nobody could know the values
    rubric = {"checks": mined[0]}
    examples = {name for check in mined[0] if check["kind"] == "state" for name in check["provenance"]["supporting"]}
    for n, (end, value) in enumerate(zip(ends[:6], values[:6], strict=True)):
        if f"s{n}" not in examples:
            continue
        steps = [("look", {"door": value}), ("open", {"door": value, "how": value}), ("agent", "Done.")]
        assert reward(rubric, end, *steps) == 1.0
    assert reward(rubric, {"documents": {}, "write_calls": [["open", '{"door":["a","stranger"]}']]}) == 0.0


ASKED: Step = ("escalate", {"do": "fee.show"}, '{"fee": 12.5, "owner": "AB-123"}')
UNPROVEN: dict[str, Any] = {"documents": {}, "write_calls": [["escalate", '{"do":"fee.show"}']]}


def test_what_was_told_is_a_gate_where_nothing_proves_that_anything_changed() -> None:
    desk = Desk()
    desk.session("good", 0.9, UNPROVEN, ("user", "fee.show: what is it?"), ASKED, ("agent", "It is 12.50."))
    rubric = desk.rubric()
    assert reward(rubric, UNPROVEN, ASKED, ("agent", "12.50, as I see here.")) == 1.0
    assert reward(rubric, UNPROVEN, ASKED, ("agent", "It is 15.00.")) == reward(rubric, UNPROVEN, ASKED) == 0.0


def test_a_refusal_may_say_that_nothing_was_changed_where_nothing_proves_a_change() -> None:
    desk = Desk()
    no = ("agent", "I'm sorry, I can't do that: the owner AB-123 said no.")
    desk.session("good", 0.9, UNPROVEN, ("user", "fee.show, then waive it"), ASKED, no)
    plain = ("agent", "Unfortunately that is not possible, AB-123 said no. I have not changed anything.")
    assert reward(desk.rubric(), UNPROVEN, ASKED, no) == reward(desk.rubric(), UNPROVEN, ASKED, plain) == 1.0
    assert reward(desk.rubric(), UNPROVEN, ASKED, ("agent", "Done, AB-123 agrees.")) == 0.0
