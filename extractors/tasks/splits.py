"""Train, validation and held-out: sides that share no session, no user, and no thing that one of them changed or that is one
user's.

Tasks are tied together by nearly the same words, by the same user, and by things that sessions changed; what is tied
stays on one side (connected components). Later components are held out, so that a policy is tried on what came after what it
learnt from; where there is no clock, a hash says which. What many share (a catalogue, a service's only account) ties nothing;
`leakage` names it.

A *user* is the session's identity; where the log has none, the argument that most sessions give exactly one name for.
Does not see: ties through names that never stand in an argument (a household, a card known by its last digits).
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import NamedTuple

import polars as pl

from extractors.tasks.arguments import names_of_things

SHARES = {"held_out": 0.2, "validation": 0.1}
"""Shares of a service's tasks that these sides aim at; the rest is train."""

_MANY = 3
"""A thing that this many users' sessions name is shared, and ties nothing."""

_ALL_IN_ONE = 0.75
"""A component with more of the tasks than this leaves nothing to part: the split goes by family instead."""

_USUAL = 0.5
"""An argument tells the user where at least this share of the sessions give it, and hardly one gives two."""

_OPERATOR = 10
"""An identity with more tasks than this, and more than 2 % of its service's, serves others (a clerk, an account of the
service): it is named in the leakage report and ties nothing."""


class Sides(NamedTuple):
    """Which side each task is on, and what ties were seen."""

    tasks: pl.DataFrame
    """task, service, component, split, method (`component` or `family`)."""
    ties: pl.DataFrame
    """task, kind (`user`, or path of an argument), value, shared (bool: named by many, ties nothing)."""


def choose_sides(members: pl.DataFrame, calls: pl.DataFrame, values: pl.DataFrame) -> Sides:
    """Put every task on a side: the same logs give the same sides.

    `members`: task, service, family, session_id, identity, started_at, words (id of the group of near-duplicates).
    """
    ties = _ties(members, calls, values)
    tying = pl.concat(
        [
            ties.filter(~pl.col("shared")).select("task", (pl.col("kind") + "\0" + pl.col("value")).alias("tie")),
            members.select("task", (pl.lit("words\0") + pl.col("words")).alias("tie")),
        ]
    )
    of_task = _components(sorted(members["task"].unique()), tying)
    tasks = members.group_by("task", "service").agg(pl.col("family").first(), pl.col("started_at").max()).sort("task")
    tasks = tasks.with_columns(pl.col("task").replace_strict(of_task, return_dtype=pl.String).alias("component"))
    size = pl.len().over("service", "component")
    alone = (size.max().over("service") > _ALL_IN_ONE * pl.len().over("service")) & (pl.len().over("service") > 1)
    tasks = tasks.with_columns(pl.when(alone).then(pl.lit("family")).otherwise(pl.lit("component")).alias("method"))
    tasks = tasks.with_columns(pl.when(pl.col("method") == "family").then("family").otherwise("component").alias("unit"))
    of_unit = _sides(tasks)
    split = pl.struct("service", "unit").map_elements(
        lambda row: of_unit.get((row["service"], row["unit"]), "train"), return_dtype=pl.String)
    return Sides(tasks.with_columns(split.alias("split")).drop("unit", "family", "started_at"), ties)


def _sides(tasks: pl.DataFrame) -> dict[tuple[str, str], str]:
    """(service, unit) -> side, of those not in train: the latest first, until there is enough; big ones stay in train."""
    units = tasks.group_by("service", "unit").agg(pl.len().alias("n"), pl.col("started_at").max()).sort("service", "unit")
    found: dict[tuple[str, str], str] = {}
    for (service,), part in units.group_by("service", maintain_order=True):
        total, order = int(part["n"].sum()), sorted(part.select("unit", "n", "started_at").iter_rows(), key=_latest_first)
        for side, share in SHARES.items():
            taken, left = 0, []
            for unit, n, started_at in order:
                if taken + n <= max(1.25 * share * total, 1) and taken < share * total and len(order) > len(SHARES):
                    found[str(service), unit] = side
                    taken += n
                else:
                    left.append((unit, n, started_at))
            order = left
    return found


def _latest_first(unit: tuple[str, int, datetime | None]) -> tuple[float, str]:
    name, _, started_at = unit
    return (-started_at.timestamp() if started_at else 0.0, hashlib.sha256(name.encode()).hexdigest())


def _ties(members: pl.DataFrame, calls: pl.DataFrame, values: pl.DataFrame) -> pl.DataFrame:
    named = (
        names_of_things(values)
        .join(calls.select("turn_id", "session_id", "acts", "failed"), on="turn_id")
        .select(
            "session_id",
            pl.col("path").str.split(".").list.last().alias("kind"),
            "value",
            (pl.col("acts") & ~pl.col("failed")).alias("changed"),
        )
        .group_by("session_id", "kind", "value")
        .agg(pl.col("changed").any())
        .join(members.select("session_id", "task", "service", "identity"), on="session_id")
    )
    users = _users(members, named)
    known = users.filter(~pl.col("shared")).select("session_id", (pl.col("service") + "\0" + pl.col("user")).alias("owner"))
    of_user = members.select("task", "session_id").join(users, on="session_id")
    of_user = of_user.select("task", "service", pl.lit("user").alias("kind"), pl.col("user").alias("value"), "shared")
    owned = named.join(known, on="session_id", how="left").with_columns(pl.coalesce("owner", "task").alias("owner"))
    n_owners = pl.col("owner").n_unique().over("service", "value")
    changed = pl.col("changed").any().over("service", "value")
    of_thing = owned.with_columns(((n_owners >= _MANY) | ((n_owners > 1) & ~changed)).alias("shared"))
    columns = ["task", "service", "kind", "value", "shared"]
    return pl.concat([of_user.select(columns), of_thing.select(columns)]).unique().sort("task", "kind", "value", "shared")


def _users(members: pl.DataFrame, named: pl.DataFrame) -> pl.DataFrame:
    """Columns session_id, service, user, shared: the log's identity, and where that is none (or an operator that serves
    many, which is then shared) the name given for the most one-valued argument.
    """
    n_tasks = pl.col("task").n_unique()
    stated = members.filter(pl.col("identity").is_not_null()).select(
        "session_id", "service", "task", pl.col("identity").alias("user")
    )
    per_service = members.group_by("service").agg(n_tasks.cast(pl.Float64).alias("n_tasks"))
    operator = n_tasks.over("service", "user") > pl.max_horizontal(pl.lit(float(_OPERATOR)), 0.02 * pl.col("n_tasks"))
    stated = stated.join(per_service, on="service").select("session_id", "service", "user", operator.alias("shared"), "n_tasks")
    guessed = _guessed(members, named).join(stated.filter(~pl.col("shared")), on="session_id", how="anti")
    guessed = guessed.join(members.select("session_id", "task"), on="session_id").join(per_service, on="service")
    only = (n_tasks.over("service", "user") == pl.col("n_tasks")) & (pl.col("n_tasks") > 1)
    columns = ["session_id", "service", "user", "shared"]
    both = pl.concat([stated.select(columns), guessed.with_columns(only.alias("shared")).select(columns)])
    return both.unique().sort("session_id", "user")


def _guessed(members: pl.DataFrame, named: pl.DataFrame) -> pl.DataFrame:
    """Columns session_id, service, user: the value of the argument that most sessions give exactly one value for."""
    per_session = named.group_by("service", "session_id", "kind").agg(
        pl.col("value").n_unique().alias("n"), pl.col("value").min()
    )
    single = per_session.group_by("service", "kind").agg(
        (pl.col("n") == 1).sum().alias("n_single"), (pl.col("n") > 1).sum().alias("n_many")
    )
    n_sessions = members.group_by("service").agg(pl.len().alias("n_sessions"))
    chosen = (
        single.join(n_sessions, on="service")
        .filter((pl.col("n_single") > 9 * pl.col("n_many")) & (pl.col("n_single") >= _USUAL * pl.col("n_sessions")))
        .sort("service", "n_single", "kind", descending=[False, True, False])
        .group_by("service", maintain_order=True)
        .first()
        .select("service", "kind")
    )
    return per_session.join(chosen, on=["service", "kind"]).select("session_id", "service", pl.col("value").alias("user"))


def _components(tasks: list[str], tying: pl.DataFrame) -> dict[str, str]:
    """Union-find with path halving: task -> smallest task of its component."""
    parent = {task: task for task in tasks}

    def root(task: str) -> str:
        while parent[task] != task:
            parent[task] = parent[parent[task]]
            task = parent[task]
        return task

    for tied in tying.group_by("tie").agg(pl.col("task").unique()).filter(pl.col("task").list.len() > 1)["task"].to_list():
        roots = sorted({root(task) for task in tied})
        for other in roots[1:]:
            parent[other] = roots[0]
    return {task: root(task) for task in tasks}
