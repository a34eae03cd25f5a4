"""What acts make of the records that they name, field by field, and what they answer: held against a real service."""

from __future__ import annotations

import copy
import json
import random
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from env_builder import behaviour, world
from env_builder.rooms import rows_of
from env_builder.runtime.episode import EpisodeState
from env_builder.runtime.expressions import SPOKEN
from env_builder.runtime.world import View, World
from env_builder.world.fields import FieldSample, explain
from tests.lockers import turn
from warehouse.records import Session, Tool, Turn, empty, frame

EPOCH = datetime(2031, 5, 1, 9, tzinfo=UTC)
TERMS = {"short": (9.5, 30), "long": (28.0, 120), "open": (40.0, 365)}


class Nursery:
    """A nursery garden whose beds change by what is done there, and which answers without showing the bed."""

    def __init__(self) -> None:
        self.beds: dict[str, dict[str, Any]] = {
            f"bed-{n}": {"bed": f"bed-{n}", "term": "short", "fee": 9.5, "rest_until": None, "n_plants": 0, "plants": []}
            for n in range(10, 34)}
        self.water = 100.0

    def call(self, tool: str, arguments: dict[str, Any], at: datetime) -> str:
        bed = self.beds.get(arguments["bed"])
        if bed is None:
            return f"Error: no bed {arguments['bed']}"
        if tool == "look":
            return json.dumps(bed)
        if tool == "sow":
            if any(plant["name"] == arguments["name"] for plant in bed["plants"]):
                return f"Error: {arguments['name']} grows there"
            bed["plants"].append({"name": arguments["name"], "under": arguments.get("under", "glass")})
            bed["n_plants"] += 1
            return "null"
        if tool == "pull":
            kept = [plant for plant in bed["plants"] if plant["name"] != arguments["name"]]
            if len(kept) == len(bed["plants"]):
                return f"Error: {arguments['name']} does not grow there"
            bed["plants"], bed["n_plants"] = kept, len(kept)
            return "null"
        if tool == "let":
            bed["term"], bed["fee"] = arguments["term"], TERMS[arguments["term"]][0]
            return json.dumps({"term": bed["term"], "fee": bed["fee"]})
        bed["rest_until"] = str((at + timedelta(7 * arguments["weeks"])).date())
        return json.dumps({"rests": True})


def move(choose: random.Random, nursery: Nursery, bed: str) -> tuple[str, dict[str, Any]]:
    plants = nursery.beds[bed]["plants"]
    if plants and choose.random() < 0.4:
        return "pull", {"bed": bed, "name": choose.choice(plants)["name"]}
    kinds: list[tuple[str, dict[str, Any]]] = [
        ("sow", {"bed": bed, "name": f"plant {choose.randrange(10 ** 6)}"} | choose.choice([{}, {"under": "sky"}])),
        ("let", {"bed": bed, "term": choose.choice(list(TERMS))}), ("rest", {"bed": bed, "weeks": choose.randrange(1, 5)})]
    return choose.choice(kinds)


@pytest.fixture(scope="module")
def garden() -> tuple[Nursery, EpisodeState]:
    """Return the nursery as its log left it, and the room that was rebuilt from that log."""
    choose, nursery, at = random.Random(3), Nursery(), EPOCH
    sessions, turns = [], []
    for number in range(150):
        name, at = f"s{number:03}", at + timedelta(hours=choose.randrange(2, 9))
        bed = choose.choice(sorted(nursery.beds))
        asked = [("look", {"bed": bed}), *(move(choose, nursery, bed) for _ in range(1)), ("look", {"bed": bed})]
        for position, (tool, arguments) in enumerate(asked):
            at += timedelta(seconds=20)
            turns.append(turn(name, position, at, tool, arguments, nursery.call(tool, arguments, at)))
        sessions.append({
            "session_id": name, "source": "main", "service": "main", "started_at": at, "ended_at": at, "day": None,
            "n_messages": 0, "n_calls": len(asked), "identity": None, "format": "test"})
    built = world.build(frame(Session, sessions), frame(Turn, turns), empty(Tool), {"main": "shared"})
    rows = rows_of("main", built.facts, built.recorded, behaviour.induce(built, empty(Tool)))
    view = View((at + timedelta(hours=1)).strftime("%Y-%m-%dT%H:%M:%S.%fZ"), frozenset())
    return nursery, EpisodeState(World(rows.facts, rows.recorded), {row["tool"]: row for row in rows.programs}, view)


def test_writes_answer_and_leave_behind_what_the_real_ones_do(garden: tuple[Nursery, EpisodeState]) -> None:
    real, built = garden
    at = datetime.fromisoformat(str(built.view.instant))
    choose, decisions = random.Random(9), Counter[str]()
    for bed in sorted(real.beds) * 3:
        nursery, room = copy.deepcopy(real), built.fork()
        asked = ("look", {"bed": bed})
        if room.fork().call(*asked).tier == "unknown":
            continue  # the log does not tell how the bed stands today
        for tool, arguments in (asked, move(choose, nursery, bed), asked, move(choose, nursery, bed), asked):
            wanted, got = nursery.call(tool, arguments, at), room.call(tool, arguments)
            decisions["unknown" if got.tier == "unknown" else "exact" if got.content == wanted else "wrong"] += 1
    assert decisions["wrong"] == 0 and decisions["exact"] >= 0.9 * decisions.total(), decisions


def test_what_is_done_twice_is_not_answered(garden: tuple[Nursery, EpisodeState]) -> None:
    """No plant was ever sown twice, so nobody knows what is said then."""
    room = garden[1].fork()
    sow = ("sow", {"bed": "bed-12", "name": "rue"})
    assert room.call(*sow).content == "null" and room.call(*sow).tier == "unknown"


def _samples(field: str, make: Any) -> list[FieldSample]:
    choose = random.Random(5)
    samples = []
    for n in range(12):
        before = {"tags": [f"t{m}" for m in range(n % 4)], "n": n, "paid": 10.0 + n}
        arguments = {"tag": f"t{n % 4 - 1}" if n % 4 else f"x{n}", "by": choose.randrange(1, 9), SPOKEN: {"now": n * 3}}
        samples.append(FieldSample(before, arguments, lambda kind, key: None, before[field], make(before, arguments)))
    return samples


@pytest.mark.parametrize(("field", "make", "wanted"), [
    ("n", lambda before, given: before["n"] + given["by"], ["plus", ["before", "n"], ["argument", "by"]]),
    ("n", lambda before, given: given[SPOKEN]["now"], ["argument", SPOKEN, "now"]),
    ("paid", lambda before, given: round(before["paid"] - 2.5, 2),
     ["round", ["minus", ["before", "paid"], ["constant", 2.5]], 2]),
    ("tags", lambda before, given: [*before["tags"], given["tag"]], ["append", ["before", "tags"], ["argument", "tag"]]),
])
def test_says_one_change(field: str, make: Any, wanted: list[Any]) -> None:
    assert explain(_samples(field, make), [field], 0.95) == wanted


def test_a_constant_and_a_step_that_nothing_tells_apart_answer_only_where_they_agree() -> None:
    samples = [FieldSample({"n": 0}, {}, lambda kind, key: None, 0, 1) for _ in range(9)]
    found = explain(samples, ["n"], 0.95)
    one = samples[0]._replace(before={"n": 4})
    assert found is not None and samples[0].value(found) == 1 and one.value(found) not in (1, 5)


def test_says_the_day_of_the_call() -> None:
    days = ["2031-05-01", "2031-05-02", "2031-05-09", "2031-06-01"]
    samples = [FieldSample(
        {"paid_on": "never"}, {}, lambda kind, key, day=day: f"{day}T09:00:00", "never", day) for day in days]
    assert explain(samples, ["paid_on"], 0.95) == ["now", "YYYY-MM-DD", 0]


def test_says_nothing_of_what_comes_by_chance() -> None:
    choose = random.Random(8)
    assert explain(_samples("n", lambda before, given: choose.randrange(10 ** 6)), ["n"], 0.95) is None
