"""Repeated events take place when dateutil, which reads the same rules, says so."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import islice
from zoneinfo import ZoneInfo

import pytest
from dateutil.rrule import rrulestr
from hypothesis import assume, given
from hypothesis import strategies as st

from env_builder.runtime.company import Undecided
from env_builder.runtime.office.recurrence import Recurrence

BERLIN = ZoneInfo("Europe/Berlin")
WEEKDAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
FIRST = st.datetimes(datetime(2024, 1, 1), datetime(2027, 12, 31)).map(lambda at: at.replace(microsecond=0, hour=9))


def listed(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(values, min_size=1, max_size=3, unique=True).map(",".join)


PLAIN = listed(st.sampled_from(WEEKDAYS))
NTH = listed(st.builds(lambda nth, day: f"{nth}{day}", st.sampled_from([1, 2, 3, 4, -1]), st.sampled_from(WEEKDAYS)))
MONTHS = listed(st.integers(1, 12).map(str))
MONTH_DAYS = listed(st.sampled_from([1, 5, 13, 28, 31, -1]).map(str))
RULES = st.one_of(
    st.fixed_dictionaries({"FREQ": st.just("DAILY")}, optional={"BYDAY": PLAIN, "BYMONTH": MONTHS, "BYMONTHDAY": MONTH_DAYS}),
    st.fixed_dictionaries({"FREQ": st.just("WEEKLY")}, optional={
        "BYDAY": PLAIN, "WKST": st.sampled_from(WEEKDAYS), "BYMONTH": MONTHS}),
    st.fixed_dictionaries({"FREQ": st.just("MONTHLY")}, optional={"BYDAY": PLAIN | NTH, "BYMONTHDAY": MONTH_DAYS}),
    st.fixed_dictionaries({"FREQ": st.just("MONTHLY"), "BYDAY": PLAIN, "BYSETPOS": st.sampled_from(["1", "2", "-1", "9"])}),
    st.fixed_dictionaries({"FREQ": st.just("YEARLY")}),
    st.fixed_dictionaries({"FREQ": st.just("YEARLY"), "BYMONTH": MONTHS}, optional={"BYDAY": NTH}),
)


def occurrences(text: str, first: datetime) -> list[datetime]:
    """Return the first dozen occurrences in local time; none where the first is not its rule's."""
    try:
        return [at.replace(tzinfo=None) for at in islice(Recurrence.read(text, first).occurrences(first), 12)]
    except Undecided:
        return []


@given(FIRST, RULES, st.integers(1, 4), st.sampled_from([None, 1, 5]), st.sampled_from([None, 40]))
def test_occurrences_are_what_dateutil_gives(
        first: datetime, parts: dict[str, str], interval: int, most: int | None, days: int | None) -> None:
    assume(most is None or days is None)
    text = ";".join(f"{name}={value}" for name, value in {
        **parts, "INTERVAL": interval, **({"COUNT": most} if most else {}),
        **({"UNTIL": f"{first + timedelta(days=days):%Y%m%dT%H%M%S}"} if days else {})}.items())
    theirs = list(islice(rrulestr(text, dtstart=first).between(first, first + timedelta(days=3000), inc=True), 12))
    own = occurrences(text, first.replace(tzinfo=BERLIN))
    assert [at for at in own if at <= first + timedelta(days=3000)] == (theirs if theirs[:1] == [first] else [])


def test_the_time_of_day_stays_when_clocks_change() -> None:
    first = datetime(2026, 3, 27, 10, tzinfo=BERLIN)
    begins = islice(Recurrence.read("FREQ=DAILY", first).occurrences(first), 4)
    assert [(at.hour, at.utcoffset()) for at in begins] == [
        (10, timedelta(hours=1)), (10, timedelta(hours=1)), (10, timedelta(hours=2)), (10, timedelta(hours=2))]


@pytest.mark.parametrize("text", ["", "FREQ=HOURLY", "FREQ=YEARLY;BYDAY=MO", "FREQ=WEEKLY;BYWEEKNO=3", "FREQ=DAILY;INTERVAL=0",
                                  "FREQ=WEEKLY;BYDAY=XX", "COUNT=3", "FREQ=WEEKLY;UNTIL=soon"])
def test_rules_that_are_not_worked_out_are_left_open(text: str) -> None:
    with pytest.raises(Undecided):
        Recurrence.read(text, datetime(2026, 3, 2, tzinfo=BERLIN))


def test_a_rule_without_a_day_ends() -> None:
    first = datetime(2024, 2, 29, tzinfo=BERLIN)
    assert not list(Recurrence.read("FREQ=MONTHLY;BYMONTH=2;BYMONTHDAY=30", first).occurrences(first))
