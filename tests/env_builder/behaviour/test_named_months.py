"""Days written with the name of their month are calculated with."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder.behaviour.examples import WriteExample
from env_builder.behaviour.synthesis import explain
from env_builder.runtime import clock
from env_builder.runtime.expressions import NoValue, evaluate

FORMS = ("DD Mmm YYYY", "DD Mmmm YYYY", "Mmm DD, YYYY", "Mmmm D, YYYY", "D Mmm YYYY")
DAYS = st.datetimes(datetime(1999, 1, 1), datetime(2099, 1, 1), timezones=st.just(UTC)).map(
    lambda at: at.replace(hour=0, minute=0, second=0, microsecond=0))


@given(st.sampled_from(FORMS), DAYS)
def test_a_written_day_is_read_as_it_was_and_written_back(form: str, at: datetime) -> None:
    text = str(clock.write(form, at))
    read = clock.read(text)
    assert read is not None and read[1] == at and clock.write(read[0], at) == text and clock.is_day(read[0])


@pytest.mark.parametrize("text", ["31 Feb 2026", "02 Mai 2026", "02 May 26", "May 2026", "02 May, 2026", "1 June 2, 2026"])
def test_other_texts_are_no_days(text: str) -> None:
    assert clock.read(text) is None


def test_a_loan_is_due_two_weeks_after_it_began() -> None:
    first = datetime(2026, 1, 3, tzinfo=UTC)
    days = [first + timedelta(days=17 * n) for n in range(7)]
    examples = [WriteExample({"from": clock.write("DD Mmm YYYY", day)}, {"id": n},
                             clock.write("DD Mmm YYYY", day + timedelta(days=14))) for n, day in enumerate(days)]
    expression = explain(examples, ["due"])
    assert expression is not None and evaluate(expression, {"from": "25 Dec 2026"}, {"id": 1}) == "08 Jan 2027"


def test_nobody_tells_how_a_month_is_written_that_follows_may() -> None:
    later = ["later", ["before", "from"], ["constant", 30]]
    assert evaluate(later, {"from": "02 June 2026"}, {}) == "02 July 2026"
    assert evaluate(later, {"from": "01 May 2026"}, {}) == "31 May 2026"
    with pytest.raises(NoValue):
        evaluate(later, {"from": "02 May 2026"}, {})
