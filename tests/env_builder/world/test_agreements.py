"""Readers that take a record's key and something that must agree with the record."""

from __future__ import annotations

import json
import random
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder import behaviour, world
from env_builder.rooms import rows_of
from env_builder.runtime.agreements import WAYS, agree, holds
from env_builder.runtime.episode import EpisodeState
from env_builder.runtime.world import View, World
from env_builder.world import documents
from env_builder.world.calls import LoggedCall
from tests.env_builder.world.calls import call
from tests.env_builder.world.test_fields import EPOCH
from tests.lockers import turn
from warehouse.records import Session, Tool, Turn, empty, frame

GUESTS = ["Ada Stone", "Bo Lind", "Cy Marsh", "Di Frost", "Ed Vale", "Flo Reed"]


def looks(of: dict[str, Any] | None = None, times: int = 2) -> list[LoggedCall]:
    """Each guest's record, looked at with the last word of the name."""
    asked = []
    for n, guest in enumerate(GUESTS * times):
        code = f"K{n % len(GUESTS)}"
        record = {"code": code, "guest": guest, "nights": 2 + n % len(GUESTS), "at": {"city": "Ulm"}, **(of or {})}
        asked.append(call("show", {"code": code, "surname": guest.split()[1]}, json.dumps(record), position=n))
    return asked


def test_an_argument_that_the_record_always_ends_with_names_nothing() -> None:
    known = documents.find(looks())
    assert known.tools["show"] == ("show", "show", "code", False, (("surname", ("guest",), "ends"),))
    assert known.seen_in(looks()[0]) is not None
    assert known.tools["show"].is_look


def test_what_was_never_asked_twice_may_be_a_change() -> None:
    assert "show" not in documents.find(looks(times=1)).tools


def test_a_key_that_shows_different_values_beside_it_is_not_the_whole_name() -> None:
    days = [call("day", {"room": f"R{n % 6}", "day": f"d{n // 6}"}, json.dumps({"room": f"R{n % 6}", "day": f"d{n // 6}"}),
                 position=n) for n in range(12)]
    assert "day" not in documents.find(days * 2).tools


def test_an_argument_that_the_record_does_not_show_is_no_agreement() -> None:
    secret = [one._replace(arguments={**one.arguments, "pin": "0000"}) for one in looks()]
    assert "show" not in documents.find(secret).tools


@pytest.mark.parametrize(("how", "given_text", "value", "is_held"), [
    ("equal", "12", 12, True), ("equal", "Stone", "Ada Stone", False), ("ends", "Stone", "Ada Stone", True),
    ("ends", "tone", "Ada Stone", False), ("begins", "Ada", "Ada Stone", True), ("begins", "Ad", "Ada Stone", False),
    ("ends", "stone ", "Ada Stone", False), ("ends_folded", "stone ", "Ada Stone", True), ("equal", "", "", False),
    ("equal", "None", None, False)])
def test_how_a_value_holds_what_was_given(how: str, given_text: str, value: object, is_held: bool) -> None:
    assert holds(how, given_text, value) is is_held


@given(st.sampled_from(WAYS), st.text(min_size=1).filter(str.strip))
def test_each_way_holds_the_whole_value(how: str, text: str) -> None:
    assert holds(how, text, text)


def test_only_what_agrees_everywhere_is_answered() -> None:
    agreements = [["surname", ["guest"], "ends"], ["city", ["at", "city"], "equal"]]
    record = {"guest": "Ada Stone", "at": {"city": "Ulm"}}
    assert agree(agreements, {"surname": "Stone", "city": "Ulm"}, record)
    assert not agree(agreements, {"surname": "Stone"}, record)
    assert not agree(agreements, {"surname": "Stone", "city": "Bonn"}, record)
    assert not agree(agreements, {"surname": "Stone", "city": "Ulm"}, {"guest": "Ada Stone", "at": "Ulm"})


def test_a_change_is_played_on_a_record_that_is_shown_to_its_owner_alone() -> None:
    choose, turns, sessions, at = random.Random(5), [], [], EPOCH
    records = {f"K{n:02}": {"code": f"K{n:02}", "guest": f"{choose.choice('ABCD')} {GUESTS[n % 6].split()[1]}", "nights": 2}
               for n in range(40)}
    for place in range(120):
        code, session = choose.choice(sorted(records)), f"s{place:03}"
        own = {"code": code, "surname": records[code]["guest"].split()[1]}
        for position, tool in enumerate(("show", "stay", "show", "show")):
            at += timedelta(minutes=20)
            nights = choose.randrange(1, 9)
            arguments: dict[str, Any] = {"code": code, "nights": nights} if tool == "stay" else own
            records[code]["nights"] = nights if tool == "stay" else records[code]["nights"]
            turns.append(turn(session, position, at, tool, arguments, "null" if tool == "stay" else json.dumps(records[code])))
        sessions.append({
            "session_id": session, "source": "main", "service": "main", "started_at": at, "ended_at": at, "day": None,
            "n_messages": 0, "n_calls": 4, "identity": None, "format": "test"})
    built = world.build(frame(Session, sessions), frame(Turn, turns), empty(Tool), {"main": "shared"})
    rows = rows_of("main", built.facts, built.recorded, behaviour.induce(built, empty(Tool)))
    view = View((at + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%S.%fZ"), frozenset())
    room = EpisodeState(World(rows.facts, rows.recorded), {row["tool"]: row for row in rows.programs}, view)
    n_shown, asked_for = 0, {json.loads(one["arguments"])["code"] for one in turns}
    for code, record in records.items():
        state, surname = room.fork(), record["guest"].split()[1]
        assert state.call("stay", {"code": code, "nights": 5}).tier != "unknown" or code not in asked_for
        shown = state.call("show", {"code": code, "surname": surname})
        assert shown.tier == "unknown" or json.loads(shown.content) == {**record, "nights": 5}
        n_shown += shown.tier == "derived"
        assert state.call("show", {"code": code, "surname": "Nobody"}).tier == "unknown"
    assert n_shown >= 30
