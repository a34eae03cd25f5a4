"""Corrections are mined where people correct themselves unasked, and a user who makes one ends with what it wants."""

from __future__ import annotations

from typing import Any

import pytest

from env_builder.corrections import corrections, fitted_corrections
from env_builder.habits import LEAST_SESSIONS
from env_builder.runtime.habits import VALUE, WRONG, UserHabits, habits_of
from env_builder.runtime.user import ScriptedUser, UserProgress
from env_builder.users import Talk

DAYS = ["monday", "tuesday", "friday"]
ROW: dict[str, Any] = {"share": 1.0, "values": [*map(str.title, DAYS)], "frames": [f"No, {VALUE}, not {WRONG}."]}
CALM = UserHabits("s", None, frozenset(), {}, False, False, 0.0, {"day": ROW})


def talk(*turns: str, agent: str = "Which day?", called: tuple[tuple[int, str], ...] = (), last: str = "friday") -> Talk:
    """Return a talk whose agent says the same before each turn, and books the last day in the end."""
    given = [(n_told, "day", value) for n_told, value in (*called, (len(turns), last))]
    return Talk(["I need a table."], list(turns), [[agent]] * len(turns) + [[]], given, [])


def corrected(*turns: str, **more: Any) -> list[str]:
    return [one.frame for one in corrections(talk(*turns, **more), {"day": DAYS}).corrected]


def test_a_correction_is_a_later_value_that_the_user_gives_unasked_and_says_so() -> None:
    assert corrected("Monday.", "Sorry, I meant Friday.") == [f"Sorry, I meant {VALUE}."]
    assert corrected("Monday.", "I want Friday, not Monday.") == [f"I want {VALUE}, not {WRONG}."]
    assert corrected("Monday.", "Actually my sister comes on Friday.") == [""], "words of somebody's own are not passed on"
    assert corrected("Monday.\nActually Friday.") == [f"Actually {VALUE}."]


@pytest.mark.parametrize(("turns", "more"), [
    (("Monday.", "And Friday."), {}),
    (("Monday.", "Sorry, Friday."), {"agent": "Sorry, we are full."}),
    (("Monday.", "Sorry, Friday."), {"agent": "Why not Friday?"}),
    (("Monday.", "Sorry, Friday."), {"called": ((1, "monday"),)}),
    (("Sorry, Friday.",), {}),
    (("Someday.", "Sorry, Friday."), {}),
])
def test_what_a_tool_or_an_agent_asked_for_is_no_correction(turns: tuple[str, ...], more: dict[str, Any]) -> None:
    assert corrected(*turns, **more) == []


def test_a_value_that_another_argument_has_is_not_taken_back() -> None:
    both = talk("From Monday.", "Sorry, until Friday.")._replace(given=[(2, "since", "monday"), (2, "day", "friday")])
    assert corrections(both, {"day": DAYS}).corrected == []


def logged(n_corrected: int, n_people: int = 99) -> dict[str, Any]:
    """Return what is fitted to talks of which some have a correction."""
    talks = {f"t{at}": talk("Monday.", "Sorry, I meant Friday.") if at < n_corrected
             else talk("Monday." if at % 2 else "Friday.", last="monday" if at % 2 else "friday")
             for at in range(LEAST_SESSIONS + 10)}
    return fitted_corrections(talks, {name: f"p{at % n_people}" for at, name in enumerate(talks)}, LEAST_SESSIONS)


def test_corrections_are_fitted_where_several_people_made_them() -> None:
    assert logged(0) == logged(2) == logged(6, n_people=2) == {}
    assert logged(6) == {"day": {"share": 0.2, "values": ["Friday", "Monday"], "frames": [f"Sorry, I meant {VALUE}."]}}


def said(text: str, **more: Any) -> str | None:
    lines = [{"when": "asked", "asks": {"day": 1.0}, "tells": [["argument", "day"]], "heard": [], "learnt": [], **more}]
    user = ScriptedUser({"turns": [text], "script": lines}, [{"role": "user", "content": "I need a table, not on Tuesday."}])
    return user.reply(UserProgress(), "Which day?", CALM)[1]


def test_the_true_value_comes_last_in_the_same_answer() -> None:
    assert said("On friday, please.") == "On Monday, please.\nNo, friday, not Monday."
    assert said("Friday or Monday.") == "Friday or Monday.", "which of them is meant is not clear"
    assert said("On Fridays.") == "On Fridays."
    assert said("On Friday.", tells=[["argument", "place"]]) == "On Friday."


def test_no_other_habit_is_drawn_differently_where_nobody_corrected_anything() -> None:
    row: dict[str, Any] = {"leaves": [[3, 0.5]], "volunteers": {"zip": 0.5}, "aside": {},
                           "typing": {"styles": [[True, True, 1], [False, True, 1]], "typos": 0.1}}
    for seed in range(20):
        plain, corrects = habits_of({"": row}, "", seed, "t"), habits_of({"": row | {"corrects": {"day": ROW}}}, "", seed, "t")
        assert plain is not None and corrects == plain._replace(corrects={"day": ROW})
