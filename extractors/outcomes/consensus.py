"""The end state that sessions of the same request share.

Sees: services whose sessions all start from the same state, sessions that ask for the same thing there, and what each
wrote (tool and arguments; without texts for people, and without arguments that hardly two sessions of a request share,
where there are enough to tell). Does not see: the right end state: where most do the same wrong thing, the vote is
wrong too. It abstains on a request that only one session makes.
"""

from __future__ import annotations

import polars as pl

from extractors.outcomes.evidence import VOTES, Evidence, votes
from extractors.tasks.instances import same_request

_PROSE = r"\s\S+\s\S+\s"
"""A value of four words or more is a text for people: two people never write the same."""

_STABLE = 0.4
"""Chance that two sessions of a request give an argument the same value, below which it is left out of the end
state."""

_ENOUGH = 8
"""Sessions of a request that it takes to estimate that chance; with fewer all arguments count."""


def end_state(seen: Evidence) -> pl.DataFrame:
    """Share of the other sessions that ended in the same state, shrunk: (n_same + .5) / (n_others + 1), as -1..1."""
    asked = seen.asked.filter(pl.col("service").is_in(seen.reset))
    if asked.is_empty():
        return pl.DataFrame(schema=VOTES)
    requests = same_request(asked)
    states = requests.join(_states(seen, requests), on="session_id", how="left").with_columns(pl.col("state").fill_null(""))
    rows = states.with_columns(
        (pl.len().over("request", "state") - 1).alias("n_same"),
        (pl.len().over("request") - 1).alias("n_others"),
    ).filter(pl.col("n_others") > 0)
    share = (pl.col("n_same") + 0.5) / (pl.col("n_others") + 1.0)
    says = pl.format("{} of {} other sessions of this request end in the same state", "n_same", "n_others")
    none = pl.col("turn_id").fill_null(pl.lit([], dtype=pl.List(pl.String)))
    return votes(rows, (2.0 * share - 1.0).round(6), says, none)


def _states(seen: Evidence, requests: pl.DataFrame) -> pl.DataFrame:
    """Columns session_id, state (all writes), turn_id (list)."""
    written = seen.calls.filter(pl.col("acts") & ~pl.col("failed")).select("session_id", "turn_id", "tool")
    items = _without_unstable(written.join(_plain(seen.values), on="turn_id").join(requests, on="session_id"))
    acts = (
        written.join(items.select("turn_id", "item"), on="turn_id", how="left")
        .group_by("session_id", "turn_id", "tool")
        .agg(pl.col("item").drop_nulls().sort().str.join("\n"))
        .with_columns((pl.col("tool") + "\n" + pl.col("item")).alias("act"))
    )
    return (
        acts.sort("session_id", "act", "turn_id")
        .group_by("session_id", maintain_order=True)
        .agg(pl.col("act").str.join("\u001e").alias("state"), "turn_id")
    )


def _plain(values: pl.DataFrame) -> pl.DataFrame:
    """Values as items `path=value`: lower-cased, numbers in one form, texts for people as one mark."""
    value = pl.col("value").str.strip_chars().str.to_lowercase()
    number = value.cast(pl.Float64, strict=False)
    plain = (
        pl.when(value.str.contains(_PROSE))
        .then(pl.lit("…"))
        .when(number.is_not_null())
        .then(number.cast(pl.String))
        .otherwise(value)
    )
    return values.select("turn_id", "path", (pl.col("path") + "=" + plain).alias("item"))


def _without_unstable(items: pl.DataFrame) -> pl.DataFrame:
    place = ["request", "tool", "path"]
    given = items.select(*place, "item", "session_id").unique()
    n_sessions = given.group_by(place).agg(pl.col("session_id").n_unique().cast(pl.Int64).alias("n_sessions"))
    n_equal = (pl.col("n") * (pl.col("n") - 1)).sum().alias("n_equal")
    counted = given.group_by(*place, "item").agg(pl.len().cast(pl.Int64).alias("n"))
    chance = counted.group_by(place).agg(pl.col("n").sum().alias("n_given"), n_equal).join(n_sessions, on=place)
    likely = pl.col("n_equal") >= _STABLE * pl.col("n_given") * (pl.col("n_sessions") - 1)
    return items.join(chance.filter((pl.col("n_sessions") >= _ENOUGH) & ~likely), on=place, how="anti")
