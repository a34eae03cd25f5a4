"""Owners whose record lists their bookings: a new booking stands in the list of its owner, and is gone from what is free."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

from env_builder import behaviour, world
from env_builder.rooms import rows_of
from env_builder.runtime.canonical import canonical
from env_builder.runtime.episode import EpisodeState
from env_builder.runtime.world import View, World
from warehouse.records import Session, Tool, Turn, empty, frame

Row = dict[str, Any]


def booking(number: int, owner: int, boat: int) -> Row:
    return {"booking": number, "owner": owner, "boat": boat, "pier": ("west", "east")[boat % 2], "status": "open"}


class Harbour:
    """The real backend of one session; all sessions begin alike."""

    def __init__(self, charges: bool = False) -> None:
        self.charges = charges
        self.owners: dict[int, Row] = {n: {"owner": n, "since": 1990 + n % 30, "due": n * 10} for n in range(301, 313)}
        self.bookings: dict[int, Row] = {}
        for n, owner in enumerate([*self.owners, *list(self.owners)[::2]]):
            self.bookings[800 + n] = booking(800 + n, owner, 40 + n)

    def answer(self, tool: str, arguments: Row) -> str:
        """Return what the real tool says."""
        return json.dumps(getattr(self, tool)(**arguments))

    def owner(self, owner: int) -> Row:
        return {**self.owners[owner], "bookings": [n for n, one in self.bookings.items() if one["owner"] == owner]}

    def booking(self, booking: int) -> Row:
        return self.bookings[booking]

    def free(self, pier: str, page: int = 1) -> Row:
        taken = {one["boat"] for one in self.bookings.values()}
        boats = [boat for boat in range(40, 86) if boat not in taken and boat % 2 == (pier == "east")]
        shown = boats[5 * page - 5:5 * page]
        return {"n_boats": len(boats), "boats": [{"boat": boat, "berth": f"B-{boat * 7 % 50}"} for boat in shown]}

    def book(self, owner: int, boat: int) -> Row:
        number = max(self.bookings) + 1
        self.bookings[number] = booking(number, owner, boat)
        if self.charges:
            self.owners[owner]["due"] += 7
        return self.bookings[number]


def question(choose: random.Random) -> Row:
    page = choose.randrange(1, 4)
    return {"pier": choose.choice(("east", "west"))} | ({"page": page} if page > 1 else {})


def calls_of(choose: random.Random) -> list[tuple[str, Row]]:
    """Return the calls of one session."""
    owner, other = choose.sample(range(301, 313), 2)
    calls: list[tuple[str, Row]] = [("owner", {"owner": owner}), ("booking", {"booking": choose.randrange(800, 818)}),
                                    ("free", question(choose)), ("owner", {"owner": other})]
    if choose.random() < 0.5:
        calls.append(("book", {"owner": owner, "boat": choose.randrange(58, 86)}))
        calls += [("owner", {"owner": owner})] if choose.random() < 0.3 else [("free", question(choose))]
    return calls


def built(charges: bool, n_sessions: int = 100) -> EpisodeState:
    """Return an episode in the environment that is built from logged sessions."""
    choose = random.Random(3)
    turns: list[Row] = []
    sessions: list[Row] = []
    for session in range(n_sessions):
        harbour, calls = Harbour(charges), calls_of(choose)
        sessions.append({
            "session_id": f"s{session:03}", "source": "main", "service": "main", "started_at": None, "ended_at": None,
            "day": None, "n_messages": 0, "n_calls": len(calls), "identity": None, "format": "test"})
        turns += [{
            "turn_id": f"{session}-{position}", "session_id": f"s{session:03}", "service": "main", "position": position,
            "happened_at": None, "kind": "call", "role": None, "content": harbour.answer(tool, arguments), "call_id": None,
            "tool": tool, "arguments": canonical(arguments), "arguments_raw": None, "is_error": None, "requestor": None,
            "answered_at": None, "result_id": None, "latency_ms": None, "model": None}
            for position, (tool, arguments) in enumerate(calls)]
    induced = world.build(frame(Session, sessions), frame(Turn, turns), empty(Tool), {"main": "reset"})
    rows = rows_of("main", induced.facts, induced.recorded, behaviour.induce(induced, empty(Tool)))
    return EpisodeState(World(rows.facts, rows.recorded), {row["tool"]: row for row in rows.programs}, View(None, frozenset()))


@pytest.mark.parametrize("charges", [False, True])
def test_a_new_booking_stands_in_the_list_of_its_owner(charges: bool) -> None:
    environment = built(charges)
    outcomes: list[bool | None] = []
    for owner in range(301, 313):
        harbour, episode = Harbour(charges), environment.fork()
        calls: list[tuple[str, Row]] = [
            ("book", {"owner": owner, "boat": 60}), ("owner", {"owner": owner}), ("free", {"pier": "west"})]
        for tool, arguments in calls:
            real, reply = harbour.answer(tool, arguments), episode.call(tool, arguments)
            outcomes.append(None if reply.tier == "unknown" else reply.content == real)
    assert False not in outcomes
    assert outcomes.count(None) <= 2


def test_a_record_of_which_more_changed_is_not_answered_by_its_list_alone() -> None:
    plain, charging = built(False), built(True)
    for episode, due in ((plain, 3070), (charging, 3077)):
        assert episode.call("book", {"owner": 307, "boat": 61}).tier != "unknown"
        reply = episode.call("owner", {"owner": 307})
        assert reply.tier == "unknown" or json.loads(reply.content)["due"] == due
