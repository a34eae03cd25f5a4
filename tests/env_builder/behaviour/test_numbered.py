"""A tool with one answer: where that holds a number, its second call in an episode may count on."""

from __future__ import annotations

import pytest

from env_builder import world
from env_builder.behaviour import induce
from env_builder.rooms import rows_of
from env_builder.runtime.canonical import canonical
from env_builder.runtime.episode import EpisodeState
from env_builder.runtime.world import View, World
from warehouse.records import Session, Tool, Turn, frame


def room(answer: str, n_calls: int, starts_from: str = "reset") -> EpisodeState:
    """Return a room of ten sessions that queue a letter each, `n_calls` times."""
    turns = [dict.fromkeys(Turn.model_fields) | {
        "turn_id": f"{n}.{place}", "session_id": f"s{n}", "service": "main", "position": place, "kind": "call",
        "content": answer, "tool": "queue", "arguments": canonical({"to": f"name {n}", "kind": f"k{n}{place}"})}
        for n in range(10) for place in range(n_calls)]
    sessions = [dict.fromkeys(Session.model_fields) | {
        "session_id": f"s{n}", "source": "main", "service": "main", "n_messages": 0, "n_calls": n_calls, "format": "test"}
        for n in range(10)]
    tools = frame(Tool, [dict.fromkeys(Tool.model_fields) | {
        "service": "main", "tool": "queue", "input_schema": "{}", "declared": False, "n_calls": 10}])
    built = world.build(frame(Session, sessions), frame(Turn, turns), tools, {"main": starts_from})
    rows = rows_of("main", built.facts, built.recorded, induce(built, tools))
    return EpisodeState(World(rows.facts, rows.recorded), {row["tool"]: row for row in rows.programs}, View(None, frozenset()))


def test_a_number_that_stayed_the_same_in_a_world_of_all_sessions_counts_nothing() -> None:
    state = room("1001;queued", 1, "shared")
    state.call("queue", {"to": "somebody", "kind": "x"})
    assert state.call("queue", {"to": "another", "kind": "y"}) == ("1001;queued", False, "derived")


@pytest.mark.parametrize(("answer", "n_calls", "second"), [
    ("1001;queued", 1, "unknown"), ("queued", 1, "derived"), ("queued, 2 days", 2, "derived")])
def test_the_second_call_is_answered_where_no_number_may_count(answer: str, n_calls: int, second: str) -> None:
    state = room(answer, n_calls)
    assert state.call("queue", {"to": "somebody", "kind": "x"}).content == answer
    assert state.call("queue", {"to": "another", "kind": "y"}).tier == second
