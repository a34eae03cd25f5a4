"""What the signals look at, put together once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import polars as pl

from extractors.tasks.arguments import calls_of, values_of
from extractors.tasks.asking import ask

VOTES = {"session_id": pl.String(), "vote": pl.Float64(), "says": pl.String(), "evidence": pl.List(pl.String())}
"""What a signal gives: a row a session that it votes on; a session without a row is one it abstains on."""


class Evidence(NamedTuple):
    """Frames that signals read; none holds anything that a signal of ours made."""

    turns: pl.DataFrame
    """Turns by session and position."""
    feedback: pl.DataFrame
    calls: pl.DataFrame
    """Of `arguments.calls_of`."""
    values: pl.DataFrame
    """Of `arguments.values_of`."""
    asked: pl.DataFrame
    """Of `asking.ask`."""
    reset: list[str]
    """Services whose sessions are known to all start from the same state."""


def gather(
    sessions: pl.DataFrame,
    turns: pl.DataFrame,
    feedback: pl.DataFrame,
    effects: pl.DataFrame,
    starts_from: Mapping[str, str],
) -> Evidence:
    """The evidence of all sessions."""
    ordered = turns.sort("session_id", "position")
    calls = calls_of(ordered, effects)
    asked, _ = ask(sessions, ordered)
    reset = sorted(name for name, start in starts_from.items() if start == "reset")
    return Evidence(ordered, feedback, calls, values_of(calls.filter("acts")), asked, reset)


def votes(rows: pl.DataFrame, vote: float | pl.Expr, says: str | pl.Expr, evidence: pl.Expr) -> pl.DataFrame:
    """Rows as `VOTES`; `evidence` gives a list of event ids."""
    value = pl.lit(vote, dtype=pl.Float64) if isinstance(vote, int | float) else vote
    text = pl.lit(says) if isinstance(says, str) else says
    return (
        rows.select("session_id", value.cast(pl.Float64).alias("vote"), text.alias("says"), evidence.alias("evidence"))
        .cast(pl.Schema(VOTES))
        .sort("session_id")
    )
