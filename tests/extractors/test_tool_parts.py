"""An argument that decides what a tool does makes a tool of each of its values; one that names things does not."""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from extractors.tool_parts import decisions, in_parts
from warehouse.records import part_name

Made = tuple[dict[str, Any], Any]


def turns_of(calls: list[Made], tool: str = "api") -> pl.DataFrame:
    """Two calls a session."""
    return pl.DataFrame([
        {"turn_id": f"{number:04}", "session_id": f"s{number // 2}", "kind": "call", "service": "desk", "tool": tool,
         "arguments": json.dumps(arguments), "content": json.dumps(answer), "is_error": None}
        for number, (arguments, answer) in enumerate(calls)], schema_overrides={"is_error": pl.Boolean})


def test_an_action_with_its_own_fields_decides() -> None:
    look: Made = {"action": "stay.get", "params": {"stay": "S1"}}, {"ok": True, "result": {"stay": "S1", "room": "A"}}
    write: Made = {"action": "stay.move", "params": {"stay": "S1", "room": "B"}}, {"ok": True, "result": {"stay": "S1"}}
    refused: Made = {"action": "stay.move", "params": {"stay": "S1"}}, {"ok": False, "error": "no room"}
    made = in_parts(turns_of([look, write] * 20 + [refused]))
    assert set(made["tool"]) == {part_name("api", "action", "stay.get"), part_name("api", "action", "stay.move")}
    assert made.drop("tool").equals(turns_of([look, write] * 20 + [refused]).drop("tool"))


def test_methods_decide_by_their_standard_whatever_is_answered() -> None:
    calls: list[Made] = [({"method": method, "path": f"/orders/{number}"}, {"id": number}) for number in range(15)
                         for method in ("GET", "POST")]
    assert [(each.argument, sorted(each.values)) for each in decisions(turns_of(calls).lazy())] == [("method", ["GET", "POST"])]


def test_a_second_argument_decides_further() -> None:
    shapes = {("order", "get"): "total", ("order", "cancel"): "refund", ("parcel", "get"): "kg", ("parcel", "hold"): "until"}
    calls: list[Made] = [({"type": kind, "verb": verb, "id": str(number)}, {"id": str(number), field: 1})
                         for number in range(24) for (kind, verb), field in shapes.items()]
    get = part_name("api", "verb", "get")
    assert set(in_parts(turns_of(calls))["tool"]) == {
        part_name("api", "verb", "cancel"), part_name("api", "verb", "hold"), part_name(get, "type", "order"),
        part_name(get, "type", "parcel")}


def test_values_that_name_things_or_fields_decide_nothing() -> None:
    ids: list[Made] = [({"id": name}, {"id": name, field: 1}) for name, field in (("B1", "bill"), ("L1", "line"))] * 20
    fields: list[Made] = [({"field": name, "id": "7"}, {name: 1}) for name in ("begin", "end")] * 20
    states: list[Made] = [({"id": str(number), "status": status}, {"id": str(number), "status": status})
                          for number in range(20) for status in ("open", "closed")]
    for calls in (ids, fields, states):
        assert in_parts(turns_of(calls))["tool"].to_list() == ["api"] * len(calls)
