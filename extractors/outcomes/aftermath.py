"""What came after a session: the same thing asked for again.

Sees: goals of one kind with the same names of things in them (ids, mail addresses), in sessions of one service, within some
days. Does not see: somebody who gave up; a thing that is asked for again for a new reason, which is why its sign is estimated.
"""

from __future__ import annotations

import json

import polars as pl

from extractors.outcomes.evidence import Evidence, votes
from extractors.tasks.words import is_identifier

DAYS = 7
"""Within so many days a second session about the same thing counts as coming back to the first."""

_NAMED = pl.Schema({"session_id": pl.String(), "service": pl.String(), "kind": pl.String(), "name": pl.List(pl.String())})


def asked_again(seen: Evidence) -> pl.DataFrame:
    """-1 where a later session asks for the same kind of thing with the same names in it; in services that share one world."""
    rows = [(session, service, kind, [name for value in json.loads(slots).values()
                                      for name in (value if isinstance(value, list) else [value])])
            for session, service, kind, slots in seen.goals.select("session_id", "service", "kind", "slots").iter_rows()]
    named = pl.DataFrame(rows, schema=_NAMED, orient="row").explode("name").filter(is_identifier(pl.col("name")))
    key = ["service", "kind", "names"]
    goals = named.group_by("session_id", "service", "kind").agg(pl.col("name").unique().sort().str.join(" ").alias("names"))
    about = goals.join(
        seen.requests, on="session_id", how="anti").join(
        seen.asked.select("session_id", "started_at").drop_nulls(), on="session_id")
    both = about.join(about, on=key, suffix="_later").filter(
        (pl.col("started_at") < pl.col("started_at_later"))
        & (pl.col("started_at_later") - pl.col("started_at") <= pl.duration(days=DAYS)))
    first = both.sort("session_id", "started_at_later", "session_id_later", "names").group_by(
        "session_id", maintain_order=True).first()
    turns = seen.turns.group_by("session_id", maintain_order=True).agg(pl.col("turn_id").head(1))
    says = pl.format("asked for again in session {}: {}", "session_id_later", "names")
    return votes(first.join(turns, on="session_id"), -1.0, says, pl.col("turn_id"))
