"""Calls without a time of their own are placed by the turns around them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl

from env_builder.world.calls import timed

BEGAN = datetime(2026, 3, 1, 9, tzinfo=UTC)
SIGN = timedelta(microseconds=1)


def times(happened: list[datetime | None], answered: list[datetime | None] | None = None) -> list[datetime | None]:
    """Return the times of one session's turns, given as logged."""
    turns = pl.DataFrame({"session_id": ["s"] * len(happened), "position": range(len(happened)), "happened_at": happened,
                          "answered_at": answered or [None] * len(happened)},
                         schema_overrides={name: pl.Datetime("us", "UTC") for name in ("happened_at", "answered_at")})
    return timed(turns)["happened_at"].to_list()


def test_a_turn_without_a_time_follows_the_last_that_has_one() -> None:
    assert times([BEGAN, None, None]) == [BEGAN, BEGAN + SIGN, BEGAN + 2 * SIGN]


def test_turns_before_the_first_time_come_before_it() -> None:
    assert times([None, None, BEGAN]) == [BEGAN - 2 * SIGN, BEGAN - SIGN, BEGAN]


def test_the_time_of_an_answer_counts_and_a_session_without_any_has_none() -> None:
    assert times([None, None], [BEGAN, None]) == [BEGAN, BEGAN + SIGN]
    assert times([None, None]) == [None, None]
