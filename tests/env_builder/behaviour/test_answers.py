"""Answers of writes that name two records: known where both are, and as calls that worked found them."""

from __future__ import annotations

import json
import random
from datetime import timedelta
from typing import Any

import pytest

from env_builder import behaviour, world
from env_builder.rooms import rows_of
from env_builder.runtime.episode import EpisodeState
from env_builder.runtime.world import View, World
from env_builder.world.documents import find as find_documents
from env_builder.world.effects import find
from tests.env_builder.world.calls import call
from tests.env_builder.world.test_fields import EPOCH
from tests.lockers import turn
from warehouse.records import Session, Tool, Turn, empty, frame


class Shed:
    """Tools that members put their names on; nobody logs that a tool may be taken already."""

    def __init__(self) -> None:
        self.tools: dict[str, dict[str, Any]] = {
            f"T{n}": {"tool": f"T{n}", "kilos": n / 10, "user": None} for n in range(40, 90)}
        self.members = {f"M{n}": {"member": f"M{n}", "street": f"Lane {n}", "since": 2000 + n % 20} for n in range(10, 30)}

    def call(self, name: str, arguments: dict[str, Any]) -> str:
        if name == "show_member":
            return json.dumps(self.members[arguments["member"]])
        if arguments["tool"] not in self.tools:
            return f"Error: tool {arguments['tool']} not found"
        if name == "show_tool":
            return json.dumps(self.tools[arguments["tool"]])
        self.tools[arguments["tool"]]["user"] = arguments["member"]
        return "Noted."


@pytest.fixture(scope="module")
def shed() -> tuple[Shed, EpisodeState]:
    """Return the shed as its log left it, and the environment that was built from that log."""
    real, choose, at, turns, sessions = Shed(), random.Random(6), EPOCH, [], []
    for place in range(45):
        name, member, tool = f"s{place:03}", choose.choice(sorted(real.members)), f"T{40 + place}"
        asked = [("show_member", {"member": member}), ("show_tool", {"tool": tool}), ("take", {"tool": tool, "member": member}),
                 ("show_tool", {"tool": tool})]
        if place % 9 == 0:
            asked = [asked[0], ("take", {"tool": f"{tool}9", "member": member})]
        for position, (called, arguments) in enumerate(asked):
            at += timedelta(minutes=3)
            turns.append(turn(name, position, at, called, arguments, real.call(called, arguments)))
        sessions.append({
            "session_id": name, "source": "main", "service": "main", "started_at": at, "ended_at": at, "day": None,
            "n_messages": 0, "n_calls": len(asked), "identity": None, "format": "test"})
    at += timedelta(minutes=3)
    for position, tool in enumerate(sorted(real.tools)[-5:]):
        turns.append(turn("s044", 10 + position, at, "show_tool", {"tool": tool}, real.call("show_tool", {"tool": tool})))
    built = world.build(frame(Session, sessions), frame(Turn, turns), empty(Tool), {"main": "shared"})
    rows = rows_of("main", built.facts, built.recorded, behaviour.induce(built, empty(Tool)))
    view = View((at + timedelta(minutes=1)).strftime("%Y-%m-%dT%H:%M:%S.%fZ"), frozenset())
    return real, EpisodeState(World(rows.facts, rows.recorded), {row["tool"]: row for row in rows.programs}, view)


def test_both_records_must_be_as_calls_that_worked_found_them(shed: tuple[Shed, EpisodeState]) -> None:
    real, built = shed
    free = next(tool for tool, row in real.tools.items() if row["user"] is None and built.fork().call(
        "show_tool", {"tool": tool}).tier != "unknown")
    taken = next(tool for tool, row in real.tools.items() if row["user"] is not None)
    member = next(member for member in real.members if built.fork().call("show_member", {"member": member}).tier != "unknown")
    state = built.fork()
    assert state.call("take", {"tool": free, "member": member}).content == "Noted."
    assert json.loads(state.call("show_tool", {"tool": free}).content)["user"] == member
    for odd in (taken, f"{free}9", free):
        assert state.call("take", {"tool": odd, "member": member}).tier == "unknown"


def test_what_counts_its_calls_is_no_read() -> None:
    calls = [call("stamp", {"text": f"word {session}-{place}"}, f"stamp {place + 1}", f"s{session}", place)
             for session in range(8) for place in range(2)]
    effects = find(calls, find_documents(calls), False, {})
    assert effects.effect == {"stamp": "unknown"} and not effects.presumed
