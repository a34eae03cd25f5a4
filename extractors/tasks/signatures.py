"""Signatures: what a task changed, or had to find out, and where each argument came from.

In: sessions by group (a task, a family), their calls, and the provenance of what these were given. Out: a JSON list a group, in
the order in which the tools were mostly called first:

    {"tool": …, "effect": "write", "n_sessions": 3,
     "arguments": {path: [{"source": "read", "tool": …, "path": …, "n_sessions": 2}, {"source": "said", "n_sessions": 1}]}}

Sees: calls that act, or of which it is not known that they do not (effect `unknown`), and looks out of which such a call or
another such look took an argument, or the agent told the user something. Does not see: a look that only let the agent make
sure, calls that failed.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl

from extractors.tasks.provenance import Provenance

SIGNATURES = {"group": pl.String(), "signature": pl.String()}

_ACTING = ("write", "outside", "unknown")
"""Effects of tools that may act."""

_FEW = 20
"""Tools of a signature, and sources of an argument, listed at most."""


def signatures(groups: pl.DataFrame, calls: pl.DataFrame, effects: pl.DataFrame, known: Provenance) -> pl.DataFrame:
    """Frame of `SIGNATURES`, by group.

    `groups`: group, session_id; a session may be in several. `effects`: service, tool, effect; a tool it lacks is `unknown`.
    """
    fine = calls.filter(~pl.col("failed")).join(effects.unique(["service", "tool"]), on=["service", "tool"], how="left")
    used = _used(fine.with_columns(pl.col("effect").fill_null("unknown")), known).join(groups, on="session_id")
    tools = used.sort("group", "session_id", "position").with_columns(
        pl.col("position").rank("dense").over("group", "session_id").alias("place"))
    first = tools.group_by("group", "session_id", "tool").agg(pl.col("place").min(), pl.col("effect").first())
    listed = first.group_by("group", "tool").agg(
        pl.len().alias("n_sessions"), pl.col("place").mean(), pl.col("effect").first()).sort("group", "place", "tool")
    sources = _sources(used, known)
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for group, tool, n_sessions, effect in listed.select("group", "tool", "n_sessions", "effect").iter_rows():
        found[group].append(
            {"tool": tool, "effect": effect, "n_sessions": n_sessions, "arguments": sources.get((group, tool), {})})
    rows = [(group, _json(found.get(group, [])[:_FEW])) for group in groups["group"].unique().sort()]
    return pl.DataFrame(rows, schema=SIGNATURES, orient="row")


def _used(calls: pl.DataFrame, known: Provenance) -> pl.DataFrame:
    """session_id, turn_id, tool, position, effect: what acts, and the looks that something came out of."""
    acting = pl.col("effect").is_in(_ACTING)
    taken = known.origins.filter(pl.col("from_turn") != "").select("turn_id", "from_turn").unique()
    told = known.facts.join(calls.filter(~acting), on="turn_id", how="semi")["turn_id"]
    used = pl.concat([calls.filter(acting)["turn_id"], told]).unique()
    while True:
        before = taken.filter(pl.col("turn_id").is_in(used.implode()))["from_turn"]
        more = pl.concat([used, before]).unique()
        if more.len() == used.len():
            return calls.filter(pl.col("turn_id").is_in(used.implode())).select(
                "session_id", "turn_id", "tool", "position", "effect")
        used = more


def _sources(used: pl.DataFrame, known: Provenance) -> Mapping[tuple[str, str], dict[str, list[dict[str, Any]]]]:
    """(group, tool) -> path -> sources, most sessions first."""
    constant = pl.when(pl.col("source") == "constant").then("value").otherwise(pl.lit("")).alias("constant")
    named = known.origins.select("turn_id", "path", "source", "from_tool", "from_path", constant)
    place = ["group", "tool", "path", "source", "from_tool", "from_path", "constant"]
    counted = used.select("group", "session_id", "turn_id", "tool").join(named, on="turn_id").group_by(place).agg(
        pl.col("session_id").n_unique().alias("n"))
    found: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    ordered = counted.sort("n", *place, descending=[True, *[False] * len(place)])
    for n, group, tool, path, source, from_tool, from_path, value in ordered.select("n", *place).iter_rows():
        told = {"source": source, "tool": from_tool, "path": from_path.removeprefix("."), "value": value, "n_sessions": n}
        sources = found[group, tool][path]
        if len(sources) < _FEW:
            sources.append({name: each for name, each in told.items() if each != ""})
    return found


def _json(entries: Iterable[Mapping[str, Any]]) -> str:
    return json.dumps(list(entries), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
