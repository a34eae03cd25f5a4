"""Times as logs write them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors.formats.instants import clf, earlier, microseconds

AT = datetime(2026, 1, 5, 10, 0, 0, 500_000, tzinfo=UTC)
US = 1_767_607_200_500_000


@pytest.mark.parametrize("value", [
    "2026-01-05T10:00:00.5Z", "2026-01-05T12:00:00.5+02:00", "2026-01-05 10:00:00.500000", US, US * 1000, US // 1000, US / 1e6,
    str(US), str(US // 1000), str(US / 1e6), "05/Jan/2026:11:00:00.5 +0100", "2026/01/05 10:00:00.5", "2026-01-05 10:00:00,500",
    "2026-01-05 10:00:00.5 UTC", "2026-01-05 11:00:00.5 +0100", "2026-01-05T10:00:00.500000000Z", "Mon Jan  5 10:00:00.5 2026"])
def test_one_instant_in_many_hands(value: Any) -> None:
    assert microseconds(value) == US and datetime.fromtimestamp(US / 1e6, UTC) == AT


@pytest.mark.parametrize("value", [
    None, "", True, "yesterday", -5, 0, 10**25, "9" * 5000, "\u00b2", float("nan"), float("inf"), [1], {}, "0000-00-00",
    "0001-01-01T00:00:00Z", "0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-12:00", "1969-07-20T20:17:40Z"])
def test_what_is_no_time_and_the_zero_and_the_end_of_clocks(value: Any) -> None:
    assert microseconds(value) is None


@given(st.one_of(st.text(), st.integers(), st.floats(), st.datetimes().map(datetime.isoformat)))
def test_an_instant_is_always_a_date_that_can_be_written(value: Any) -> None:
    instant_us = microseconds(value)
    assert instant_us is None or 1970 <= datetime.fromtimestamp(instant_us // 1_000_000, UTC).year <= 9999


@given(st.integers(1, 4_000_000_000_000_000), st.floats() | st.integers(-10**30, 10**30))
def test_an_instant_less_a_duration_is_an_instant(instant: int, milliseconds: float) -> None:
    instant_us = earlier(instant, milliseconds)
    assert 0 < instant_us < 253_402_300_800_000_000
    assert instant_us == instant or abs(instant_us - (instant - round(milliseconds * 1000))) <= 1


def test_a_duration_longer_than_time_itself_is_ignored() -> None:
    assert earlier(1_772_413_265_000_000, 9.2e15) == 1_772_413_265_000_000
    assert earlier(1_772_413_265_000_000, 2041) == 1_772_413_262_959_000


@given(st.datetimes(datetime(1971, 1, 1), datetime(9998, 1, 1)).map(lambda at: at.replace(microsecond=0)),
       st.integers(-12 * 60, 14 * 60))
def test_the_quick_way_through_common_log_times_is_the_long_one(at: datetime, offset: int) -> None:
    zone = f"{'-' if offset < 0 else '+'}{abs(offset) // 60:02}{abs(offset) % 60:02}"
    text = f"{at.day:02}/{at:%b}/{at.year:04}:{at:%H:%M:%S} {zone}"
    assert clf(text) == microseconds(text) == microseconds(at.isoformat() + zone) is not None
    assert clf(text[:18] + "61" + text[20:]) is None and microseconds("Mon, 05 Jan 2026 10:00:00 GMT") == US - 500_000
