"""Describe tasks and families: call sequences, late arguments, reported facts, signatures and rates.

A signature is what a task changed or had to find out, in the order in which the tools were mostly called first:

    {"tool": …, "effect": "write", "n_sessions": 3,
     "arguments": {path: [{"source": "read", "tool": …, "path": …, "n_sessions": 2}, {"source": "said", "n_sessions": 1}]}}

It has calls that write, or may write (effect `unknown`), and reads from which such a call took an argument or the agent a fact.
Sees known-good sessions (all, if there is none) and values to the letter. Does not see: reads that only reassured the agent,
failed calls, questions answered by a word that no call took, facts in other words, rates that change over time."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import polars as pl

from extractors.outcomes.rates import rates
from extractors.tasks.provenance import Provenance
from extractors.tasks.words import key_of, mentions, spellings
from warehouse.records import Family, frame_schema

DETAILS = ("call_sequences", "late_arguments", "reported_facts")
"""call_sequences: JSON list of {calls, n_sessions, n_succeeded}, most good ones first; late_arguments: JSON list of
arguments (`tool.path`) whose value the user stated only later on; reported_facts: JSON list of {tool, path, value} that every
such session reported."""
_FEW = 20
"""Call sequences and facts listed at most."""
_ENOUGH = 3
"""Sessions that all told something, from which on it had to be told; for fewer, the task's family tells which fields are."""
_MOSTLY = 0.5


def details(members: pl.DataFrame, calls: pl.DataFrame, provenance: Provenance,
            reckoners: frozenset[tuple[str, str]]) -> pl.DataFrame:
    """Describe each task of `members` (task, family, session_id, goal, good): columns task and `DETAILS`, by task.

    `reckoners`: (service, tool) of tools that only compute; sequences leave them out."""
    best = members.filter(pl.col("good") == pl.col("good").any().over("task"))
    rows = members.select("task").unique()
    for part in (
        _call_sequences(members, calls, reckoners), _late_arguments(best, provenance.origins),
        _reported_facts(best, provenance.facts)):
        rows = rows.join(part, on="task", how="left")
    return rows.select("task", pl.col(DETAILS).fill_null("[]")).sort("task")


def _call_sequences(members: pl.DataFrame, calls: pl.DataFrame, reckoners: frozenset[tuple[str, str]]) -> pl.DataFrame:
    without = pl.DataFrame(sorted(reckoners), schema={"service": pl.String, "tool": pl.String}, orient="row")
    fine = calls.filter(~pl.col("failed")).join(without, on=["service", "tool"], how="anti").sort("session_id", "position")
    done = fine.group_by("session_id", maintain_order=True).agg("tool")
    called = members.select("task", "session_id", "good").join(done, on="session_id", how="left").with_columns(
        pl.col("tool").fill_null(pl.lit([], dtype=pl.List(pl.String))).list.join("\n").alias("calls"))
    counted = called.group_by("task", "calls").agg(pl.len().alias("n_sessions"), pl.col("good").sum().alias("n_succeeded"))
    listed: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for task, names, n_sessions, n_succeeded in counted.sort(
            "task", "n_succeeded", "n_sessions", "calls", descending=[False, True, True, False]).iter_rows():
        if len(listed[task]) < _FEW:
            calls = names.split("\n") if names else []
            listed[task].append({"calls": calls, "n_succeeded": n_succeeded, "n_sessions": n_sessions})
    return _json_frame(listed, "call_sequences")


def _late_arguments(best: pl.DataFrame, origins: pl.DataFrame) -> pl.DataFrame:
    stated = origins.filter(pl.col("source") == "said").join(
        best.select("task", "session_id", pl.col("goal").str.to_lowercase()), on="session_id")
    sessions: dict[tuple[str, str], set[str]] = defaultdict(set)
    columns = "task", "session_id", "goal", "tool", "path", "value"
    for task, session, goal, tool, path, value in stated.select(columns).iter_rows():
        if not any(mentions(goal, spelling) for spelling in spellings(value)):
            sessions[task, f"{tool}.{path}"].add(session)
    n_best = dict(best.group_by("task").len().iter_rows())
    named: dict[str, list[str]] = defaultdict(list)
    for (task, name), later in sorted(sessions.items()):
        if len(later) >= _MOSTLY * n_best[task]:
            named[task].append(name)
    return _json_frame(named, "late_arguments")


def _reported_facts(best: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
    place = ["tool", "path"]
    own = facts.join(best.select("task", "family", "session_id"), on="session_id")
    n_family = best.group_by("family").agg(pl.len().alias("n_family"))
    usual = own.group_by("family", *place).agg(pl.col("session_id").n_unique().alias("n_telling")).join(n_family, on="family")
    key = pl.col("value").map_elements(key_of, return_dtype=pl.String).alias("key")
    each = own.with_columns(key).group_by("task", "family", *place, "key").agg(
        pl.col("session_id").n_unique().alias("n"), pl.col("value").min())
    n_best = best.group_by("task").agg(pl.len().alias("n_best"))
    reported = each.join(n_best, on="task").join(usual, on=["family", *place]).filter(
        (pl.col("n") == pl.col("n_best"))
        & ((pl.col("n_best") >= _ENOUGH) | (pl.col("n_telling") >= _MOSTLY * pl.col("n_family"))))
    once = reported.sort("task", "n_telling", *place, "value", descending=[False, True, False, False, False]).unique(
        ["task", "key"], keep="first", maintain_order=True)
    rows: dict[str, list[dict[str, str]]] = defaultdict(list)
    for task, tool, path, value in once.select("task", *place, "value").iter_rows():
        if len(rows[task]) < _FEW:
            rows[task].append({"tool": tool, "path": path.removeprefix("."), "value": value})
    return _json_frame(rows, "reported_facts")


def _json_frame(lists: Mapping[str, list[Any]], name: str) -> pl.DataFrame:
    rows = [(task, json.dumps(listed, ensure_ascii=False, sort_keys=True)) for task, listed in sorted(lists.items())]
    return pl.DataFrame(rows, schema={"task": pl.String, name: pl.String}, orient="row")


_ACTING = ("write", "outside", "unknown")
"""Effects of tools that may act."""
_MOST_TOOLS = 20
"""Tools of a signature, and sources of an argument, listed at most."""


def signatures(groups: pl.DataFrame, calls: pl.DataFrame, effects: pl.DataFrame, provenance: Provenance) -> pl.DataFrame:
    """Write signatures (JSON), by group. `groups`: group, session_id; `effects`: service, tool, effect (default `unknown`)."""
    fine = calls.filter(~pl.col("failed")).join(effects.unique(["service", "tool"]), on=["service", "tool"], how="left")
    used = _used(fine.with_columns(pl.col("effect").fill_null("unknown")), provenance).join(groups, on="session_id")
    tools = used.sort("group", "session_id", "position").with_columns(
        pl.col("position").rank("dense").over("group", "session_id").alias("place"))
    first = tools.group_by("group", "session_id", "tool").agg(pl.col("place").min(), pl.col("effect").first())
    listed = first.group_by("group", "tool").agg(
        pl.len().alias("n_sessions"), pl.col("place").mean(), pl.col("effect").first()).sort("group", "place", "tool")
    sources = _sources(used, provenance)
    entries: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for group, tool, n_sessions, effect in listed.select("group", "tool", "n_sessions", "effect").iter_rows():
        entries[group].append(
            {"tool": tool, "effect": effect, "n_sessions": n_sessions, "arguments": sources.get((group, tool), {})})
    rows = [(group, json.dumps(entries[group][:_MOST_TOOLS], ensure_ascii=False, sort_keys=True, separators=(",", ":")))
            for group in groups["group"].unique().sort()]
    return pl.DataFrame(rows, schema={"group": pl.String, "signature": pl.String}, orient="row")


def _used(calls: pl.DataFrame, provenance: Provenance) -> pl.DataFrame:
    acting = pl.col("effect").is_in(_ACTING)
    taken = provenance.origins.filter(pl.col("from_turn") != "").select("turn_id", "from_turn").unique()
    reported = provenance.facts.join(calls.filter(~acting), on="turn_id", how="semi")["turn_id"]
    used = pl.concat([calls.filter(acting)["turn_id"], reported]).unique()
    while True:
        before = taken.filter(pl.col("turn_id").is_in(used.implode()))["from_turn"]
        more = pl.concat([used, before]).unique()
        if more.len() == used.len():
            return calls.filter(pl.col("turn_id").is_in(used.implode())).select(
                "session_id", "turn_id", "tool", "position", "effect")
        used = more


def _sources(used: pl.DataFrame, provenance: Provenance) -> Mapping[tuple[str, str], dict[str, list[dict[str, Any]]]]:
    """(group, tool) -> path -> sources, most sessions first."""
    constant = pl.when(pl.col("source") == "constant").then("value").otherwise(pl.lit("")).alias("constant")
    named = provenance.origins.select("turn_id", "path", "source", "from_tool", "from_path", constant)
    place = ["group", "tool", "path", "source", "from_tool", "from_path", "constant"]
    counted = used.select("group", "session_id", "turn_id", "tool").join(named, on="turn_id").group_by(place).agg(
        pl.col("session_id").n_unique().alias("n"))
    by_tool: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    ordered = counted.sort("n", *place, descending=[True, *[False] * len(place)])
    for n, group, tool, path, source, from_tool, from_path, value in ordered.select("n", *place).iter_rows():
        entry = {"source": source, "tool": from_tool, "path": from_path.removeprefix("."), "value": value, "n_sessions": n}
        sources = by_tool[group, tool][path]
        if len(sources) < _MOST_TOOLS:
            sources.append({name: each for name, each in entry.items() if each != ""})
    return by_tool


RATES = {
    "name": pl.String(), "rate": pl.Float64(), "rate_low": pl.Float64(), "rate_high": pl.Float64(),
    "difficulty_band": pl.String()}
"""name: id of a task or of a family."""


def rated(members: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Frames of `RATES` of the families and of the tasks of `members` (service, family, task, probability), by name."""
    chances_by_service: dict[str, dict[str, dict[str, list[float]]]] = defaultdict(lambda: defaultdict(dict))
    chances = members.group_by("service", "family", "task").agg(pl.col("probability").drop_nulls().round(2).sort())
    for service, family, task, probabilities in chances.sort("service", "family", "task").iter_rows():
        chances_by_service[service][family][task] = probabilities
    of_families, of_tasks = [], []
    for _, by_service in sorted(chances_by_service.items()):
        by_family, by_task = rates(by_service)
        of_families += [(name, *rate) for name, rate in by_family.items()]
        of_tasks += [(name, *rate) for name, rate in by_task.items()]
    families, tasks = (pl.DataFrame(sorted(rows), schema=RATES, orient="row") for rows in (of_families, of_tasks))
    return families, tasks


def family_table(members: pl.DataFrame, kinds: pl.DataFrame, family_rates: pl.DataFrame,
                 signatures: pl.DataFrame) -> pl.DataFrame:
    """Frame of `Family`, by family. `kinds`: session_id, family, kinds; `family_rates`: of `rated`; `signatures`: by group."""
    counted_kinds = kinds.group_by("family", "kinds").agg(pl.len().alias("n"), pl.col("session_id").min())
    asks = counted_kinds.sort("family", "n", "session_id", descending=[False, True, False]).group_by(
        "family", maintain_order=True).agg(pl.col("kinds").first())
    example = members.sort("family", "good", "probability", "session_id", descending=[False, True, True, False],
                           nulls_last=True)
    counted = example.group_by("family", "service", maintain_order=True).agg(
        pl.col("goal").first(), pl.len().alias("n_sessions"), pl.col("task").n_unique().alias("n_tasks"),
        pl.col("good").sum().alias("n_succeeded"), pl.col("started_at").min().alias("first_at"),
        pl.col("started_at").max().alias("last_at"))
    rows = counted.join(asks, on="family", how="left").join(family_rates, left_on="family", right_on="name", how="left").join(
        signatures, left_on="family", right_on="group", how="left")
    return rows.with_columns(
        pl.col("kinds").map_elements(lambda kinds: json.dumps(list(kinds), ensure_ascii=False), return_dtype=pl.String)
        .fill_null("[]").alias("asks"), pl.col("signature").fill_null("[]")).select(list(frame_schema(Family))).cast(
        pl.Schema(frame_schema(Family))).sort("family")
