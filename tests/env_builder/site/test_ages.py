"""Ages in words: a made-up way of writing them is learnt from examples and says others; contradictions make it abstain."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from env_builder.runtime.site.ages import NUMBER, AgeForm, AgeFormat
from env_builder.runtime.site.times import SiteTimes, instants_in
from env_builder.runtime.site.trees import Element, encode
from env_builder.runtime.site.visits import KIND, SiteVisit, Value
from env_builder.site.ageing import AgeExample, learn_ages
from env_builder.site.learning import SourceLearner
from env_builder.site.timing import learn_zone

MONDAY = datetime(2026, 3, 2, 9, tzinfo=UTC)
MINUTE, HOUR, DAY, WEEK = 60, 3_600, 86_400, 604_800
CELL = ("list", "0", 1)


class MadeUp(NamedTuple):
    """A way of writing ages that no language has."""

    words: tuple[str, str, str, str]
    lead: float
    yesterday: str

    def written(self, age: float) -> str:
        if DAY <= age < 2 * DAY:
            return self.yesterday
        unit, word = next((unit, word) for unit, word in zip((WEEK, DAY, HOUR, MINUTE), reversed(self.words), strict=True)
                          if age >= 2 * unit or unit == MINUTE)
        return f"{word} {int(age / unit + self.lead)} old"


WORDS = st.lists(st.text("bdfgklmnprstvz", min_size=3, max_size=8), min_size=5, max_size=5, unique=True)
WAYS = st.builds(lambda words, lead: MadeUp((words[0], words[1], words[2], words[3]), lead, words[4]),
                 WORDS, st.sampled_from((0.0, 0.5)))


def drawn(seed: int, n: int) -> list[float]:
    """Return ages of all lengths, from three minutes to ten weeks."""
    draw = random.Random(seed)
    return [3 * MINUTE * (10 * WEEK / 3 / MINUTE) ** draw.random() for _ in range(n)]


def examples(way: MadeUp, ages: Sequence[float], others: Sequence[float] = ()) -> list[AgeExample]:
    """Return texts with their ages, each beside an age of something else if there is one."""
    return [AgeExample(way.written(age), CELL, tuple(sorted((age, *others[index:index + 1]))))
            for index, age in enumerate(ages)]


@settings(max_examples=8, deadline=None)
@given(WAYS, st.integers(0, 1_000))
def test_what_was_learnt_of_examples_writes_other_ages(way: MadeUp, seed: int) -> None:
    learnt = learn_ages(examples(way, drawn(seed, 250)))
    assert learnt is not None
    said = [(learnt.written(age), way.written(age)) for age in drawn(seed + 1, 200)]
    known = [(text, right) for text, right in said if text is not None]
    assert len(known) >= 180
    assert sum(text == right for text, right in known) >= .95 * len(known)


@settings(max_examples=5, deadline=None)
@given(WAYS, st.integers(0, 1_000))
def test_the_ages_that_a_text_means_are_those_that_it_is_written_for(way: MadeUp, seed: int) -> None:
    learnt = learn_ages(examples(way, drawn(seed, 250)))
    assert learnt is not None
    for age in drawn(seed + 1, 100):
        if (text := learnt.written(age)) is not None and (meant := learnt.meant(text)) is not None:
            assert meant[0] <= age < meant[1]
    for form, after in pairwise(learnt.forms):
        assert form.least <= after.least


@settings(max_examples=8, deadline=None)
@given(WAYS, st.integers(0, 1_000))
def test_nothing_is_learnt_where_texts_contradict_ages(way: MadeUp, seed: int) -> None:
    shown, ages = drawn(seed, 200), drawn(seed + 1, 200)
    contradicting = [AgeExample(way.written(age), CELL, (other,)) for age, other in zip(shown, ages, strict=True)]
    assert learn_ages(contradicting) is None


def test_the_right_one_of_several_times_is_found() -> None:
    way = MadeUp(("mins", "hors", "dags", "uker"), 0.0, "gisterdag")
    learnt = learn_ages(examples(way, drawn(1, 400), [2 * age + DAY for age in drawn(2, 400)]))
    assert learnt is not None
    assert [learnt.written(age) for age in (5 * MINUTE, 5 * HOUR, 5 * DAY, 5 * WEEK)] == [
        "mins 5 old", "hors 5 old", "dags 5 old", "uker 5 old"]


def test_two_numbers_are_counted_in_two_units() -> None:
    ages = [(DAY * 2) * (30 * DAY / (DAY * 2)) ** random.Random(index).random() for index in range(100)]
    learnt = learn_ages([AgeExample(f"{int(age // DAY)} d {int(age % DAY // HOUR)} h", CELL, (age,)) for age in ages])
    assert learnt is not None
    assert learnt.written(5 * DAY + 7 * HOUR + 100) == "5 d 7 h"


def test_numbers_that_are_no_ages_teach_nothing() -> None:
    draw = random.Random(3)
    assert learn_ages([AgeExample(f"box {draw.randrange(40)}", CELL, (age,)) for age in drawn(5, 200)]) is None
    assert learn_ages([AgeExample("3 hours ago", CELL, (3.5 * HOUR,))] * 20) is None


@pytest.mark.parametrize(("text", "expected"), [
    ("See 2026-03-02 10:30:05", MONDAY.replace(hour=9, minute=30, second=5)),
    ("/line?from=2026-03-02T10%3A30%3A05Z", MONDAY.replace(hour=9, minute=30, second=5)),
    ("2026-03-02.10:30", MONDAY.replace(hour=9, minute=30))])
def test_times_are_read_with_the_zone_of_the_site(text: str, expected: datetime) -> None:
    assert instants_in(text, SiteTimes(HOUR)) == (expected,)
    assert instants_in("2026-13-02 10:30", SiteTimes()) == ()


def test_the_zone_is_what_posts_differ_from_the_times_shown_next() -> None:
    sessions = [[SiteVisit("ann", MONDAY + timedelta(hours=n), "post", f"/box/{n}", True, False, {}, {KIND: "302 redirect"}),
                 SiteVisit("ann", MONDAY + timedelta(hours=n, seconds=2), "box", f"/box/{n}", False, True, {}, {
                     KIND: "200 page", "0": f"changed {MONDAY + timedelta(hours=n + 2):%Y-%m-%d %H:%M:%S}"})]
                for n in range(8)]
    assert learn_zone(sessions) == 2 * HOUR
    assert learn_zone(sessions[:3]) == 0


def written(age: float) -> str:
    return f"{int(age // HOUR)} hrs back" if age < 2 * DAY else f"{int(age // DAY)} dys back"


LISTED = ("lamp", "desk", "coat")


def listing(acts: dict[str, datetime], now: datetime, states: dict[str, str]) -> Value:
    """Return a list whose rows stand by when something was last done to them, the last first."""
    rows = [Element("tr", {}, [
        Element("td", {}, [Element("a", {"href": f"/box/{name}"}, [name])]),
        Element("td", {}, [states[name]]),
        Element("td", {}, [written((now - acts[name]).total_seconds())])]) for name in LISTED]
    order = sorted(range(len(rows)), key=lambda index: acts[LISTED[index]], reverse=True)
    return encode([rows[index] for index in order])


def sessions_of_acts(n: int) -> tuple[list[list[SiteVisit]], dict[str, datetime], dict[str, str]]:
    """Return sessions that look at a list, post about one of its entities, and look again a little later."""
    draw = random.Random(11)
    acts = {name: MONDAY - timedelta(hours=5 + index) for index, name in enumerate(LISTED)}
    states = dict.fromkeys(LISTED, "new")
    sessions: list[list[SiteVisit]] = []
    at = MONDAY
    for _ in range(n):
        at += timedelta(hours=draw.choice((3, 7, 26, 75)))
        look = SiteVisit("ann", at, "list", "/boxes", False, True, {}, {KIND: "200 page", "0": listing(acts, at, states)})
        name, state = draw.choice(LISTED), draw.choice(("new", "open", "done"))
        acts[name], states[name] = at + timedelta(seconds=30), state
        post = SiteVisit("ann", acts[name], "post", f"/box/{name}", True, False, {"form state": f"{len(state)}{state[0]}"},
                         {KIND: "302 redirect", "location": f"/box/{name}"})
        sessions.append([look, post])
    return sessions, acts, states


def test_a_list_is_as_acts_of_others_leave_it_and_its_ages_are_of_now() -> None:
    sessions, acts, states = sessions_of_acts(60)
    learner = SourceLearner(sessions)
    assert learner.ages is not None
    model = learner.learnt()
    now = max(acts.values()) + timedelta(hours=30)
    request = SiteVisit("bob", now, "list", "/boxes", False, False, {}, {})
    answer = model.answer(request, [])
    assert answer is not None
    assert answer.values["0"] == listing(acts, now, states)
    post = SiteVisit("bob", now - timedelta(hours=4), "post", "/box/coat", True, False, {"form state": "4d"},
                     {KIND: "302 redirect", "location": "/box/coat"})
    acts["coat"], states["coat"] = post.at, "done"
    answer = model.answer(request, [post])
    assert answer is not None
    assert answer.values["0"] == listing(acts, now, states)


def test_a_list_is_unknown_after_an_act_with_a_value_that_was_never_posted() -> None:
    sessions, acts, _ = sessions_of_acts(60)
    model = SourceLearner(sessions).learnt()
    now = max(acts.values()) + timedelta(hours=3)
    post = SiteVisit("bob", now - timedelta(hours=1), "post", "/box/coat", True, False, {"form state": "6urgent"},
                     {KIND: "302 redirect", "location": "/box/coat"})
    answer = model.answer(SiteVisit("bob", now, "list", "/boxes", False, False, {}, {}), [post])
    assert answer is not None
    assert "0" in answer.unknown


def test_a_format_is_the_same_read_again() -> None:
    format_ = AgeFormat([AgeForm(f"{NUMBER} hrs", (HOUR,), 0.5, HOUR), AgeForm("long ago", (), 0, WEEK)], SiteTimes(HOUR))
    again = AgeFormat.of(format_.plain(), format_.times)
    assert again.forms == format_.forms
    assert [again.written(age) for age in (60, 5_500, 2 * WEEK)] == [None, "2 hrs", "long ago"]
    assert again.meant("2 hrs") == (1.5 * HOUR, 2.5 * HOUR)
