"""Nights that remember what was read in each session judge as those that read everything again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from extractors.outcomes import Outcomes, judge
from extractors.outcomes.conditions import ServiceCases, cases_by_service
from extractors.outcomes.evidence import gather
from extractors.outcomes.refusals import digests_of, steps_of
from extractors.tasks import goals_of
from pipelines.building.tasks import with_stances
from pipelines.running.cache import memoized
from tests.extractors.outcomes.test_outcomes import EFFECTS, feedback, frames
from tests.extractors.outcomes.test_refusals import LOOKED, START, VAGUE, WET, Made, ask, talk
from warehouse.records import Memoize, recompute
from warehouse.store import Store

DRY = ("look", {}, '{"plaster": "dry", "weeks": 7, "walls": [{"wall": "hut77x", "hue": "blue"}, {"wall": "hut78x"}]}')
DONE = ("assistant", "Your wall is painted blue. It took 7 weeks.")


def courses(n: int) -> list[tuple[Any, ...]]:
    """Return what may happen in a session."""
    painted = ("paint", {"wall": f"hut{n:02}x"}, "ok")
    return [(ask(n), LOOKED, WET), (ask(n), DRY, painted, DONE), (ask(n), DRY, ("paint", {"wall": "hut78x"}, "ok"), DONE),
            (ask(n), DRY, DONE), (ask(n), DRY, VAGUE), (ask(n), DRY, WET, ("user", "oh, please!"), painted, DONE),
            (ask(n), DRY, painted, ("assistant", "Your wall is painted blue. It took 93 weeks."))]


def judged(sessions: list[Made], effects: pl.DataFrame, memoize: Memoize) -> tuple[Outcomes, dict[str, ServiceCases]]:
    heads, turns = frames(*sessions)
    stanced, goals = with_stances(turns, memoize), goals_of(heads, turns, effects)
    return (judge(heads, stanced, feedback(), effects, START, goals=goals, memoize=memoize),
            cases_by_service(gather(heads, stanced, feedback(), effects, START, goals, memoize=memoize)))


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("judged") / "warehouse.duckdb"


@settings(max_examples=4, deadline=None)
@given(chosen=st.lists(st.integers(0, 6), min_size=14, max_size=18), replaced=st.integers(0, 13), other=st.integers(0, 6))
def test_what_is_remembered_is_what_would_be_read(warehouse: Path, chosen: list[int], replaced: int, other: int) -> None:
    """The second night has other words in one session; on the third it is known that looking acts."""
    changed = [other if n == replaced else course for n, course in enumerate(chosen)]
    looks = EFFECTS.with_columns(pl.when(pl.col("tool") == "look").then(pl.lit("write")).otherwise("effect").alias("effect"))
    with Store.open(warehouse) as store:
        for courses_of, effects in ((chosen, EFFECTS), (changed, EFFECTS), (changed, looks)):
            sessions = [talk(f"s{n:02}", *courses(n)[course]) for n, course in enumerate(courses_of)]
            with memoized(store, "outcomes", "code") as memoize:
                (one, cases), (another, read_anew) = (judged(sessions, effects, each) for each in (memoize, recompute))
            assert all(first.equals(second) for first, second in zip(one, another, strict=True))
            assert cases == read_anew


CHANGES = st.tuples(st.sampled_from(["role", "tool", "content", "arguments", "stance", "is_error", "position"]),
                    st.integers(0, 40), st.integers(0, 3))


@settings(max_examples=60, deadline=None)
@given(change=CHANGES)
@example(change=("is_error", 7, 0))   # a write that failed
def test_steps_that_differ_have_other_digests(change: tuple[str, int, int]) -> None:
    column, row, choice = change
    heads, turns = frames(*(talk(f"s{n:02}", *courses(n)[n]) for n in range(7)))
    before = with_stances(turns)
    other = {"role": ["user", "assistant", "developer", "system"], "tool": ["look", "paint", "sand", "price"],
             "content": ["hut03x", "blue", "", "No."], "arguments": [None, '{"wall": "hut09x"}', "{}", '{"wall": ["a1"]}'],
             "stance": ["both", "claims", "declines", "takes_back"], "is_error": [True, False, None, True],
             "position": [97, 98, 99, 100]}[column][choice]
    place = pl.int_range(pl.len()) == row % before.height
    after = before.with_columns(pl.when(place).then(pl.lit(other, before.schema[column])).otherwise(column).alias(column))
    seen = [gather(heads, each, feedback(), EFFECTS, START) for each in (before, after)]
    steps, digests = [steps_of(each) for each in seen], [digests_of(each) for each in seen]
    values = [dict(each.values.group_by("turn_id").agg("path", "value").select(
        "turn_id", pl.concat_list("path", "value")).iter_rows()) for each in seen]
    for session in steps[0]:
        own = [[(step, each.get(step.turn_id)) for step in of[session]] for of, each in zip(steps, values, strict=True)]
        assert own[0] == own[1] or digests[0][session] != digests[1][session]
        assert before.equals(after) or sum(digests[0][name] != digests[1][name] for name in digests[0]) <= 1


def test_a_night_reads_new_sessions_alone(tmp_path: Path) -> None:
    sessions = [talk(f"s{n:02}", *courses(n)[n % 7]) for n in range(14)]
    with Store.open(tmp_path / "warehouse.duckdb") as store:
        def n_made(of: list[Made]) -> int:
            made = []
            with memoized(store, "outcomes", "code") as memoize:
                judged(of, EFFECTS, lambda arguments, make: memoize(arguments, lambda: (made.append(arguments), make())[1]))
            return len(made)
        first, second, third = n_made(sessions), n_made([*sessions, talk("s99", *courses(99)[1])]), n_made(sessions[:-1])
    assert 0 < second <= first // 10 and not third
