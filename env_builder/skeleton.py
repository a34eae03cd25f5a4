"""Rows of an environment of declared tools that no log shows: no task, no reward, nothing verified.

In: the tools of a service, from an OpenAPI document or a tool list. Out: a program for each tool, and the coverage. A tool
whose document gives an example of an answer answers with that, with the tier `assumed`; every other tool answers
`unknown`. What a call changes is unknown. Does not see: whether the service ever gives such an answer, refusals, how
calls depend on one another.
"""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from env_builder.rooms import Rows
from warehouse.records import ASSUMED_ANSWER

NOTE = "Assumed from its declaration: no log shows a call of it."


def rows_of(tools: pl.DataFrame) -> Rows:
    """Return the rows of a skeleton environment. `tools`: frame of `Tool` of one service."""
    return Rows([], [], [_program(row["tool"], json.loads(row["input_schema"])) for row in tools.sort("tool").to_dicts()])


def described(tools: pl.DataFrame) -> pl.DataFrame:
    """Return the tools with a description that says what they rest on."""
    text = pl.concat_str(pl.lit(NOTE), pl.col("description"), separator=" ", ignore_nulls=True)
    return tools.with_columns(text.alias("description"))


def coverage_of(rows: Rows) -> dict[str, Any]:
    """Return the coverage of a skeleton: nothing was asked; `assumed`: tools that answer by an example, and their share."""
    n_assumed = sum(bool(program["rules"]) for program in rows.programs)
    return {"n_tasks": 0, "n_calls": 0, "answered": None, "by_tool": {},
            "never_called": [program["tool"] for program in rows.programs], "advice": [],
            "assumed": {"n_tools": n_assumed, "share": round(n_assumed / len(rows.programs), 4) if rows.programs else None}}


def _program(tool: str, schema: dict[str, Any]) -> dict[str, Any]:
    answer, fields = schema.get(ASSUMED_ANSWER), schema.get("properties")
    return {
        "tool": tool, "effect": "unknown", "class": None, "relation": {},
        "takes": sorted(fields) if isinstance(fields, dict) else [],
        "rules": [] if answer is None else [{"rule": "assumed", "content": answer}]}
