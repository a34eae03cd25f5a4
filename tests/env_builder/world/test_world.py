"""The world rebuilt from logs of a real backend: nothing it says is wrong, what it saw it gives back to the byte."""

from __future__ import annotations

import copy
import json

import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from env_builder import behaviour, world
from env_builder.rooms import INSTANT, differences, rows_of
from env_builder.runtime.episode import EpisodeState
from env_builder.runtime.world import View, World
from tests.lockers import Logged, decisions_on_unseen, with_faults
from warehouse.records import Tool, empty

SLOW = settings(max_examples=settings().max_examples // 8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
SEEDS = st.integers(0, 10_000)


def rebuild(logged: Logged) -> tuple[world.InducedWorld, dict[str, EpisodeState]]:
    """Return the world from the logs, and a room for each session as of its start."""
    built = world.build(logged.sessions, logged.turns, empty(Tool), {})
    rows = rows_of("main", built.facts, built.recorded, behaviour.induce(built, empty(Tool)))
    base = World(rows.facts, rows.recorded)
    programs = {row["tool"]: row for row in rows.programs}
    starts = dict(logged.sessions.select("session_id", "started_at").iter_rows())
    views = {
        session_id: View(at and at.strftime(INSTANT.replace("%.6fZ", ".%fZ")), frozenset((session_id,)))
        for session_id, at in starts.items()
    }
    return built, {session_id: EpisodeState(base, programs, view) for session_id, view in views.items()}


def test_a_fault_that_passed_leaves_what_is_learnt_as_it_was() -> None:
    logged = Logged(3, 200, shared=True)
    whole, faulty = copy.copy(logged), copy.copy(logged)
    faulty.turns = with_faults(logged.turns, every=9)
    assert faulty.turns.height > whole.turns.height + 20
    learnt, learnt_with_faults = rebuild(whole)[0], rebuild(faulty)[0]
    said = behaviour.induce(learnt_with_faults, empty(Tool))
    assert said.equals(behaviour.induce(learnt, empty(Tool)))
    assert not any("busy" in text for text in said["program"])


def test_finds_things_in_the_frame_that_each_tool_puts_around_them() -> None:
    logged = Logged(3, 300, shared=True)
    bare = {tool: program["effect"] for tool, program in rebuild(logged)[0].services["main"].programs.items()}
    named = pl.when(pl.col("tool") == "show_person").then(pl.lit("person")).otherwise(pl.lit("locker"))
    framed = pl.concat_str(pl.lit('{"ok": true, "'), named, pl.lit('": '), "content", pl.lit("}"))
    shown = pl.col("content").str.starts_with("{")
    logged.turns = logged.turns.with_columns(pl.when(shown).then(framed).otherwise("content").alias("content"))
    built, rooms = rebuild(logged)
    service = built.services["main"]
    assert {tool: program["effect"] for tool, program in service.programs.items()} == bare
    assert {found.entity_class for found in service.documents.tools.values()} == {"show_locker", "show_person"}
    assert service.documents.envelopes["show_person"] == "person"
    last = max(rooms)
    opened = rooms[last].call("open_locker", {"locker": "L-100", "reason": "clean"})
    assert opened.tier != "unknown"
    assert opened.is_error or opened.content.startswith('{"ok": true, "locker": {"locker": "L-100"')


@pytest.mark.parametrize("shared", [True, False])
def test_finds_what_tools_do(shared: bool) -> None:
    built, _ = rebuild(Logged(3, 300, shared))
    service = built.services["main"]
    effects = {tool: program["effect"] for tool, program in service.programs.items()}
    assert service.starts_from == ("shared" if shared else "reset")
    assert effects == {
        "show_locker": "read", "show_person": "read", "open_locker": "write", "close_locker": "write", "note": "constant"}
    assert {found.entity_class for found in service.documents.tools.values()} == {"show_locker", "show_person"}


@pytest.mark.parametrize("shared", [True, False])
@SLOW
@given(seed=SEEDS)
def test_gives_back_every_session_as_it_was(shared: bool, seed: int) -> None:
    logged = Logged(seed, 60, shared)
    _, rooms = rebuild(logged)
    for session_id, tool, arguments, content in logged.turns.sort("session_id", "position").select(
        "session_id", "tool", "arguments", "content"
    ).iter_rows():
        result = rooms[session_id].call(tool, json.loads(arguments))
        assert (result.content, result.tier) != (content, "unknown")
        assert result.content == content, (session_id, tool, arguments)


@pytest.mark.parametrize("shared", [True, False])
@SLOW
@given(seed=SEEDS)
def test_never_answers_wrongly_what_nobody_did(shared: bool, seed: int) -> None:
    """Unseen sequences from a session's start: what is answered is what the real backend answers, or nearly always so."""
    logged = Logged(seed, 250, shared)
    _, rooms = rebuild(logged)
    decisions = decisions_on_unseen(logged, rooms, seed + 1)
    assert decisions["exact"] > 10, decisions
    assert decisions["wrong"] <= 0.02 * decisions["exact"], decisions


@pytest.mark.parametrize("shared", [True, False])
@SLOW
@given(seed=SEEDS)
def test_does_not_depend_on_the_order_of_rows(shared: bool, seed: int) -> None:
    logged = Logged(seed, 40, shared)
    shuffled = copy.copy(logged)
    shuffled.sessions = logged.sessions.sample(fraction=1.0, shuffle=True, seed=seed)
    shuffled.turns = logged.turns.sample(fraction=1.0, shuffle=True, seed=seed)
    one, other = rebuild(logged)[0], rebuild(shuffled)[0]
    assert one.facts.equals(other.facts)
    assert one.recorded.equals(other.recorded)
    assert behaviour.induce(one, empty(Tool)).equals(behaviour.induce(other, empty(Tool)))


def test_knows_what_each_session_changed() -> None:
    logged = Logged(5, 120, shared=True)
    built, _ = rebuild(logged)
    found = differences(
        logged.sessions, logged.turns, built.facts, built.recorded, behaviour.induce(built, empty(Tool)))
    worked = logged.turns.filter(~logged.turns["content"].str.starts_with("Error"))
    acted = set(worked.filter(worked["tool"].is_in(["open_locker", "close_locker"]))["session_id"])
    opened = set(worked.filter(worked["tool"] == "open_locker")["session_id"])
    changed = {session_id for session_id, text in found.iter_rows() if text and '"documents":{}' not in text}
    assert found.height == 120
    assert found["difference"].null_count() == 0
    for name in sorted(changed)[-3:]:
        alone = logged.sessions.filter(logged.sessions["session_id"] == name)
        told = differences(alone, logged.turns, built.facts, built.recorded, behaviour.induce(built, empty(Tool)))
        assert told.row(0) in found.rows(), "what a session changed hangs on no other session"
    assert opened <= changed <= acted
    assert len(opened) > 10


def test_believes_the_configuration_over_the_logs() -> None:
    logged = Logged(3, 60, shared=True)
    built = world.build(logged.sessions, logged.turns, empty(Tool), {"main": "reset"})
    assert built.services["main"].starts_from == "reset"
    assert built.services["main"].votes == {}
    assert built.facts.filter(built.facts["valid_from"].is_not_null()).is_empty()
