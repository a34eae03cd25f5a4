"""Of several records that a call names, the one counts that its tool does not leave alone."""

from __future__ import annotations

import json
import random
from datetime import timedelta
from typing import Any

from env_builder import behaviour, world
from tests.env_builder.world.test_fields import EPOCH
from tests.lockers import turn
from warehouse.records import Session, Tool, Turn, empty, frame


class Bar:
    """Casks of a kind on floors: a kind has a price, a cask what is left in it."""

    def __init__(self) -> None:
        self.left = {f"C-{n}": 20 for n in range(30)}

    def call(self, tool: str, arguments: dict[str, Any]) -> str:
        if tool == "about":
            return json.dumps({"kind": arguments["kind"], "price": 3, "from": "north"})
        cask = arguments["cask"]
        if tool == "look":
            return json.dumps({"cask": cask, "left": self.left[cask], "floor": 1})
        if self.left[cask] < arguments["n"]:
            return f"Error: {self.left[cask]} left"
        self.left[cask] -= arguments["n"]
        return "poured"


def test_whether_it_works_hangs_on_the_record_that_the_call_changes() -> None:
    bar, choose, turns, sessions, at = Bar(), random.Random(7), [], [], EPOCH
    for number in range(90):
        kind, cask = {"kind": f"K-{choose.randrange(6)}"}, {"cask": f"C-{choose.randrange(30)}"}
        pour = ("pour", {**kind, **cask, "n": choose.choice((2, 5, 9, 14))})
        for position, (tool, arguments) in enumerate((("about", kind), ("look", cask), pour, ("about", kind), ("look", cask))):
            at += timedelta(minutes=3)
            turns.append(turn(f"s{number:03}", position, at, tool, arguments, bar.call(tool, arguments)))
        sessions.append({
            "session_id": f"s{number:03}", "source": "main", "service": "main", "started_at": at, "ended_at": at, "day": None,
            "n_messages": 0, "n_calls": 5, "identity": None, "format": "test"})
    built = world.build(frame(Session, sessions), frame(Turn, turns), empty(Tool), {"main": "shared"})
    programs = {row["tool"]: json.loads(row["program"]) for row in behaviour.induce(built, empty(Tool)).to_dicts()}
    rule = next(rule for rule in programs["pour"]["rules"] if rule["rule"] == "answer")
    assert programs["pour"]["relation"]["about"] == "keeps" and rule["argument"] == "cask"
