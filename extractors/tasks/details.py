"""What is known of a task beside its goal: the ways it was done, what had to be asked for, and what had to be told.

Sees: the known-good sessions of the task (all, where none is), names of things and numbers. Does not see: facts told in words
alone, and questions that were answered by a word that no call took.
"""

from __future__ import annotations

import json
from typing import Any

import polars as pl

from extractors.tasks.words import split_words

DETAILS = {"task": pl.String(), "ways": pl.String(), "asked_for": pl.String(), "told": pl.String()}
"""ways: JSON list of {calls, n_sessions, n_good}, most good ones first; asked_for: JSON list of arguments (`tool.path`) whose
value the user said only later on; told: JSON list of words with a digit that every such session told from what it looked up."""

_FEW = 20
"""Ways and facts listed at most."""


def details(members: pl.DataFrame, turns: pl.DataFrame, calls: pl.DataFrame, values: pl.DataFrame) -> pl.DataFrame:
    """Frame of `DETAILS`, one row a task of `members` (task, session_id, goal, good), by task."""
    best = members.filter(pl.col("good") == pl.col("good").any().over("task"))
    found = members.select("task").unique()
    for part in (_ways(members, calls), _asked_for(best, turns, calls, values), _told(best, turns)):
        found = found.join(part, on="task", how="left")
    return found.with_columns(pl.col("ways", "asked_for", "told").fill_null("[]")).select(list(DETAILS)).sort("task")


def _ways(members: pl.DataFrame, calls: pl.DataFrame) -> pl.DataFrame:
    """Distinct sequences of calls that did not fail."""
    fine = calls.filter(~pl.col("failed")).sort("session_id", "position")
    done = fine.group_by("session_id", maintain_order=True).agg("tool")
    way = members.select("task", "session_id", "good").join(done, on="session_id", how="left").with_columns(
        pl.col("tool").fill_null(pl.lit([], dtype=pl.List(pl.String))).list.join("\n").alias("way"))
    counted = way.group_by("task", "way").agg(pl.len().alias("n_sessions"), pl.col("good").sum().alias("n_good"))
    listed = counted.sort("task", "n_good", "n_sessions", "way", descending=[False, True, True, False])
    first = pl.struct("way", "n_sessions", "n_good").head(_FEW)
    by_task = listed.group_by("task", maintain_order=True).agg(first.alias("ways"))
    return by_task.with_columns(pl.col("ways").map_elements(_listed, return_dtype=pl.String))


def _listed(ways: Any) -> str:
    return json.dumps([{"calls": way["way"].split("\n") if way["way"] else [], "n_good": way["n_good"],
                        "n_sessions": way["n_sessions"]} for way in ways], ensure_ascii=False, sort_keys=True)


def _asked_for(best: pl.DataFrame, turns: pl.DataFrame, calls: pl.DataFrame, values: pl.DataFrame) -> pl.DataFrame:
    said = turns.filter((pl.col("kind") == "message") & (pl.col("role") == "user")).group_by("session_id").agg(
        pl.col("content").drop_nulls().str.join("\n").str.to_lowercase().alias("said"))
    given = calls.filter(~pl.col("failed")).select("session_id", "turn_id", "tool").join(values, on="turn_id")
    lower = pl.col("value").str.to_lowercase()
    later = best.select("task", "session_id", pl.col("goal").str.to_lowercase()).join(said, on="session_id").join(
        given, on="session_id").filter(
        (pl.col("value").str.len_chars() > 1) & pl.col("said").str.contains(lower, literal=True)
        & ~pl.col("goal").str.contains(lower, literal=True))
    named = later.select("task", pl.format("{}.{}", "tool", "path").alias("name")).unique().sort("task", "name")
    return named.group_by("task", maintain_order=True).agg("name").select(
        "task", pl.col("name").map_elements(_json, return_dtype=pl.String).alias("asked_for"))


def _told(best: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    own = turns.join(best.select("session_id", "task"), on="session_id")
    words = own.select("task", "session_id", "kind", "role", split_words(pl.col("content")).alias("word")).explode("word")
    words = words.filter(pl.col("word").str.contains(r"\p{N}"))
    key, message = ["task", "session_id", "word"], pl.col("kind") == "message"
    told = words.filter(message & (pl.col("role") == "assistant")).select(key).unique()
    shown = words.filter(pl.col("kind") == "call").select(key).unique()
    said = words.filter(message & (pl.col("role") == "user")).select(key).unique()
    n_best = best.group_by("task").agg(pl.len().alias("n_best"))
    every = told.join(shown, on=key).join(said, on=key, how="anti").group_by("task", "word").len("n").join(n_best, on="task")
    facts = every.filter(pl.col("n") == pl.col("n_best")).sort("task", "word")
    return facts.group_by("task", maintain_order=True).agg(pl.col("word").head(_FEW)).select(
        "task", pl.col("word").map_elements(_json, return_dtype=pl.String).alias("told"))


def _json(names: Any) -> str:
    return json.dumps(list(names), ensure_ascii=False)
