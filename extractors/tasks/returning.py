"""Goals that go on in a later session: the same kind of thing, about the same things, within some days.

Sees: names of things in a goal's slots (ids, mail addresses), and the log's clock. Does not see: a goal that names nothing, and
a thing that is wanted again for a new reason.
"""

from __future__ import annotations

import json

import polars as pl

from extractors.tasks.words import is_identifier

DAYS = 7
"""Between the beginnings of the two sessions at most."""

_NAMED = pl.Schema({"goal_id": pl.String(), "session_id": pl.String(), "service": pl.String(), "kind": pl.String(),
                    "name": pl.List(pl.String())})


def continued(goals: pl.DataFrame, sessions: pl.DataFrame) -> pl.DataFrame:
    """Columns goal_id, continues (goal_id of the goal before it that it goes on with), by goal_id.

    `goals`: goal_id, session_id, service, kind, slots. `sessions`: session_id, started_at. Goals without a clock continue none.
    """
    rows = [(*ids, [name for value in json.loads(slots).values() for name in (value if isinstance(value, list) else [value])])
            for *ids, slots in goals.select("goal_id", "session_id", "service", "kind", "slots").iter_rows()]
    named = pl.DataFrame(rows, schema=_NAMED, orient="row").explode("name").filter(is_identifier(pl.col("name")))
    about = named.group_by("goal_id", "session_id", "service", "kind").agg(
        pl.col("name").unique().sort().str.join(" ").alias("names"))
    placed = about.join(sessions.select("session_id", "started_at").drop_nulls(), on="session_id").sort(
        "service", "kind", "names", "started_at", "goal_id")
    before = pl.all().shift(1).over("service", "kind", "names").name.suffix("_before")
    soon = pl.col("started_at") - pl.col("started_at_before") <= pl.duration(days=DAYS)
    later = placed.with_columns(before).filter((pl.col("session_id") != pl.col("session_id_before")) & soon)
    return later.select("goal_id", pl.col("goal_id_before").alias("continues")).sort("goal_id")
