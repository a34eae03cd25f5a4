"""What holds over which stretch of time is found in one pass."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from env_builder.world.spans import FieldSpan, Stretch, along

BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
GAPS = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4)), max_size=8)


def at(hour: int) -> datetime:
    return BEGIN + timedelta(hours=hour)


def intervals(gaps: list[tuple[int, int]], is_open: tuple[bool, bool]) -> list[FieldSpan]:
    """One after the other: (hours since the last one ended, how long it lasts); open at the ends where that is said."""
    found: list[FieldSpan] = []
    now = 0
    for gap, length in gaps:
        found.append(FieldSpan(at(now + gap), at(now + gap + length), len(found), "seen"))
        now += gap + length
    if found and is_open[0]:
        found[0] = found[0]._replace(since=None)
    if found and is_open[1]:
        found[-1] = found[-1]._replace(until=None)
    return found


def covering(kept: list[FieldSpan], stretch: Stretch) -> FieldSpan | None:
    """Return the same, looked for among all of them."""
    since, until = stretch
    return next((one for one in kept if (one.since is None or (since is not None and one.since <= since))
                 and (one.until is None or (until is not None and until <= one.until))), None)


@given(GAPS, st.tuples(st.booleans(), st.booleans()), st.lists(st.integers(0, 40), max_size=6))
def test_one_pass_finds_what_a_search_for_each_stretch_finds(
    gaps: list[tuple[int, int]], is_open: tuple[bool, bool], others: list[int]
) -> None:
    kept = intervals(gaps, is_open)
    ends = {end for one in kept for end in (one.since, one.until) if end is not None}
    stretches: list[Stretch] = list(pairwise([None, *sorted(ends | set(map(at, others))), None]))
    assert list(along(kept, stretches)) == [covering(kept, stretch) for stretch in stretches]
