"""Formats of instants: learnt of texts where all of them agree, written and read again, and used for forms' own times."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from env_builder.runtime.site.times import SiteTimes, TimeFormat, instants_in
from env_builder.runtime.site.visits import KIND, SiteVisit, Value
from env_builder.site.learning import SourceLearner
from env_builder.site.timing import learn_formats, learn_times

BEGIN = datetime(2026, 1, 5, 8, 3, 20, tzinfo=UTC)
FORMATS = [
    ("d", "/", "m", "/", "Y", " ", "H", ":", "M", ""), ("m", "/", "d", "/", "y", " ", "H", ":", "M", ":", "S", ""),
    ("e", " ", "b", " ", "Y", ", ", "P", ""), ("B", " ", "e", ", ", "Y", " at ", "l", ":", "M", " ", "p", ""),
    ("b", ". ", "o", ", ", "Y", " ", "k", ":", "M", ""), ("d", ".", "m", ".", "Y", ", ", "H", ":", "M", ":", "S", ""),
    ("Y", "-", "m", "-", "d", "T", "H", "%3A", "M", "%3A", "S", "Z"), ("n", "/", "e", "/", "Y", ""),
    ("Y", "/", "m", "/", "d", " ", "I", ":", "M", "", "q", "")]
HOUR = 3600


def visit(at: datetime, value: Value, *, url: str = "/box/1", is_write: bool = False) -> SiteVisit:
    values = {KIND: "302 redirect", "location": "/box/1"} if is_write else {KIND: "200 page", "0": value}
    return SiteVisit("ann", at, "add" if is_write else "box", url, is_write, not is_write, {}, values)


def spread(n: int) -> list[datetime]:
    """Return instants over a year, at all hours and days."""
    return [BEGIN + timedelta(days=5 * number, hours=7 * number, minutes=13 * number) for number in range(n)]


def shown(texts: Sequence[str]) -> list[list[SiteVisit]]:
    """Return sessions, each of which saw one text a minute before anything else."""
    return [[visit(BEGIN + timedelta(days=400, minutes=number), f"made {text} by ann")] for number, text in enumerate(texts)]


def saved(parts: tuple[str, ...], zone: int, n: int = 40) -> list[list[SiteVisit]]:
    """Return sessions that post a form, and see on the next page when it was saved."""
    format_ = TimeFormat(parts, zone)
    sessions = []
    for at in spread(n):
        sessions.append([visit(at, None, url="/add", is_write=True),
                         visit(at + timedelta(seconds=70), f"saved {format_.written(at + timedelta(seconds=1))}")])
    return sessions


@pytest.mark.parametrize("parts", FORMATS)
def test_a_format_is_learnt_of_its_texts(parts: tuple[str, ...]) -> None:
    format_ = TimeFormat(parts)
    assert [each.parts for each in learn_formats(shown([format_.written(at) for at in spread(40)]))] == [parts]


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(FORMATS), st.datetimes(datetime(2000, 1, 1), datetime(2099, 12, 31)), st.integers(-48, 48))
def test_what_is_written_is_read_as_exactly_as_it_says(parts: tuple[str, ...], at: datetime, quarters: int) -> None:
    format_ = TimeFormat(parts, quarters * 900)
    at = at.replace(tzinfo=UTC)
    [read] = format_.instants(f"by ann, {format_.written(at)}; closed")
    assert read.at == format_.shown(at)
    assert timedelta() <= at - read.at < format_.unit
    assert format_.written(read.at) == format_.written(at)


def test_numbers_that_may_both_be_the_day_are_no_format() -> None:
    texts = [TimeFormat(FORMATS[0]).written(at) for at in spread(80) if at.day <= 12]
    assert len(texts) > 6
    assert learn_formats(shown(texts)) == []
    contradicting = [*texts, "25/01/2026 10:00", "01/25/2026 10:00"]
    assert learn_formats(shown(contradicting)) == []


def test_hours_to_twelve_without_a_half_are_no_format() -> None:
    texts = [re.sub(r" (\d\d):", lambda match: f" {int(match[1]) % 12 or 12:02}:", TimeFormat(FORMATS[0]).written(at))
             for at in spread(40)]
    assert learn_formats(shown(texts)) == []


@pytest.mark.parametrize("parts", [FORMATS[0], FORMATS[1], FORMATS[3]])
def test_the_zone_is_told_by_posts(parts: tuple[str, ...]) -> None:
    [learnt] = learn_times(saved(parts, 2 * HOUR)).formats
    assert learnt == TimeFormat(parts, 2 * HOUR)


def test_a_page_shows_when_the_form_before_it_was_saved() -> None:
    parts, zone = FORMATS[4], -5 * HOUR
    model = SourceLearner(saved(parts, zone)).learnt()
    post = visit(datetime(2027, 5, 9, 2, 59, 30, tzinfo=UTC), None, url="/add", is_write=True)
    answer = model.answer(visit(post.at + timedelta(seconds=70), None), [post])
    assert answer is not None
    assert answer.values["0"] == "saved May. 8th, 2027 21:59"


def test_another_page_writes_a_row_s_instant_in_its_own_way() -> None:
    short, long = TimeFormat(FORMATS[5]), TimeFormat(FORMATS[2])
    sessions = []
    for number, at in enumerate(spread(40)):
        row = f'[["p", {{}}, [["a", {{"href": "/box/{number}"}}, ["box"]], "{short.written(at)}"]]]'
        listed = SiteVisit("ann", BEGIN + timedelta(days=400), "list", "/", False, True, {}, {KIND: "200 page", "0": row})
        page = visit(listed.at + timedelta(minutes=1), f"made {long.written(at)}", url=f"/box/{number}")
        sessions.append([listed, page])
    model = SourceLearner(sessions[:-1]).learnt()
    answer = model.answer(replace_values(sessions[-1][1]), sessions[-1][:1])
    assert answer is not None
    assert answer.values["0"] == sessions[-1][1].values["0"]


def replace_values(page: SiteVisit) -> SiteVisit:
    return SiteVisit(page.user, page.at, page.route, page.url, False, False, {}, {})


def test_ages_may_count_from_instants_of_a_learnt_format() -> None:
    times = SiteTimes(0, (TimeFormat(FORMATS[0], HOUR), TimeFormat(FORMATS[7])))
    assert instants_in("at 07/02/2026 10:30", times) == (datetime(2026, 2, 7, 9, 30, tzinfo=UTC),)
    assert instants_in("on 2/7/2026", times) == ()
