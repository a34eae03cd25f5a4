"""Arguments that name a record only together: found from calls, and played like one name."""

from __future__ import annotations

import json
import random
from typing import Any

from env_builder import behaviour, world
from env_builder.rooms import rows_of
from env_builder.runtime.episode import EpisodeState
from env_builder.runtime.joints import apart, joined, names_together
from env_builder.runtime.world import View, World
from env_builder.world.joints import find
from tests.env_builder.world.calls import call
from tests.env_builder.world.test_fields import EPOCH
from tests.lockers import turn
from warehouse.records import Session, Tool, Turn, empty, frame

SEATS = [(row, number) for row in "ABCDEF" for number in range(1, 9)]


class Theatre:
    """A hall whose seats are named by row and number together."""

    def __init__(self) -> None:
        self.seats: dict[tuple[str, int], dict[str, Any]] = {
            (row, number): {"row": row, "number": number, "guest": None, "price": 10.0 + number} for row, number in SEATS}

    def call(self, tool: str, arguments: dict[str, Any]) -> str:
        seat = self.seats.get((arguments["row"], arguments["number"]))
        if seat is None:
            return "Error: no such seat"
        if tool == "show":
            return json.dumps(seat)
        seat["guest"] = arguments["guest"]
        return "true"


def asked(choose: random.Random) -> list[tuple[str, dict[str, Any]]]:
    row, number = choose.choice(SEATS)
    seat = {"row": row, "number": number}
    return [("show", seat), ("take", {**seat, "guest": f"guest {choose.randrange(10 ** 6)}"}), ("show", seat)]


def test_a_set_that_two_tools_take_is_found() -> None:
    theatre, choose = Theatre(), random.Random(2)
    calls = [call(tool, arguments, theatre.call(tool, arguments)) for _ in range(40) for tool, arguments in asked(choose)]
    assert find(calls) == {"show": [["number", "row"]], "take": [["number", "row"]]}


def test_a_write_that_shows_what_it_made_is_no_reader() -> None:
    calls = []
    for row, number in SEATS:
        seat = {"row": row, "number": number}
        calls.append(call("claim", seat, json.dumps({"claimed": f"{row}{number}", "left": 40 - number})))
        calls.append(call("leave", seat, "true"))
    assert find(calls) == {}


def test_an_option_is_no_part_of_a_name() -> None:
    theatre, choose = Theatre(), random.Random(2)
    calls = []
    for place in range(80):
        row, number = choose.choice(SEATS[:20])
        arguments = {"seat": f"{row}{number}", "unit": "EUR" if place % 2 else "USD"}
        calls.append(call("show", arguments, json.dumps(theatre.seats[row, number])))
        calls.append(call("take", {**arguments, "guest": f"g{place}"}, "true"))
    assert find(calls) == {}


def test_what_is_joined_comes_apart() -> None:
    given = {"row": "A", "number": 3, "guest": "Ada"}
    inside = joined(given, [["number", "row"]])
    assert inside["number+row"] == "3/A" and apart(inside) == given
    assert joined({"row": "A", "number": None}, [["number", "row"]]) == {"row": "A", "number": None}


def test_a_call_without_arguments_in_an_object_is_graded_as_any_other() -> None:
    programs = {"lend": {"tool": "lend", "effect": "write", "relation": {}, "rules": [{"rule": "recorded"}],
                         "joint": [["shelf", "place"]]}}
    state = EpisodeState(World([], []), programs, View(None, frozenset()))
    for arguments in ("null", "[1]", '"x"'):
        assert state.names_known("lend", arguments) is None


def test_writes_are_played_on_records_named_by_two_arguments() -> None:
    theatre, choose, turns, sessions, at = Theatre(), random.Random(7), [], [], EPOCH
    for place in range(120):
        name = f"s{place:03}"
        for position, (tool, arguments) in enumerate(asked(choose)):
            at += (EPOCH.replace(minute=20) - EPOCH)
            turns.append(turn(name, position, at, tool, arguments, theatre.call(tool, arguments)))
        sessions.append({
            "session_id": name, "source": "main", "service": "main", "started_at": at, "ended_at": at, "day": None,
            "n_messages": 0, "n_calls": 3, "identity": None, "format": "test"})
    built = world.build(frame(Session, sessions), frame(Turn, turns), empty(Tool), {"main": "shared"})
    rows = rows_of("main", built.facts, built.recorded, behaviour.induce(built, empty(Tool)))
    view = View(at.replace(hour=(at.hour + 1) % 24).strftime("%Y-%m-%dT%H:%M:%S.%fZ"), frozenset())
    room = EpisodeState(World(rows.facts, rows.recorded), {row["tool"]: row for row in rows.programs}, view)
    n_exact = 0
    for row, number in SEATS:
        state, hall = room.fork(), Theatre()
        hall.seats = {name: dict(seat) for name, seat in theatre.seats.items()}
        seat = {"row": row, "number": number}
        for tool, arguments in (("show", seat), ("take", {**seat, "guest": "guest 7"}), ("show", seat)):
            got, wanted = state.call(tool, arguments), hall.call(tool, arguments)
            assert got.tier == "unknown" or got.content == wanted
            n_exact += got.tier != "unknown"
        assert all(set(json.loads(key)) <= {"row", "number", "guest"} for _, key in state.difference()["write_calls"])
    assert n_exact >= 100


def test_a_joint_name_is_named_by_all_its_parts() -> None:
    assert names_together("3/A", {"3", "A", "x"}) and names_together("3/A", {"3/A"})
    assert not names_together("3/A", {"3", "x"}) and not names_together("A3", {"A", "3"})


def test_a_tool_names_records_under_other_names_for_the_same_values() -> None:
    theatre, choose = Theatre(), random.Random(2)
    calls = [call(tool, arguments, theatre.call(tool, arguments)) for _ in range(40) for tool, arguments in asked(choose)]
    calls = [each._replace(arguments={**each.arguments, "number": f"N{each.arguments['number']}"}) for each in calls]
    moved = [call("swap", {"row": choose.choice("ABCDEF"), "from": f"N{n % 8 + 1}", "to": f"N{(n + 3) % 8 + 1}", "why": f"{n}"},
                  "true") for n in range(12)]
    assert find([*calls, *moved])["swap"] == [["from", "row"], ["to", "row"]]
    assert "swap" not in find([*calls, *(each._replace(arguments={**each.arguments, "from": "hall", "to": "bar"})
                                         for each in moved)])
