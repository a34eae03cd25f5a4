"""Searches that find nothing: what decides it, and silence where that is not known."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder.behaviour import finds
from env_builder.runtime.selections import finds_nothing
from env_builder.world.replay import LoggedStep
from tests.env_builder.world.calls import call

TOWNS = "ABCDEFGH"
DAYS = [f"2030-05-{day:02}" for day in range(10, 20)]
SERVED = {(one, other) for one in TOWNS for other in TOWNS if one < other}


def ferries(start: str, end: str, day: str) -> str:
    runs = (start, end) in SERVED and day in DAYS
    return f'[{{"ferry": "{start}{end}", "day": "{day}"}}]' if runs else "[]"


def steps(days: list[str]) -> list[LoggedStep]:
    asked = [(start, end, day) for start in TOWNS for end in TOWNS if start != end for day in days]
    calls = [call("search", {"start": one, "end": two, "day": day}, ferries(one, two, day), f"{one}{two}{day}")
             for one, two, day in asked]
    return [LoggedStep(each, (), None, False, False, None, ()) for each in calls]


def known(rule: dict[str, Any] | None, seen: list[LoggedStep], **arguments: str) -> bool:
    assert rule is not None
    return finds_nothing(rule, arguments, [(step.call.arguments, step.call.content != rule["content"]) for step in seen])


@cache
def learnt() -> tuple[list[LoggedStep], dict[str, Any] | None]:
    """Return searches on days with ferries and on days without, and what they teach; made when wanted, not at import."""
    seen = steps([*DAYS[2:6], "2030-08-01", "2030-08-02"])
    return seen, finds.nothing_rule(seen)


def test_finds_the_arguments_that_alone_decide() -> None:
    rule = finds.nothing_rule(steps(DAYS[2:6]))
    assert rule is not None
    assert (rule["content"], rule["by"], rule["beyond"]) == ("[]", [["end", "start"]], [])


def test_days_beyond_those_at_which_anything_was_found() -> None:
    seen = steps([*DAYS[2:6], "2030-08-01", "2030-08-02"])
    rule = finds.nothing_rule(seen)
    assert known(rule, seen, start="A", end="C", day="2030-08-02")
    assert known(rule, seen, start="A", end="C", day="2031-01-01")
    assert not known(rule, seen, start="A", end="C", day="2030-05-19"), "just outside of what was seen nobody knows"
    assert not known(rule, seen, start="A", end="C", day="soon")


@given(st.sampled_from(TOWNS), st.sampled_from(TOWNS), st.sampled_from([*DAYS, "2030-08-01", "2030-09-09"]))
def test_never_says_nothing_where_there_is_something(start: str, end: str, day: str) -> None:
    seen, rule = learnt()
    if start != end and known(rule, seen, start=start, end=end, day=day):
        assert ferries(start, end, day) == "[]"


@pytest.mark.parametrize("content", ["[]", '{"note": "none"}'])
def test_is_silent_where_only_few_were_told_so(content: str) -> None:
    calls = [call("search", {"of": str(n)}, content if n < 2 else f'["thing {n}"]', f"s{n}") for n in range(9)]
    assert finds.nothing_rule([LoggedStep(each, (), None, False, False, None, ()) for each in calls]) is None
