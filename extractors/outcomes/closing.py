"""What a session is closed with: the state that somebody set for it at its end.

Sees: the last call of a tool that most sessions with words of a person end by, and an argument of it that takes two to five
values. The most frequent value is taken for one side and the others for the other; which side is good, the data tell. Does not
see: states that nobody sets by a call.
"""

from __future__ import annotations

import polars as pl

from extractors.outcomes.evidence import Evidence, votes

_MOST = 0.5
"""Share of a service's sessions with words from which on a tool's last call closes them."""

_VALUES = (2, 5)


def closing(seen: Evidence) -> pl.DataFrame:
    """+1 where a session is closed with the value that most are, -1 where with another."""
    worded = seen.asked.filter("worded").select("session_id", pl.col("service").alias("kind"))
    last = seen.calls.filter(~pl.col("failed")).join(worded, on="session_id").sort("session_id", "position").group_by(
        "session_id", maintain_order=True).last()
    n_worded = worded.group_by("kind").agg(pl.len().alias("n_sessions"))
    by_tool = last.with_columns(pl.len().over("kind", "tool").alias("n")).join(n_worded, on="kind")
    closed = by_tool.filter(pl.col("n") >= _MOST * pl.col("n_sessions")).select("session_id", "kind", "tool", "turn_id")
    place = ("kind", "tool", "path")
    valued = closed.join(seen.values, on="turn_id").filter(pl.col("value").n_unique().over(place).is_between(*_VALUES))
    counts = valued.group_by(*place, "value").len("n").sort(*place, "n", "value", descending=[False] * 3 + [True, False])
    usual = counts.group_by(*place, maintain_order=True).agg(pl.col("value").first().alias("usual"))
    one = valued.join(usual, on=place).sort("session_id", "path").group_by("session_id", maintain_order=True).first()
    vote = pl.when(pl.col("value") == pl.col("usual")).then(1.0).otherwise(-1.0)
    return votes(one, vote, pl.format("closed with {} = {}", "path", "value"), pl.concat_list("turn_id"))
