"""The tools of each service: as declared, else as their calls show them.

In: turns and declarations. Out: `core.tools`, and verdicts on declared lists that no service calls. A list belongs to the
service that it is named after where that calls one of its tools, else to the one whose called tools it names most.
What it does not see in a schema made from calls: arguments that nobody ever gave.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import orjson
import polars as pl

from warehouse.records import Tool, Verdict, frame, frame_schema

_MAX_CHOICES = 5
_CALLS_PER_CHOICE = 20
_KINDS: dict[type, str] = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null",
                           list: "array", dict: "object"}
_SAFE = frozenset(("GET", "HEAD", "OPTIONS", "TRACE"))
_METHODS = _SAFE | frozenset(("POST", "PUT", "PATCH", "DELETE"))
_ANY_OBJECT = '{"properties":{},"type":"object"}'


def tools_of(turns: pl.DataFrame, declarations: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Frame of `core.tools`, and verdicts. `declarations`: frame of `raw.declarations`."""
    calls = turns.filter((pl.col("kind") == "call") & pl.col("tool").is_not_null())
    called = {(service, tool): n for service, tool, n in calls.group_by("service", "tool").len().iter_rows()}
    rows, verdicts = _declared(called, declarations)
    missing = pl.DataFrame([key for key in sorted(called) if key not in rows], schema=["service", "tool"], orient="row")
    if not missing.is_empty():
        seen = calls.join(missing, on=["service", "tool"], how="semi").group_by("service", "tool").agg("arguments")
        for service, tool, arguments in seen.iter_rows():
            rows[service, tool] = {
                "service": service, "tool": tool, "description": None, "input_schema": inferred(arguments),
                "declared": False, "annotations": _of_method(tool), "n_calls": called[service, tool]}
    found = pl.DataFrame([rows[key] for key in sorted(rows)], schema=frame_schema(Tool), orient="row")
    return found, frame(Verdict, verdicts)


def inferred(arguments: list[str | None]) -> str:
    """JSON Schema of a tool's arguments from all its calls (canonical JSON objects; None: no object, not looked at)."""
    return _text(_schema([orjson.loads(text) for text in arguments if text is not None] or [{}]))


def _declared(called: dict[tuple[str, str], int],
              declarations: pl.DataFrame) -> tuple[dict[tuple[str, str], dict[str, Any]], list[Verdict]]:
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    verdicts = []
    lists: dict[tuple[str, str | None], list[dict[str, Any]]] = {}
    for row in declarations.sort("declaration_id").iter_rows(named=True):
        lists.setdefault((row["file_id"], row["service"]), []).append(row)
    for (file_id, hint), members in sorted(lists.items(), key=lambda item: (item[0][0], item[0][1] or "")):
        service = _service_of({row["tool"] for row in members}, hint, called)
        if service is None:
            verdicts.append(Verdict(
                stage="sessions", subject=f"tools@{file_id[:16]}@{hint or ''}", kept=False, reason="uncalled_tools",
                detail=f"a list of {len(members)} tools ({hint or 'no service stated'}) of which no session calls one; "
                "give the logs of their service too.", file_id=file_id))
        for row in members if service is not None else ():
            rows.setdefault((str(service), row["tool"]), _row(str(service), row, called))
    return rows, verdicts


def _row(service: str, declared: dict[str, Any], called: dict[tuple[str, str], int]) -> dict[str, Any]:
    return {"service": service, "tool": declared["tool"], "description": declared["description"],
            "input_schema": declared["input_schema"] or _ANY_OBJECT, "declared": True,
            "annotations": declared["annotations"], "n_calls": called.get((service, declared["tool"]), 0)}


def _service_of(tools: set[str], hint: str | None, called: dict[tuple[str, str], int]) -> str | None:
    """The service that states the list or that it is named after, if that calls one of its tools; else the service whose
    called tools it names most, the first by name among equals."""
    overlap = Counter(service for service, tool in called if tool in tools)
    return min(overlap, key=lambda service: (service != hint, -overlap[service], service), default=None)


def _of_method(tool: str) -> str | None:
    """What HTTP says of a request's method (RFC 9110, 9.2.1: safe methods only read), as MCP annotations."""
    method, space, _ = tool.partition(" /")
    return _text({"readOnlyHint": method in _SAFE}) if space and method in _METHODS else None


def _schema(values: list[Any]) -> dict[str, Any]:
    """Schema that all `values` satisfy: types, properties (required: in every one), a few frequent choices."""
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
