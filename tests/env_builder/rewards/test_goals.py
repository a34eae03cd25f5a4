"""What a session of several goals owes its user, and what its rubric asks for."""

from __future__ import annotations

from env_builder.rewards.goals import Due, SessionGoal, due_of, n_refusals, whole_sessions
from env_builder.rewards.questions import Questions
from env_builder.rewards.witness import Row, Witness
from env_builder.world.calls import LoggedCall
from tests.env_builder.rewards.test_mine import CLOSED, LOOK, OPEN, OPENED, Desk, Step, kinds, reward
from tests.env_builder.rewards.test_questions import accounts

NO: Step = ("agent", "I'm sorry, I can't unlock door 7 at night.")
NO_EITHER: Step = ("agent", "I can't burn it, either.")
TWO: Step = ("user", "Open door 7 please. Also, burn the paper.")
NO_QUESTIONS = Questions({})


def session(*steps: tuple[str, str]) -> Witness:
    """Return a session: ("user" or "agent", words), or (tool, answer)."""
    rows: list[Row] = []
    calls, name = [], " ".join(text for _, text in steps)
    for place, (who, text) in enumerate(steps):
        role = {"user": "user", "agent": "assistant"}.get(who)
        rows.append(("message" if role else "call", role or "assistant", text, f"e{place}", place))
        if role is None:
            calls.append(LoggedCall(name, place, who, {"of": "s"}, "{}", text, None, False, None, None, f"e{place}"))
    return Witness(name, rows, calls, None, 0.9, frozenset({"account"}))


def test_a_rubric_asks_for_as_many_refusals_as_were_due() -> None:
    desk = Desk()
    desk.session("good", 0.9, CLOSED, TWO, LOOK, NO, NO_EITHER)
    rubric = desk.rubric()
    assert "declined" in kinds(rubric)
    assert reward(rubric, CLOSED, LOOK, NO, ("agent", "I cannot burn it.")) == 1.0
    assert reward(rubric, CLOSED, LOOK, ("agent", "I can do neither of these.")) == 1.0, "both in one message"
    assert reward(rubric, CLOSED, LOOK, NO) == 0.0, "half of it"


def test_a_refusal_beside_a_change_denies_nothing_wherever_it_stands() -> None:
    desk = Desk()
    desk.session("good", 0.9, OPENED, TWO, LOOK, OPEN, ("agent", "I have opened it. I cannot burn the paper."))
    rubric = desk.rubric()
    assert "not_denied" in kinds(rubric)
    assert reward(rubric, OPENED, LOOK, OPEN, ("agent", "I cannot burn the paper.")) == 1.0, "other words, and no claim"
    assert reward(rubric, OPENED, LOOK, OPEN, ("agent", "I cannot burn the paper. Nothing was changed.")) == 0.0
    assert reward(rubric, OPENED, LOOK, OPEN, ("agent", "Done.")) == 0.0, "half of it"


def test_a_goal_that_a_good_session_left_open_is_no_task() -> None:
    desk = Desk()
    desk.session("good", 0.9, CLOSED, TWO, LOOK, NO, ("agent", "Is there anything else?"))
    mined = desk.mined()
    assert mined.rubrics.is_empty() and mined.decisions["reason"].to_list() == ["goal_left_open"]


def test_a_goal_that_most_good_sessions_left_open_was_not_recognised_in_the_others() -> None:
    two, whole = SessionGoal("a", "", 0), session(("user", "Burn it."), ("agent", "I can't burn it."))
    left = [session(("user", f"Burn it {n}. Also, open it."), ("agent", "I can't burn it.")) for n in range(2)]
    assert whole_sessions([whole, *left], {}, NO_QUESTIONS, {"open"})[0] == []
    assert whole_sessions([whole, left[0]], {"x": [two]}, NO_QUESTIONS, {"open"})[0] == [whole], "one of two is not most"


def test_a_refusal_that_the_user_presses_for_is_repeated() -> None:
    pressed = session(("user", "Open it."), ("agent", "I can't."), ("user", "Oh come on."), ("agent", "I cannot do that."))
    assert n_refusals(pressed, {0}) == 1
    assert n_refusals(pressed, {0, 2}) == 2, "the user asked for something else"
    at_once = session(("user", "Open it. Also, burn it."), ("agent", "I can't unlock it."), ("agent", "I can't burn it."))
    assert n_refusals(at_once, {0}) == 2


def test_a_change_an_answer_and_a_refusal_each_deal_with_a_goal() -> None:
    questions = Questions({"debts": accounts('{{"total": {total}, "limit": {limit}}}', "You owe {total} EUR.")})
    goals = [SessionGoal("openings", "open", 0), SessionGoal("debts", "", 0)]
    asked, opened = ("user", "Open it. Also, what do I owe?"), ("open", "done")
    looked = ("account", '{"total": 31.5, "limit": 7}')
    answered = session(asked, opened, looked, ("agent", "It is open. You owe 31.5 EUR."))
    assert due_of(answered, goals, questions, {"open"}) == Due(2, (("number", "31.5"),))
    assert due_of(answered, goals[:1], questions, {"open"}) == Due(2, (("number", "31.5"),)), "the words tell of the second"
    silent = session(asked, opened, looked, ("agent", "It is open."))
    assert due_of(silent, goals, questions, {"open"}) == Due(2, n_open=1)
    refused = session(asked, looked, ("agent", "I can't unlock it. You owe 31.5 EUR."))
    assert due_of(refused, goals, questions, {"open"}) == Due(2, (("number", "31.5"),), 1)
    reason = session(asked, opened, looked, ("agent", "You owe 31.5 EUR. I can't burn it: you owe 31.5 EUR."))
    assert due_of(reason, goals, questions, {"open"}).n_open == 0 and not due_of(reason, goals, questions, {"open"}).answer, (
        "a refusal alone tells as much")
    both = session(("user", "Open it. And burn it."), opened, ("burn", "done"), ("agent", "Done."))
    assert due_of(both, goals[:1], NO_QUESTIONS, {"open", "burn"}) == Due(2)


def test_one_goal_owes_nothing_more() -> None:
    one = session(("user", "Open it. And my number is 7."), ("open", "done"), ("agent", "Done."))
    assert due_of(one, [SessionGoal("openings", "open", 0)], NO_QUESTIONS, {"open"}) == Due()
