"""Times and names that nobody could foretell: found, drawn by seed where asked for, left out of comparisons."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from env_builder import behaviour, world
from env_builder.behaviour import volatile
from env_builder.behaviour.examples import WriteExample
from env_builder.behaviour.synthesis import explain
from env_builder.rooms import rows_of
from env_builder.runtime import clock
from env_builder.runtime.ends import end_state, unreached
from env_builder.runtime.episode import EpisodeState
from env_builder.runtime.expressions import NOW
from env_builder.runtime.numbering import drawn
from env_builder.runtime.world import View, World
from tests.lockers import turn
from warehouse.records import Session, Tool, Turn, empty, frame

EPOCH = datetime(2031, 5, 1, tzinfo=UTC)
FORMS = ("YYYY-MM-DDThh:mm:ssZ", "YYYY-MM-DD hh:mm", "YYYY-MM-DDThh:mm:ss.mmm+02:00", "YYYY-MM-DDThh:mm:ss.uuuuuu",
         "YYYY-MM-DD", "seconds", "milliseconds", "seconds.")
INSTANTS = st.datetimes(datetime(2005, 1, 1), datetime(2090, 1, 1), timezones=st.just(UTC))
SHAPES = st.lists(st.tuples(st.sampled_from(["digits", "hex", "LETTERS", "SIGNS"]), st.integers(5, 9)), min_size=1, max_size=3)


@given(st.sampled_from(FORMS), INSTANTS)
def test_reads_what_it_writes(form: str, at: datetime) -> None:
    written = clock.write(form, at)
    found = clock.read(written)
    assert found is not None and found[0] == form and clock.write(form, found[1]) == written


@given(st.sampled_from(FORMS), st.integers(-40, 40), st.integers(0, 50), st.integers(0, 99))
def test_finds_the_time_of_the_call_a_constant_span_later(form: str, hours: int, late: int, seed: int) -> None:
    choose = random.Random(seed)
    examples = []
    for _ in range(12):
        at = EPOCH + timedelta(seconds=choose.randrange(30 * 86400))
        delay = timedelta(hours=hours, seconds=0 if form in ("YYYY-MM-DD", "YYYY-MM-DD hh:mm") else choose.random() * late)
        examples.append(_example(clock.write(form, at + delay), at))
    found = explain(examples, [])
    assert found is not None and found[:2] == ["now", form]
    if form == "YYYY-MM-DD":
        assert all(clock.write(form, clock.after(one.look(NOW, "day"), found[2])) == one.after for one in examples)
        assert volatile.paths(found) == []
    else:
        assert found[2] == hours * 3600 and volatile.paths(found) == [[]]


def test_a_day_that_never_varies_is_a_constant_unless_it_is_today() -> None:
    hours = [EPOCH + timedelta(hours=n) for n in range(6)]
    assert explain([_example("2031-05-01", at) for at in hours], []) == ["now", "YYYY-MM-DD", 0]
    assert explain([_example("2029-01-01", at) for at in hours], []) == ["constant", "2029-01-01"]


@given(SHAPES, st.integers(0, 99))
def test_finds_the_shape_of_names(signs: list[tuple[str, int]], seed: int) -> None:
    shape = ["REF-7/", *(piece for one in signs for piece in (list(one), "/"))][:-1]
    values = [drawn(shape, seed, n) for n in range(60)]
    assume(len(set(values)) == len(values))  # what comes twice is no name
    found = volatile.fresh([_example(value, EPOCH) for value in values], "name")
    assert found is not None
    again, first = drawn(found[2], "x"), values[0]
    assert isinstance(again, str) and isinstance(first, str)
    assert [len(part) for part in again.split("/")] == [len(part) for part in first.split("/")]


@pytest.mark.parametrize("values", [["a-1", "a-2", "a-3", "a-4", "a-5", "a-6"], [f"word{'x' * n}" for n in range(8)],
                                    ["same-1234567"] * 8, [f"two words {n}1234567" for n in range(8)]])
def test_counters_and_words_are_not_drawn(values: list[str]) -> None:
    assert volatile.fresh([_example(value, EPOCH) for value in values], "name") is None


def _example(after: Any, at: datetime) -> WriteExample:
    return WriteExample({}, {}, after, lambda kind, key: at.isoformat() if kind == NOW else None)


class Desk:
    """A desk that gives tickets names by chance and notes when things were done."""

    def __init__(self, seed: int, counting: bool) -> None:
        self.choose, self.counting = random.Random(seed), counting
        self.tickets: dict[str, dict[str, Any]] = {}

    def call(self, tool: str, arguments: dict[str, Any], at: datetime) -> str:
        now = clock.write("YYYY-MM-DDThh:mm:ssZ", at)
        if tool == "open_ticket":
            drawn = "".join(self.choose.choices("0123456789abcdef", k=8))
            name = f"TK-{f'{len(self.tickets) + 990:05}' if self.counting else drawn}"
            due = str((at + timedelta(7)).date())
            self.tickets[name] = {
                "id": name, "about": arguments["about"], "state": "open", "due": due, "made": now, "notes": []}
            return json.dumps(self.tickets[name])
        found = self.tickets.get(arguments["id"])
        if found is None:
            return "Error: no such ticket"
        if tool == "note":
            found["notes"].append({"text": arguments["text"], "at": now})
        return json.dumps(found)


@pytest.fixture(scope="module")
def room() -> EpisodeState:
    """Return the desk's room as of a day after its last session."""
    return _rebuilt(counting=False)


def _rebuilt(counting: bool) -> EpisodeState:
    choose, desk, at = random.Random(3), Desk(3, counting), EPOCH
    sessions, turns = [], []
    for number in range(60):
        name, at = f"s{number:03}", at + timedelta(hours=choose.randrange(2, 30))
        asked: list[tuple[str, dict[str, Any]]] = [("open_ticket", {"about": choose.choice(["lamp", "door", "lift"])})]
        if desk.tickets:
            old = choose.choice(sorted(desk.tickets))
            asked = choose.choice([asked, [("see", {"id": old}), ("note", {"id": old, "text": f"seen by {number}"})]])
        for position, (tool, arguments) in enumerate(asked):
            at += timedelta(seconds=20)
            turns.append(turn(name, position, at, tool, arguments, desk.call(tool, arguments, at)))
        sessions.append({
            "session_id": name, "source": "main", "service": "main", "started_at": at, "ended_at": at, "day": None,
            "n_messages": 0, "n_calls": len(asked), "identity": None, "format": "test"})
    built = world.build(frame(Session, sessions), frame(Turn, turns), empty(Tool), {"main": "shared"})
    rows = rows_of("main", built.facts, built.recorded, behaviour.induce(built, empty(Tool)))
    known = {row["tool"]: rows.support[row["tool"]] for row in rows.programs if "volatile" in row["rules"][-1]}
    assert {tool: says["held_out_exact"] for tool, says in known.items()} == {"note": 1.0, "open_ticket": 1.0}
    at += timedelta(days=1)
    return EpisodeState(World(rows.facts, rows.recorded), {row["tool"]: row for row in rows.programs},
                View(at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"), frozenset()))


def _seeded(state: EpisodeState, seed: int) -> EpisodeState:
    """Return the same state, in which names and times are sampled by the seed."""
    state._seed = seed
    return state


def test_draws_nothing_unless_asked_to(room: EpisodeState) -> None:
    said = room.fork().call("open_ticket", {"about": "lamp"})
    assert said.tier == "unknown" and said.content.endswith("the perturbation `fresh` lets it answer with others")


def test_draws_names_and_times_by_seed(room: EpisodeState) -> None:
    one, again, other = (_seeded(room.fork(), seed) for seed in (7, 7, 8))
    asked = ("open_ticket", {"about": "lamp"})
    first, second = one.call(*asked), one.call(*asked)
    assert (again.call(*asked), again.call(*asked)) == (first, second)
    made, later, elsewhere = (json.loads(said.content) for said in (first, second, other.call(*asked)))
    assert len({made["id"], later["id"], elsewhere["id"]}) == 3 and first.tier == "induced"
    instant = room.view.instant or ""
    assert made["made"][:10] == instant[:10] and made["made"] < later["made"]
    assert made["due"] == str((datetime.fromisoformat(instant) + timedelta(7)).date())
    assert one.call("see", {"id": made["id"]}).content == first.content
    noted = json.loads(one.call("note", {"id": made["id"], "text": "seen by 3"}).content)
    assert [note["text"] for note in noted["notes"]] == ["seen by 3"] and noted["made"] == made["made"]


def test_ends_are_compared_without_what_was_drawn(room: EpisodeState) -> None:
    def played(seed: int, *about: str, noted: str = "seen by 3") -> Any:
        twin = _seeded(room.fork(), seed)
        names = [json.loads(twin.call("open_ticket", {"about": one}).content)["id"] for one in about]
        twin.call("note", {"id": names[0], "text": noted})
        return end_state(twin.difference(), {})

    wanted = played(1, "lamp", "door")
    assert not unreached(wanted, played(2, "lamp", "door")) and not unreached(played(2, "lamp", "door"), wanted)
    assert unreached(wanted, played(2, "lamp")) and not unreached(played(2, "lamp"), wanted)
    assert unreached(wanted, played(2, "door", "lamp")) and unreached(wanted, played(2, "lamp", "door", noted="seen by 4"))
    assert not unreached(played(3, "lamp", "lamp"), played(4, "lamp", "lamp"))


def test_counts_names_on_from_the_highest_of_all_sessions() -> None:
    room = _seeded(_rebuilt(counting=True), 0)
    names = [json.loads(room.call("open_ticket", {"about": "lamp"}).content)["id"] for _ in range(3)]
    first = int(names[0].removeprefix("TK-"))
    assert names == [f"TK-{number:05}" for number in range(first, first + 3)] and first > 1000
    again = _rebuilt(counting=True)
    assert again.call("see", {"id": f"TK-{first - 1:05}"}).tier == "derived"
    again.view = View((EPOCH + timedelta(days=3)).strftime("%Y-%m-%dT%H:%M:%S.%fZ"), frozenset())
    assert again.call("open_ticket", {"about": "lamp"}).tier == "unknown"  # the second is not known
    again = _seeded(_rebuilt(counting=True), 0)
    again.view = View((EPOCH + timedelta(days=3)).strftime("%Y-%m-%dT%H:%M:%S.%fZ"), frozenset())
    then = json.loads(again.call("open_ticket", {"about": "lamp"}).content)["id"]
    assert 990 < int(then.removeprefix("TK-")) < first
    one, both = _seeded(_rebuilt(counting=True), 0), _seeded(_rebuilt(counting=True), 0)
    for twin, asked in ((one, ["lamp"]), (both, ["door", "lamp"])):  # the same ticket under another number
        for about in asked:
            twin.call("open_ticket", {"about": about})
    wanted, found = (end_state(twin.difference(), {}) for twin in (one, both))
    assert not unreached(wanted, found) and unreached(found, wanted)
