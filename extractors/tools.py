"""The tools of each service: as declared, else as their calls show them.

In: turns and declarations. Out: `core.tools`, and decisions on declared lists that no service calls. A list belongs to the
service that it is named after where that calls one of its tools, else to the one whose called tools it names most. Where no
log shows a call, each list is a service: what its document assumes of answers stays in its schemas until the first call.
What it does not see in a schema made from calls: arguments that nobody ever gave.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import orjson
import polars as pl

from warehouse.records import ASSUMED_ANSWER, Decision, Tool, frame, frame_schema, whole_tool

_MAX_CHOICES = 5
_CALLS_PER_CHOICE = 20
_KINDS: dict[type, str] = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null",
                           list: "array", dict: "object"}
_SAFE = frozenset(("GET", "HEAD", "OPTIONS", "TRACE"))
_METHODS = _SAFE | frozenset(("POST", "PUT", "PATCH", "DELETE"))
_ANY_OBJECT = '{"properties":{},"type":"object"}'


def tools_of(turns: pl.DataFrame | pl.LazyFrame, declarations: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Frame of `core.tools`, and decisions. `declarations`: frame of `raw.declarations`."""
    calls = turns.lazy().filter((pl.col("kind") == "call") & pl.col("tool").is_not_null())
    calls = calls.with_columns(whole_tool(pl.col("tool")))
    called = {(service, tool): n for service, tool, n in calls.group_by("service", "tool").len().collect().iter_rows()}
    rows, decisions = _declared(called, declarations)
    missing = pl.DataFrame([key for key in sorted(called) if key not in rows], schema=["service", "tool"], orient="row")
    if not missing.is_empty():
        unnamed = calls.select("service", "tool", "arguments").join(missing.lazy(), on=["service", "tool"], how="semi")
        observed = unnamed.collect().group_by("service", "tool").agg("arguments")
        for service, tool, arguments in observed.iter_rows():
            method, space, _ = tool.partition(" /")   # RFC 9110, 9.2.1: safe methods only read
            rows[service, tool] = {
                "service": service, "tool": tool, "description": None, "input_schema": inferred(arguments), "declared": False,
                "annotations": _text({"readOnlyHint": method in _SAFE}) if space and method in _METHODS else None,
                "n_calls": called[service, tool]}
    tools = pl.DataFrame([rows[key] for key in sorted(rows)], schema=frame_schema(Tool), orient="row")
    return tools, frame(Decision, decisions)


def inferred(arguments: list[str | None]) -> str:
    """JSON Schema of a tool's arguments from all its calls (canonical JSON objects; None, no object, does not count)."""
    return _text(_schema([orjson.loads(text) for text in arguments if text is not None] or [{}]))


def _declared(called: dict[tuple[str, str], int],
              declarations: pl.DataFrame) -> tuple[dict[tuple[str, str], dict[str, Any]], list[Decision]]:
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    decisions = []
    lists: dict[tuple[str, str | None], list[dict[str, Any]]] = {}
    for row in declarations.sort("declaration_id").iter_rows(named=True):
        lists.setdefault((row["file_id"], row["service"]), []).append(row)
    for (file_id, hint), members in sorted(lists.items(), key=lambda item: (item[0][0], item[0][1] or "")):
        names = {row["tool"] for row in members}
        overlap = Counter(service for service, tool in called if tool in names)
        # the service that the list states or is named after, else the one whose called tools it names most
        alone = None if called else hint or "tools"
        service = min(overlap, key=lambda each: (each != hint, -overlap[each], each), default=alone)
        if service is None:
            decisions.append(Decision(
                stage="sessions", subject=f"tools@{file_id[:16]}@{hint or ''}", kept=False, reason="uncalled_tools",
                detail=f"a list of {len(members)} tools ({hint or 'no service stated'}) of which no session calls one; "
                "give the logs of their service too.", file_id=file_id))
            continue
        for row in members:
            rows.setdefault((service, row["tool"]), {
                "service": service, "tool": row["tool"], "description": row["description"],
                "input_schema": _schema_of(row["input_schema"], bool(called)), "declared": True,
                "annotations": row["annotations"], "n_calls": called.get((service, row["tool"]), 0)})
    return rows, decisions


def _schema_of(declared: str | None, is_logged: bool) -> str:
    """Return the declared schema, without what is assumed of answers where there are logs."""
    if declared is None or not is_logged or ASSUMED_ANSWER not in declared:
        return declared or _ANY_OBJECT
    return _text({name: value for name, value in orjson.loads(declared).items() if name != ASSUMED_ANSWER})


def _schema(values: list[Any]) -> dict[str, Any]:
    """Infer a schema that all `values` satisfy: types, properties (required: in every one), a few frequent choices."""
    kinds = sorted({_KINDS[type(value)] for value in values})
    if "integer" in kinds and "number" in kinds:
        kinds.remove("integer")
    schema: dict[str, Any] = {"type": kinds[0] if len(kinds) == 1 else kinds}
    objects = [value for value in values if isinstance(value, dict)]
    if objects:
        names = sorted({name for value in objects for name in value})
        schema["properties"] = {name: _schema([value[name] for value in objects if name in value]) for name in names}
        required = [name for name in names if all(name in value for value in objects)]
        if required:
            schema["required"] = required
    items = [item for value in values if isinstance(value, list) for item in value]
    if items:
        schema["items"] = _schema(items)
    if kinds == ["string"]:
        choices = set(values)
        if 1 < len(choices) <= _MAX_CHOICES and len(values) >= _CALLS_PER_CHOICE * len(choices):
            schema["enum"] = sorted(choices)
    return schema


def _text(value: Any) -> str:
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
