"""Tools of services: declared lists find theirs, schemas fit the calls they are made from."""

from __future__ import annotations

from typing import Any

import orjson
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from extractors.tools import inferred, tools_of
from warehouse.records import Declaration, Turn, empty, frame, frame_schema

VALUES = st.recursive(st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-1, 1) | st.text(max_size=3),
                      lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=2),
                      max_leaves=6)


def turns(*calls: tuple[str, str]) -> pl.DataFrame:
    rows = [{"turn_id": str(i), "service": service, "tool": tool, "kind": "call", "arguments": "{}", "session_id": "s",
             "position": i} for i, (service, tool) in enumerate(calls)]
    return pl.DataFrame([{**dict.fromkeys(frame_schema(Turn)), **row} for row in rows], schema=frame_schema(Turn))


def declared(file_id: str, service: str | None, *tools: str) -> pl.DataFrame:
    return frame(Declaration, [Declaration(
        declaration_id=f"{file_id}{tool}", file_id=file_id, source="main", service=service, tool=tool, description=None,
        input_schema=None, annotations=None) for tool in tools])


def fits(value: Any, schema: dict[str, Any]) -> bool:
    """Whether a value satisfies a schema of the kind that is inferred."""
    kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    kind = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null", list: "array",
            dict: "object"}[type(value)]
    if kind not in kinds and not (kind == "integer" and "number" in kinds):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if isinstance(value, dict):
        known = schema.get("properties", {})
        return set(schema.get("required", ())) <= set(value) and all(fits(each, known[name]) for name, each in value.items())
    return not isinstance(value, list) or all(fits(each, schema["items"]) for each in value)


@given(st.lists(st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3), min_size=1, max_size=6))
def test_an_inferred_schema_fits_every_call(calls: list[dict[str, Any]]) -> None:
    schema = orjson.loads(inferred([orjson.dumps(call).decode() for call in calls]))
    assert all(fits(call, schema) for call in calls)
    assert inferred([orjson.dumps(call).decode() for call in reversed(calls)]) == orjson.dumps(
        schema, option=orjson.OPT_SORT_KEYS).decode(), "the order of calls does not matter"


def test_choices_need_to_be_few_and_frequent() -> None:
    many = [orjson.dumps({"side": side, "n": i}).decode() for i, side in enumerate(["left", "right"] * 20)]
    schema = orjson.loads(inferred(many))
    assert schema["properties"]["side"]["enum"] == ["left", "right"] and "enum" not in schema["properties"]["n"]
    assert schema["required"] == ["n", "side"]
    assert "enum" not in orjson.loads(inferred(many[:10]))["properties"]["side"]


def test_a_list_goes_to_the_service_that_calls_it() -> None:
    made, left = tools_of(turns(("front", "open"), ("front", "shut"), ("back", "open")),
                          declared("f", None, "open", "shut", "lock"))
    assert made.select("service", "tool", "declared", "n_calls").rows() == [
        ("back", "open", False, 1), ("front", "lock", True, 0), ("front", "open", True, 1), ("front", "shut", True, 1)]
    assert left.is_empty()


def test_a_list_goes_to_the_service_it_is_named_after() -> None:
    made, _ = tools_of(turns(("front", "open"), ("front", "shut"), ("back", "open")),
                       pl.concat([declared("f", "back", "open", "shut"), declared("g", "front", "open", "shut")]))
    assert made["declared"].all() and made.height == 4


def test_a_list_that_nobody_calls_is_a_decision() -> None:
    made, left = tools_of(turns(("front", "open")), declared("f", "attic", "dust"))
    assert made["tool"].to_list() == ["open"]
    assert left.select("reason", "kept", "file_id").rows() == [("uncalled_tools", False, "f")]


def test_a_request_says_by_its_method_whether_it_may_change_things() -> None:
    asked = ("GET /doors", "HEAD /doors", "POST /doors/{doors_1}/open", "DELETE /doors/{doors_1}", "GET the door", "open")
    made, _ = tools_of(turns(*(("front", tool) for tool in asked)), empty(Declaration))
    hints = dict(made.select("tool", "annotations").iter_rows())
    assert [hints[tool] for tool in asked] == [
        '{"readOnlyHint":true}', '{"readOnlyHint":true}', '{"readOnlyHint":false}', '{"readOnlyHint":false}', None, None]
