"""Calls of sessions and the single values in their arguments.

In: turns and the effects of tools. Out: frames. A call counts as failed where the log flags it, or where its answer
begins with "error" or is a JSON object with an `error` field. Does not see: a refusal in other words.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import polars as pl

from extractors.tasks.words import is_identifier

VALUES = {"turn_id": pl.String(), "path": pl.String(), "value": pl.String()}

_ERROR_TEXT = r'(?i)^\s*(?:error|\{\s*"error"\s*:)'


def calls_of(turns: pl.DataFrame, effects: pl.DataFrame) -> pl.DataFrame:
    """Calls in order: session_id, service, position, turn_id, tool, arguments, content, failed, acts.

    `acts`: the tool is known to change something; where a service has no such tool, it is not known that it doesn't.
    """
    acting = (
        effects.with_columns(
            pl.when((pl.col("effect") == "write").any().over("service"))
            .then(pl.col("effect").is_in(["write", "outside"]))
            .otherwise(pl.col("effect").is_in(["unknown", "outside"]))
            .alias("acts")
        )
        .select("service", "tool", "acts")
        .unique(["service", "tool"], keep="first", maintain_order=True)
    )
    failed = pl.coalesce("is_error", pl.col("content").str.contains(_ERROR_TEXT), pl.lit(True))
    return (
        turns.filter(pl.col("kind") == "call")
        .join(acting, on=["service", "tool"], how="left")
        .select(
            "session_id",
            "service",
            "position",
            "turn_id",
            "tool",
            "arguments",
            "content",
            failed.alias("failed"),
            pl.col("acts").fill_null(False),
        )
        .sort("session_id", "position")
    )


def values_of(calls: pl.DataFrame) -> pl.DataFrame:
    """The scalars in the calls' arguments: turn_id, path (names joined by `.`, list places left out), value as text."""
    rows = [
        (turn_id, path, value)
        for turn_id, arguments in calls.filter(pl.col("arguments").is_not_null()).select("turn_id", "arguments").iter_rows()
        for path, value in _scalars(orjson.loads(arguments), "")
    ]
    return pl.DataFrame(rows, schema=VALUES, orient="row")


def names_of_things(values: pl.DataFrame) -> pl.DataFrame:
    """The values that look like the name of one thing (`words.is_identifier`), and are one word."""
    return values.filter(is_identifier(pl.col("value")) & (pl.col("value").str.len_chars() <= 64))


def _scalars(value: Any, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key in sorted(value):
            yield from _scalars(value[key], f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for item in value:
            yield from _scalars(item, path)
    elif isinstance(value, str):
        yield path, value
    elif value is not None and not isinstance(value, bool):
        yield path, orjson.dumps(value).decode()
