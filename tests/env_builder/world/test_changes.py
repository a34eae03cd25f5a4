"""Row changes as evidence: every version to the byte, what is not there, and what writes change behind their answers."""

from __future__ import annotations

import copy
import json
from collections import Counter
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from env_builder import behaviour, world
from env_builder.rooms import rows_of
from env_builder.runtime.episode import EpisodeState
from env_builder.runtime.world import View, World
from env_builder.world.history import instant
from tests.lockers import EPOCH, Logged, decisions_on_unseen
from warehouse.records import Tool, empty

SLOW = settings(
    max_examples=4, deadline=None, phases=(Phase.explicit, Phase.generate), suppress_health_check=[HealthCheck.too_slow])


def rooms_of(logged: Logged, fed: bool) -> tuple[world.InducedWorld, dict[str, EpisodeState]]:
    """Return the world with or without the feed, and a room without a session of its own for each session's start."""
    built = world.build(logged.sessions, logged.turns, empty(Tool), {}, logged.changes if fed else None)
    rows = rows_of("main", built.facts, built.recorded, behaviour.induce(built, empty(Tool)))
    programs = {row["tool"]: row for row in rows.programs}
    base = World(rows.facts, rows.recorded)
    starts = dict(logged.sessions.select("session_id", "started_at").iter_rows())
    return built, {name: EpisodeState(base, programs, View(instant(at), frozenset())) for name, at in starts.items()}


@SLOW
@given(seed=st.integers(0, 10_000))
def test_the_world_is_what_the_database_was_at_every_start(seed: int) -> None:
    logged = Logged(seed, 60, shared=True)
    built, rooms = rooms_of(logged, fed=True)
    assert {"show_locker", "show_person"} == set(built.services["main"].feeds)
    for name, real in logged.before.items():
        for kind, rows in (("show_locker", real.lockers), ("show_person", real.people)):
            assert all(rooms[name].document((kind, key)) == json.dumps(row) for key, row in rows.items())
    since = built.facts.filter(built.facts["session_id"].is_null() & (built.facts["valid_from"] >= EPOCH))
    assert set(since["derivation"]) == {"row_change"}


@SLOW
@given(seed=st.integers(0, 10_000))
def test_more_is_answered_with_a_feed_and_nothing_wrongly(seed: int) -> None:
    logged = Logged(seed, 250, shared=True)
    counts: dict[bool, Counter[str]] = {}
    for fed in (False, True):
        _, rooms = rooms_of(logged, fed)
        counts[fed] = decisions_on_unseen(logged, rooms, seed + 1)
    assert counts[True]["exact"] > counts[False]["exact"], counts
    assert counts[True]["exact"] > 120, counts
    assert all(count["wrong"] <= 0.02 * count["exact"] for count in counts.values()), counts


def test_learns_what_a_write_changes_behind_its_answer() -> None:
    logged = Logged(3, 300, shared=True)
    for fed in (False, True):
        built, rooms = rooms_of(logged, fed)
        (one,) = built.services["main"].also["close_locker"]
        assert (one["class"], one["path"], one["by"]) == ("show_person", ["credit"], ["negative", ["argument", "fee"]])
        last = max(rooms)
        real, room = copy.deepcopy(logged.before[last]), rooms[last]
        for locker in real.lockers:
            real.call("close_locker", {"locker": locker, "fee": 4})
            room.call("close_locker", {"locker": locker, "fee": 4})
        shown = [(room.call("show_person", {"person": person}), json.dumps(row)) for person, row in real.people.items()]
        assert all(got.tier == "unknown" or got.content == wanted for got, wanted in shown)
        assert not fed or all(got.tier != "unknown" for got, _ in shown)


def test_says_of_what_is_not_there_what_other_tools_say_of_it() -> None:
    _, rooms = rooms_of(Logged(3, 300, shared=True), fed=True)
    room = rooms[max(rooms)]
    got = room.call("open_locker", {"locker": "L-999", "reason": "clean"})
    assert (got.content, got.is_error) == ("Error: no such locker", True)
    room.view = room.view._replace(instant=instant(EPOCH - timedelta(days=1)))
    assert room.call("open_locker", {"locker": "L-998", "reason": "clean"}).tier == "unknown"


@pytest.mark.parametrize("missing", ["rev", "owner"])
def test_a_table_without_a_field_that_is_shown_tells_nothing(missing: str) -> None:
    logged = Logged(3, 60, shared=True)
    cut = [{name: value if name not in ("before", "after") or value is None else json.dumps(
        {field: one for field, one in json.loads(value).items() if field != missing}) for name, value in row.items()}
        for row in logged.changes.to_dicts()]
    logged.changes = type(logged.changes)(cut, schema=logged.changes.schema)
    built, _ = rooms_of(logged, fed=True)
    assert ("show_locker" in built.services["main"].feeds) == (missing == "rev")
