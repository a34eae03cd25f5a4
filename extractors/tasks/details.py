"""What is known of a task beside its goal: the ways it was done, what had to be asked for, and what had to be told.

Sees: the known-good sessions of the task (all, where none is), values to the letter, names of things and numbers. Does not see:
questions that were answered by a word that no call took, and facts told in other words than they were shown in.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import polars as pl

from extractors.tasks.provenance import Provenance
from extractors.tasks.spellings import key_of, mentions, spellings

DETAILS = {"task": pl.String(), "ways": pl.String(), "asked_for": pl.String(), "told": pl.String()}
"""ways: JSON list of {calls, n_sessions, n_good}, most good ones first; asked_for: JSON list of arguments (`tool.path`) whose
value the user said only later on in most such sessions; told: JSON list of {tool, path, value} that every such session told."""

_FEW = 20
"""Ways and facts listed at most."""

_ENOUGH = 3
"""Sessions that all told something, from which on it had to be told; for fewer, the task's family tells which fields are."""

_MOSTLY = 0.5


def details(
    members: pl.DataFrame, calls: pl.DataFrame, known: Provenance, reckoners: frozenset[tuple[str, str]]
) -> pl.DataFrame:
    """Frame of `DETAILS`, one row a task of `members` (task, family, session_id, goal, good), by task.

    `reckoners`: (service, tool) of tools that only reckon; a way is the same with and without them.
    """
    best = members.filter(pl.col("good") == pl.col("good").any().over("task"))
    found = members.select("task").unique()
    for part in (_ways(members, calls, reckoners), _asked_for(best, known.origins), _told(best, known.facts)):
        found = found.join(part, on="task", how="left")
    return found.with_columns(pl.col("ways", "asked_for", "told").fill_null("[]")).select(list(DETAILS)).sort("task")


def _ways(members: pl.DataFrame, calls: pl.DataFrame, reckoners: frozenset[tuple[str, str]]) -> pl.DataFrame:
    """Distinct sequences of calls that did not fail."""
    without = pl.DataFrame(sorted(reckoners), schema={"service": pl.String, "tool": pl.String}, orient="row")
    fine = calls.filter(~pl.col("failed")).join(without, on=["service", "tool"], how="anti").sort("session_id", "position")
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


def _asked_for(best: pl.DataFrame, origins: pl.DataFrame) -> pl.DataFrame:
    said = origins.filter(pl.col("source") == "said").join(
        best.select("task", "session_id", pl.col("goal").str.to_lowercase()), on="session_id")
    sessions: dict[tuple[str, str], set[str]] = defaultdict(set)
    columns = ("task", "session_id", "goal", "tool", "path", "value")
    for task, session, goal, tool, path, value in said.select(columns).iter_rows():
        if not any(mentions(goal, spelling) for spelling in spellings(value)):
            sessions[task, f"{tool}.{path}"].add(session)
    n_best = dict(best.group_by("task").len().iter_rows())
    named: dict[str, list[str]] = defaultdict(list)
    for (task, name), later in sorted(sessions.items()):
        if len(later) >= _MOSTLY * n_best[task]:
            named[task].append(name)
    return _frame({task: json.dumps(names, ensure_ascii=False) for task, names in named.items()}, "asked_for")


def _told(best: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
    place = ["tool", "path"]
    own = facts.join(best.select("task", "family", "session_id"), on="session_id")
    n_family = best.group_by("family").agg(pl.len().alias("n_family"))
    usual = own.group_by("family", *place).agg(pl.col("session_id").n_unique().alias("n_telling")).join(n_family, on="family")
    key = pl.col("value").map_elements(key_of, return_dtype=pl.String).alias("key")
    each = own.with_columns(key).group_by("task", "family", *place, "key").agg(
        pl.col("session_id").n_unique().alias("n"), pl.col("value").min())
    n_best = best.group_by("task").agg(pl.len().alias("n_best"))
    told = each.join(n_best, on="task").join(usual, on=["family", *place]).filter(
        (pl.col("n") == pl.col("n_best"))
        & ((pl.col("n_best") >= _ENOUGH) | (pl.col("n_telling") >= _MOSTLY * pl.col("n_family"))))
    once = told.sort("task", "n_telling", *place, "value", descending=[False, True, False, False, False]).unique(
        ["task", "key"], keep="first", maintain_order=True)
    rows: dict[str, list[dict[str, str]]] = defaultdict(list)
    for task, tool, path, value in once.select("task", *place, "value").iter_rows():
        if len(rows[task]) < _FEW:
            rows[task].append({"tool": tool, "path": path.removeprefix("."), "value": value})
    return _frame({task: json.dumps(listed, ensure_ascii=False, sort_keys=True) for task, listed in rows.items()}, "told")


def _frame(rows: Mapping[str, str], name: str) -> pl.DataFrame:
    return pl.DataFrame(sorted(rows.items()), schema={"task": pl.String, name: pl.String}, orient="row")
