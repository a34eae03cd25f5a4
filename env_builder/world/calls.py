"""Turns of the warehouse as calls: parsed once, in order, with what failed told apart from what worked."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any, NamedTuple

import polars as pl

from env_builder.runtime.answers import failed, parse
from env_builder.runtime.canonical import canonical


class Call(NamedTuple):
    """A tool call with its answer."""

    session_id: str
    position: int
    tool: str
    arguments: dict[str, Any]
    key: str
    """Canonical JSON of the arguments."""
    content: str
    parsed: Any
    """The answer as JSON value, None where it is not JSON."""
    failed: bool
    flagged: bool | None
    """The log's own error flag."""
    called_at: datetime | None
    event_id: str


def calls_of(turns: pl.DataFrame) -> list[Call]:
    """Answered calls with readable arguments, by session and position."""
    rows = turns.filter(
        (pl.col("kind") == "call") & pl.col("content").is_not_null() & pl.col("arguments").is_not_null()
    ).sort("session_id", "position")
    columns = ("session_id", "position", "tool", "arguments", "content", "is_error", "happened_at", "result_id", "turn_id")
    return [_call(*row) for row in rows.select(columns).iter_rows()]


def _call(
    session_id: str, position: int, tool: str, arguments: str, content: str, flagged: bool | None,
    called_at: datetime | None, result_id: str | None, turn_id: str,
) -> Call:
    value = json.loads(arguments)
    parsed = parse(content)
    return Call(
        session_id, position, tool, value, canonical(value), content, parsed, failed(content, parsed, flagged), flagged,
        called_at, result_id or turn_id,
    )
