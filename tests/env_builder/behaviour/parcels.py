"""A real small backend whose tool `fare` answers a number that induction does not find: so that somebody may write it."""

from __future__ import annotations

import json
import random
from typing import Any

from env_builder import behaviour, world
from env_builder.runtime.canonical import canonical
from warehouse.records import Behaviour, Session, Tool, Turn, empty, frame

VALUE: dict[str, Any] = {
    "rule": "value", "style": {"separators": [", ", ": "], "ensure_ascii": True},
    "value": ["object", [["fare", ["plus", ["argument", "zone"], [
        "times", ["constant", 3], ["at", ["document", "weigh", ["argument", "box"]], "kilos"]]]]]],
}
"""What the tool really does."""


def answer(tool: str, arguments: dict[str, Any]) -> str:
    """Return what the real tool says."""
    number = int(arguments["box"].removeprefix("B-"))
    if not 100 <= number < 110:
        return "Error: no such box"
    kilos = (number * 7) % 31 + 2
    if tool == "weigh":
        return json.dumps({"box": arguments["box"], "kilos": kilos, "fragile": number % 3 == 0})
    return json.dumps({"fare": arguments["zone"] + 3 * kilos})


def logged(n_sessions: int = 40) -> world.InducedWorld:
    """Return the world rebuilt from sessions that weigh a box and ask its fare."""
    choose = random.Random(5)
    turns = []
    for session in range(n_sessions):
        box = f"B-{choose.randrange(100, 111)}"
        asked = [("weigh", {"box": box}), ("fare", {"box": box, "zone": choose.randrange(1, 40)})]
        for position, (tool, arguments) in enumerate(asked):
            turns.append({
                "turn_id": f"{session}-{position}", "session_id": f"s{session:03}", "service": "main", "position": position,
                "happened_at": None, "kind": "call", "role": None, "content": answer(tool, arguments), "call_id": None,
                "tool": tool, "arguments": canonical(arguments), "arguments_raw": None, "is_error": None, "requestor": None,
                "answered_at": None, "result_id": None, "latency_ms": None, "model": None})
    sessions = [{
        "session_id": f"s{session:03}", "source": "main", "service": "main", "started_at": None, "ended_at": None, "day": None,
        "n_messages": 0, "n_calls": 2, "identity": None, "format": "test"} for session in range(n_sessions)]
    return world.build(frame(Session, sessions), frame(Turn, turns), empty(Tool), {})


def program_of(behaviours: Any, tool: str) -> dict[str, Any]:
    """Return the program of a tool in a frame of behaviours."""
    found: dict[str, Any] = json.loads(behaviours.filter(behaviours["tool"] == tool)["program"].item())
    return found


def induced(built: world.InducedWorld) -> Any:
    """Behaviours as induction finds them, of `fare` none: so that what others write is tried whatever induction learns."""
    rows = behaviour.induce(built, empty(Tool)).to_dicts()
    for row in rows:
        if row["tool"] == "fare":
            row |= {"program": canonical(json.loads(row["program"]) | {"rules": [{"rule": "recorded"}]}), "fidelity": None,
                    "abstains": None}
    return frame(Behaviour, rows)
