"""Arguments that the declared schema forbids are refused in the tool's words where these were seen, else unknown."""

from __future__ import annotations

import json
from typing import Any

import pytest

from env_builder import world
from env_builder.behaviour import induce
from env_builder.rooms import rows_of
from env_builder.runtime.canonical import canonical
from env_builder.runtime.episode import EpisodeState
from env_builder.runtime.world import View, World
from warehouse.records import Session, Tool, Turn, frame

SCHEMA = {"type": "object", "required": ["box", "shelf"], "properties": {
    "box": {"type": "string"}, "shelf": {"type": "integer"}, "how": {"type": "string", "enum": ["slowly", "fast"]},
    "note": {"type": "string"}, "odd": {"anyOf": [{"type": "string"}]}}}
GOOD = {"box": "b-1", "shelf": 3}


def real(tool: str, arguments: dict[str, Any]) -> str:
    """Return what the real tool says; it minds no type of a note."""
    if arguments.get("box") == "gone":
        return f"Error: there is nothing to {tool}"
    for name in arguments:
        if name not in SCHEMA["properties"]:
            return f"Error: {tool} does not take {name}"
    for name in ("box", "shelf"):
        if name not in arguments:
            return f"Error: {tool} needs {name}"
    if not isinstance(arguments["shelf"], int):
        return f"Error: shelf must be a number, not {arguments['shelf']}"
    if arguments.get("how", "fast") not in ("slowly", "fast"):
        return f"Error: {arguments['how']} is no way to {tool}: slowly, fast"
    return json.dumps({"moved": arguments["box"], "to": arguments["shelf"]})


def room(asked: list[tuple[str, dict[str, Any]]], declared: bool = True) -> EpisodeState:
    turns = [{
        "turn_id": f"{n}", "session_id": f"s{n:03}", "service": "main", "position": 0, "happened_at": None, "kind": "call",
        "role": None, "content": real(tool, arguments), "call_id": None, "tool": tool, "arguments": canonical(arguments),
        "arguments_raw": None, "is_error": None, "requestor": None, "answered_at": None, "result_id": None, "latency_ms": None,
        "model": None} for n, (tool, arguments) in enumerate(asked)]
    sessions = [{
        "session_id": row["session_id"], "source": "main", "service": "main", "started_at": None, "ended_at": None, "day": None,
        "n_messages": 0, "n_calls": 1, "identity": None, "format": "test"} for row in turns]
    known = frame(Tool, [{
        "service": "main", "tool": tool, "description": None, "input_schema": json.dumps(SCHEMA), "declared": declared,
        "annotations": None, "n_calls": 1} for tool in ("lift", "push", "roll")])
    built = world.build(frame(Session, sessions), frame(Turn, turns), known, {})
    rows = rows_of("main", built.facts, built.recorded, induce(built, known))
    return EpisodeState(World(rows.facts, rows.recorded), {row["tool"]: row for row in rows.programs}, View(None, frozenset()))


GOOD_CALLS = [(tool, {"box": f"b-{n}", "shelf": n, "how": "fast", "note": n}) for tool in ("lift", "push") for n in range(8)]
BAD_CALLS = [
    *[(tool, {"shelf": n}) for tool in ("lift", "push") for n in (50, 51)], ("lift", {"box": "b-1"}), ("push", {"box": "b-2"}),
    *[("lift", GOOD | {"shelf": word}) for word in ("top", "low", "3rd")],
    *[("push", GOOD | {"how": word}) for word in ("wildly", "askew")]]


@pytest.fixture(scope="module")
def taught() -> EpisodeState:
    return room(GOOD_CALLS + BAD_CALLS)


@pytest.mark.parametrize(("tool", "arguments"), [
    ("lift", {"box": "b-77"}), ("push", {"shelf": 99}), ("roll", {"box": "b-77"}), ("lift", GOOD | {"shelf": "cellar"}),
    ("push", GOOD | {"how": "gladly"})])
def test_the_room_refuses_in_the_words_of_the_tool(taught: EpisodeState, tool: str, arguments: dict[str, Any]) -> None:
    assert taught.fork().call(tool, arguments) == (real(tool, arguments), True, "induced")


@pytest.mark.parametrize(("tool", "arguments"), [
    ("push", GOOD | {"shelf": "cellar"}), ("lift", GOOD | {"how": "gladly"}), ("lift", {}), ("lift", GOOD | {"box": 7})])
def test_where_the_words_were_never_seen_it_is_unknown(taught: EpisodeState, tool: str, arguments: dict[str, Any]) -> None:
    assert taught.fork().call(tool, arguments).tier == "unknown"


def test_what_worked_breaks_nothing(taught: EpisodeState) -> None:
    programs = {tool: row["rules"] for tool, row in taught._programs.items()}
    rule = next(rule for rule in programs["lift"] if rule["rule"] == "validate")
    assert set(rule["types"]) == {"box", "shelf", "how"}, "a note may be anything, and what is not understood demands nothing"
    assert programs["lift"][0] == {"rule": "recorded"} and programs["lift"][1] is rule
    tool, arguments = GOOD_CALLS[0]
    assert taught.fork(View(None, frozenset({"s000"}))).call(tool, arguments).tier == "recorded"
    assert not any(rule["rule"] == "validate" for row in room(GOOD_CALLS + BAD_CALLS, declared=False)._programs.values()
                   for rule in row["rules"]), "a schema that was guessed from calls forbids nothing"


BOGUS = [(tool, GOOD | {"box": box, "speed": 1}) for tool in ("lift", "push") for box in ("b-1", "b-2", "b-3")]


@pytest.mark.parametrize("declared", [True, False])
def test_an_argument_that_was_refused_is_refused_of_every_tool_that_minds_it(declared: bool) -> None:
    taught = room([*GOOD_CALLS, *BOGUS, ("roll", GOOD)], declared)
    for tool in ("lift", "push"):
        asked = GOOD | {"box": "b-9", "speed": 1}
        assert taught.fork().call(tool, asked) == (real(tool, asked), True, "induced")
    assert taught.fork().call("lift", GOOD | {"weight": 1}).tier == "unknown", "one name says nothing of another"
    assert taught.fork().call("roll", GOOD | {"speed": 1}).tier == "unknown", "it may read over it"
    several = room([*GOOD_CALLS, *BOGUS, *[("lift", GOOD | {"box": box, "weight": box}) for box in ("b-1", "b-2")]], declared)
    asked = GOOD | {"colour": "red"}
    assert several.call("lift", asked) == (real("lift", asked), True, "induced"), "the wording repeats the name"


def test_an_argument_of_calls_that_failed_for_other_reasons_is_not_unexpected() -> None:
    lost = [("lift", {"box": "gone", "shelf": 1, "speed": n}) for n in range(3)]
    assert room([*GOOD_CALLS, *lost]).call("lift", {"box": "b-1", "shelf": 2, "speed": 1}).tier == "unknown"


def test_a_service_that_minds_no_types_is_not_held_to_them() -> None:
    careless = [("lift", {"box": "b-1", "shelf": 1, "note": n}) for n in range(5)]
    rules = [rule for row in room(careless)._programs.values() for rule in row["rules"] if rule["rule"] == "validate"]
    assert rules and all(not rule["types"] and rule["required"] for rule in rules)


def test_words_that_other_refusals_use_too_teach_nothing() -> None:
    one_only = room([*GOOD_CALLS, BAD_CALLS[0]])
    assert one_only.call("lift", {"shelf": 99}).tier == "unknown", "seen once"
