"""Write goals for sessions that nobody put in words, and what their users filed before they began.

In: turns and the effects of tools. Out: one text a session. A request that a user made in the application (`filed`) is told by
its tool, its values, and the values of its answer. Work that nobody asked for in words (`written`) is told by the calls that
may have changed something, with their values. Sees: calls that worked. Does not see: why the work was done.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import polars as pl

from extractors.routines import READS
from extractors.tasks.arguments import by_agent, opens_session
from extractors.tasks.names import spoken, worded
from warehouse.records import refusals_flagged

_READING = ("read", "pure", "constant")
MOST_CALLS = 12
"""Calls of a written goal; more of them are no goal that anyone would state."""
_LONGEST = 200
"""Characters of a value that is told."""


def filed(turns: pl.DataFrame) -> pl.DataFrame:
    """Columns session_id, filed: what users did in the application before the agent's first step."""
    own = refusals_flagged(turns).sort("session_id", "position").filter(opens_session() & ~_failed())
    return _texts(own, "filed", with_answer=True)


def written(turns: pl.DataFrame, effects: pl.DataFrame) -> pl.DataFrame:
    """Columns session_id, written: the agent's calls that may have changed something, in order."""
    reading = effects.filter(pl.col("effect").is_in(_READING)).select("service", "tool")
    safe = pl.col("tool").str.extract(r"^([A-Z]+) /").is_in(READS).fill_null(False)
    own = refusals_flagged(turns).filter((pl.col("kind") == "call") & by_agent() & ~_failed() & ~safe).join(
        reading, on=["service", "tool"], how="anti")
    few = own.filter(pl.len().over("session_id") <= MOST_CALLS).sort("session_id", "position")
    return _texts(few, "written", with_answer=False)


def _failed() -> pl.Expr:
    return pl.col("is_error").fill_null(False)


def _texts(calls: pl.DataFrame, name: str, with_answer: bool) -> pl.DataFrame:
    texts: dict[str, list[str]] = {}
    for session_id, tool, arguments, content in calls.select("session_id", "tool", "arguments", "content").iter_rows():
        given = _object(arguments)
        answer = _object(content) if with_answer else {}
        body = answer.get("body", answer)
        values = given | {key: value for key, value in (body.items() if isinstance(body, dict) else ()) if key not in given}
        texts.setdefault(session_id, []).append(in_words(tool, values))
    rows = {"session_id": list(texts), name: ["\n".join(dict.fromkeys(lines)) for lines in texts.values()]}
    return pl.DataFrame(rows, schema={"session_id": pl.String(), name: pl.String()})


def in_words(tool: str, values: dict[str, Any]) -> str:
    """Put a call in words: what its tool does, and each value with the name of its field."""
    pairs = "; ".join(_pairs(values))
    return f"{spoken(tool)} ({pairs})" if pairs else spoken(tool)


def _pairs(values: dict[str, Any]) -> Iterator[str]:
    for name, value in values.items():
        if value is None or value in ("", [], {}):
            continue
        yield f"{worded(name) or name}: {_value(value)}"


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(_pairs(value))
    if isinstance(value, list):
        return " and ".join(map(_value, value))
    return (value if isinstance(value, str) else orjson.dumps(value).decode())[:_LONGEST]


def _object(text: str | None) -> dict[str, Any]:
    try:
        value = orjson.loads(text or "{}")
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}
