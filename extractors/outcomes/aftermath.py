"""What came after a session: the same thing asked for again.

Sees: goals that go on with an earlier session's (`tasks.returning`). Does not see: somebody who gave up; a thing that is asked
for again for a new reason, which is why its sign is estimated.
"""

from __future__ import annotations

import polars as pl

from extractors.outcomes.evidence import Evidence, votes


def asked_again(seen: Evidence) -> pl.DataFrame:
    """-1 where a later session goes on with one of its goals."""
    later = seen.goals.drop_nulls("continues").select(
        pl.col("session_id").alias("later"), "goal", pl.col("continues").alias("goal_id"))
    came = seen.goals.select("goal_id", "session_id").join(later, on="goal_id").sort("session_id", "later", "goal_id")
    first = came.group_by("session_id", maintain_order=True).first()
    turns = seen.turns.group_by("session_id", maintain_order=True).agg(pl.col("turn_id").head(1))
    says = pl.format("asked for again in session {}: {}", "later", "goal")
    return votes(first.join(turns, on="session_id"), -1.0, says, pl.col("turn_id"))
