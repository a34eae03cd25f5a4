"""What was decided about sessions when they were sealed, and does not move when others arrive.

In: the ledger, a row a session: the epoch in which it settled, and of a sealed one also the first session of its task and of
its component, its side, and how its service was split. Out: these beside each session, and names of tasks that stay. The first
of several sessions is the one of the earliest epoch, within an epoch the one with the smallest id; so in one epoch no order of
arrival counts. Sees: the ledger. Does not see: what a session says; whether today's grouping would part sealed sessions of one
task, or join two tasks: they stay as they were sealed, and a new session joins the task that settled first.
"""

from __future__ import annotations

import polars as pl

from extractors.tasks.branches import id_of
from warehouse.records import SealedSide, frame_schema

TIED = "tied_across_sides"
"""In the place of a split: what ties the task leads to several sides, so it is on none."""
LEDGER = {"session_id": pl.String(), "epoch": pl.Int64(), "service": pl.String(), "first_session_id": pl.String(),
          "component": pl.String(), "split": pl.String(), "method": pl.String(), "word_group": pl.String()}
"""epoch: None where the session is of the open epoch, after all others; the rest None where it has no side yet. word_group: see
`goals.WORD_GROUPS`; None where it was not clustered yet."""
_OPEN = 1 << 40
"""Epoch of sessions that are not in the ledger."""
UNNAMED = 1 << 41
"""What comes after every epoch."""


def with_ledger(rows: pl.DataFrame, ledger: pl.DataFrame | None = None) -> pl.DataFrame:
    """Add to rows with a session_id: epoch, sealed_first, sealed_component, sealed_split, sealed_method, word_group. A session
    that is of another service now keeps its side, and its task gets a new name."""
    in_ledger = pl.DataFrame(schema=LEDGER) if ledger is None else ledger
    sealed = in_ledger.select(
        "session_id", "epoch", pl.col("service").alias("sealed_service"), pl.col("first_session_id").alias("sealed_first"),
        pl.col("component").alias("sealed_component"), pl.col("split").alias("sealed_split"),
        pl.col("method").alias("sealed_method"), "word_group")
    is_same = pl.col("sealed_service") == pl.col("service")
    return rows.join(sealed, on="session_id", how="left", maintain_order="left").with_columns(
        pl.col("epoch").fill_null(_OPEN), pl.when(is_same).then("sealed_first").alias("sealed_first")).drop("sealed_service")


def named_tasks(rows: pl.DataFrame) -> pl.DataFrame:
    """Add to rows of sessions (service, group, and the ledger's columns): first_session_id, which names the task, and task, its
    id. Sealed sessions stay in their task; others are in that of the first sealed session of their group, or in one of their
    group."""
    ordered = rows.sort("epoch", "session_id")
    of_group = pl.col("sealed_first").drop_nulls().first().over("service", "group")
    named = ordered.with_columns(pl.coalesce(
        "sealed_first", of_group, pl.col("session_id").first().over("service", "group")).alias("first_session_id"))
    ids = pl.struct("service", "first_session_id").map_elements(lambda row: id_of(*row.values()), return_dtype=pl.String)
    return named.with_columns(ids.alias("task"))


def sealed_sides(members: pl.DataFrame, sides: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of the ledger (`SealedSide`) of `members` (with the columns of `named_tasks`), as `splits.choose_sides`
    placed their tasks."""
    first = members.select(pl.col("task").alias("component"), pl.col("first_session_id").alias("first_of_root")).unique()
    return (
        members.select("session_id", "service", "first_session_id", "task")
        .join(sides.select("task", "component", "split", "method"), on="task").join(first, on="component")
        .with_columns(pl.col("first_of_root").alias("component")).select(
            list(frame_schema(SealedSide))).sort("session_id"))
