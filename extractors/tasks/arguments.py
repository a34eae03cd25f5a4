"""List the calls of sessions, the single values of their arguments, and the slots of tasks.

A call counts as failed if the log flags it, if its answer begins with a traceback, or, without a flag, with "error" or a JSON
object with an error or an error status. A slot is named after the tool and the path of the argument (`tool.path`); its value is
what the user said and the tool was given. Does not see: a refusal in other words, values said in another form (a month by
name), values that no tool was given."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import orjson
import polars as pl

from extractors.tasks.words import is_identifier
from warehouse.records import refusals_flagged

_ERROR_TEXT = (
    r'(?i)^\s*(?:err(?:or)?\b|traceback \(|exception\b|\(False\b|sorry, that did not|'
    r'\{\s*"(?:error|errors)"\s*:|\{\s*"(?:status|code)"\s*:\s*(?:"(?:error|fail\w*)"|[45]\d\d\b))')

_CRASH = r"(?i)^\s*traceback \(most recent call last\)"
"""What a tool answers only by failing, whatever the log's flag."""


def calls_of(turns: pl.DataFrame, effects: pl.DataFrame) -> pl.DataFrame:
    """List the agents' calls in order: session_id, service, position, turn_id, tool, arguments, content, failed, acts.

    `acts`: the tool is known to write; in a service without such a tool, its effect is unknown."""
    turns = refusals_flagged(turns)
    acting = (
        effects.with_columns(
            pl.when((pl.col("effect") == "write").any().over("service")).then(pl.col("effect").is_in(["write", "outside"]))
            .otherwise(pl.col("effect").is_in(["unknown", "outside"])).alias("acts"))
        .select("service", "tool", "acts").unique(["service", "tool"], keep="first", maintain_order=True))
    crashed = pl.col("content").str.contains(_CRASH).fill_null(False)
    failed = crashed | pl.coalesce("is_error", pl.col("content").str.contains(_ERROR_TEXT), pl.lit(True))
    return (
        turns.filter((pl.col("kind") == "call") & by_agent()).join(acting, on=["service", "tool"], how="left").select(
            "session_id", "service", "position", "turn_id", "tool", "arguments", "content", failed.alias("failed"),
            pl.col("acts").fill_null(False))
        .sort("session_id", "position"))


def by_agent() -> pl.Expr:
    """Whether a call is the agent's own, and not one that the session's user made."""
    return (pl.col("requestor") != "user").fill_null(True)


def opens_session() -> pl.Expr:
    """Whether a call is the user's and comes before the agent's first move, in turns by session and position."""
    moves = ((pl.col("kind") == "call") & by_agent()) | ((pl.col("kind") == "message") & (pl.col("role") == "assistant"))
    return (pl.col("kind") == "call") & ~by_agent() & (moves.fill_null(False).cum_sum().over("session_id") == 0)


def values_of(calls: pl.DataFrame) -> pl.DataFrame:
    """List the scalars in the calls' arguments: turn_id, path (names joined by `.`, list indices left out), value as text."""
    rows = [
        (turn_id, path, value)
        for turn_id, arguments in calls.select("turn_id", "arguments").drop_nulls("arguments").iter_rows()
        for path, value in _scalars(orjson.loads(arguments), "")]
    return pl.DataFrame(rows, schema={"turn_id": pl.String, "path": pl.String, "value": pl.String}, orient="row")


def names_of_things(values: pl.DataFrame) -> pl.DataFrame:
    """Keep the values that look like the name of one entity (`words.is_identifier`)."""
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


_LONGEST = 60
"""A longer value is a text, not a slot of one."""
_SHORTEST = 2
"""A value of one character is found in any text and says nothing."""


def fill_slots(requests: pl.DataFrame, members: pl.DataFrame, calls: pl.DataFrame, values: pl.DataFrame) -> pl.DataFrame:
    """Fill slots: columns task, slots (JSON object: argument -> value, or list of values), from good sessions if there are any.

    `requests`: session_id, said. `members`: task, family, session_id, good (bool). A value that all tasks of a family share is
    no slot."""
    best = members.filter(pl.col("good") == pl.col("good").any().over("task"))
    given = (
        calls.filter(~pl.col("failed")).select("session_id", "turn_id", "tool", "acts")
        .join(best.select("task", "family", "session_id"), on="session_id").join(values, on="turn_id")
        .filter(pl.col("value").str.len_chars().is_between(_SHORTEST, _LONGEST))
        .with_columns((pl.col("tool") + "." + pl.col("path")).alias("slot"))
        .select("task", "family", "session_id", "slot", "value", "acts").unique())
    stated = given.join(requests.select("session_id", pl.col("said").str.to_lowercase()), on="session_id").filter(
        pl.col("said").str.contains(pl.col("value").str.to_lowercase(), literal=True))
    taken = stated.filter(pl.col("acts") | ~pl.col("acts").any().over("task"))
    n_tasks = members.group_by("family").agg(pl.col("task").n_unique().alias("n_tasks"))
    varied = taken.join(n_tasks, on="family").filter(
        (pl.col("n_tasks") == 1) | (pl.col("value").n_unique().over("family", "slot") > 1))
    filled: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for task, slot, value in varied.select("task", "slot", "value").unique().sort("task", "slot", "value").iter_rows():
        filled[task][slot].append(value)
    rows = [(task, slots_json(slots)) for task, slots in filled.items()]
    return pl.DataFrame(rows, schema={"task": pl.String, "slots": pl.String}, orient="row")


def slots_json(slots: Mapping[str, list[str]]) -> str:
    """Write slots as a JSON object: name -> value, or a list of values where there are several."""
    flat = {name: values[0] if len(values) == 1 else values for name, values in slots.items()}
    return json.dumps(flat, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def slots_of(text: str) -> dict[str, list[str]]:
    """Read slots from a JSON object, each with a list of values."""
    return {name: value if isinstance(value, list) else [value] for name, value in orjson.loads(text).items()}
