"""Calls of a whole tool are answered and graded by what an argument says; agents, journals and solutions know the whole one."""

from __future__ import annotations

from typing import Any

from env_builder.runtime.apps.records import RecordsApp
from env_builder.runtime.bindings import Ask
from env_builder.runtime.environment import Environment
from env_builder.runtime.tool_parts import ToolParts, as_called, values_of
from env_builder.runtime.world import World
from env_builder.world import parts_declared
from env_builder.world.effects import Declared, tells_of_a_change
from warehouse.records import part_name

GET, CANCEL = part_name("api", "action", "order.get"), part_name("api", "action", "order.cancel")


def program(tool: str, effect: str) -> dict[str, Any]:
    return {"tool": tool, "effect": effect, "class": None, "relation": {}, "rules": [{"rule": "recorded"}]}


def room() -> Environment:
    programs = {tool: program(tool, effect) for tool, effect in (("api", "unknown"), (GET, "read"), (CANCEL, "write"))}
    recorded = [{"tool": GET, "arguments": '{"action":"order.get","id":"7"}', "content": '{"id": "7"}', "is_error": False,
                 "session": None, "from": None, "to": None, "after": [], "n_write_calls": 0}]
    return Environment({"starts_from": "shared"}, [], [{"name": "api"}], [RecordsApp("records", programs, World([], recorded))],
                       {})


def test_a_call_is_made_by_its_part_and_shown_as_the_whole_tool() -> None:
    environment = room()
    assert environment.call("api", {"action": "order.get", "id": "7"}).content == '{"id": "7"}'
    environment.call("api", {"action": "order.cancel", "id": "7"})
    environment.call("api", {"action": "order.melt", "id": "7"})
    assert [(row["tool"], row.get("part")) for row in environment.journal] == [("api", GET), ("api", CANCEL), ("api", None)]
    assert [row["tool"] for row in environment.episode().journal] == [GET, CANCEL, "api"]
    assert [row.get("part") for row in environment.unknown_writes] == [CANCEL, None]   # a look without an answer is none


def test_a_real_tool_is_bound_for_all_its_parts_by_its_own_name() -> None:
    environment, asks = room(), list[tuple[str, str]]()

    def real(ask: Ask) -> str:
        asks.append((ask.tool, ask.arguments["action"]))
        return "done"

    environment.bind("api", real)
    actions = ["order.get", "order.cancel"]
    assert [environment.call("api", {"action": action, "id": "8"})[::2] for action in actions] == [("done", "bound")] * 2
    assert asks == [("api", action) for action in actions]


def test_a_name_of_a_part_gives_no_other_part() -> None:
    parts = ToolParts([GET, CANCEL, part_name(GET, "kind", "long"), "other"])
    assert parts.named(GET, {"action": "order.cancel"}) == CANCEL
    assert parts.named("api", {"action": "order.get", "kind": "long"}) == part_name(GET, "kind", "long")
    assert parts.named("other", {"action": "order.get"}) == "other" and parts.named("api", {"action": ["order.get"]}) == "api"
    assert as_called([{"tool": GET, "arguments": {}}, {"say": "done"}]) == [{"tool": "api", "arguments": {}}, {"say": "done"}]


def test_what_a_part_does_is_told_by_its_value() -> None:
    assert values_of(part_name(GET, "kind", "long")) == ["order.get", "long"] and values_of("api") == []
    assert tells_of_a_change(CANCEL, "") and not tells_of_a_change(GET, "")
    methods = [part_name("http", "method", name) for name in ("GET", "PATCH")]
    declared = parts_declared({"http": Declared(None, "Sends a request.")}, [*methods, GET])
    assert [declared[name] for name in (*methods, GET)] == [Declared("read"), Declared("unknown"), Declared()]
