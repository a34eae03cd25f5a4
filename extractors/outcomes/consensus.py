"""Compare the end states of sessions of one request: which is right, and how much of the others' writes a session has.

In a service whose sessions start from the same state, a request has one right end state (a set of writes, maybe empty). A right
session ends in it, a wrong one in one of a few others, often without a write. Which state is right is summed out (a latent
truth, as in Zhao and others 2012, over states), and so is the rate of right sessions, drawn from a Beta distribution:

    P(states | right = z) = integral of rate^n(z) (1 - rate)^(n - n(z)) dBeta(rate), times P(state | wrong) of each other

Its constants are fixed: estimated without labels they degenerate to "all is wrong". Sees tools and arguments of successful
writes, without texts for people and arguments that sessions of a request hardly share. Does not see an answer without
writes, or a mistake that most sessions make. Abstains on requests of one session and on sessions where no call worked."""

from __future__ import annotations

import math

import polars as pl

from extractors.outcomes.endings import unserved
from extractors.outcomes.evidence import VOTES, Evidence, votes

RIGHT, WRONG = 1.0, 1.0
"""Beta distribution of the rates at which requests are done right."""
_IDLE_WRONG = 0.3
"""Chance that a session which is wrong has written nothing."""
_IDLE_RIGHT = 0.4
"""Chance that nothing is to be written."""
_OTHERS = 8.0
"""End states that a wrong session is taken to choose among, and requests among those never seen."""
_TEMPER = 0.35
"""What is left of the log odds: sessions of a request are not independent (the same model errs the same way again)."""
_PROSE = r"\s\S+\s\S+\s"
"""A value of four words or more is a text for people: two people never write the same."""
_STABLE = 0.4
"""Chance that two sessions of a request give an argument the same value, below which end states leave it out."""
_ENOUGH = 8
"""Sessions of a request to estimate that chance; with fewer all arguments count, and partial agreement does not."""
_IN_PART = 2.0
"""Log odds between a session that wrote all that the others wrote, and one that wrote nothing of it."""


def end_state(evidence: Evidence) -> pl.DataFrame:
    """How likely the session's end state is the right one, as -1..1, given those of the other sessions of its request."""
    requests = evidence.requests.join(unserved(evidence), on="session_id", how="anti")
    if requests.is_empty():
        return pl.DataFrame(schema=VOTES)
    items = _items(evidence, requests).select("turn_id", "item")
    ends = (
        evidence.everyones_writes.join(items, on="turn_id", how="left").group_by("session_id", "turn_id", "tool")
        .agg(pl.col("item").drop_nulls().sort().str.join("\n"))
        .with_columns((pl.col("tool") + "\n" + pl.col("item")).alias("call")).sort("session_id", "call", "turn_id")
        .group_by("session_id", maintain_order=True).agg(pl.col("call").str.join("\u001e").alias("state"), "turn_id"))
    states = requests.join(ends, on="session_id", how="left").with_columns(pl.col("state").fill_null(""))
    counted = (
        states.group_by("request", "state").agg(pl.len().alias("n_same")).sort("request", "state")
        .group_by("request", maintain_order=True).agg("state", "n_same", pl.col("n_same").sum().alias("n"))
        .filter(pl.col("n") > 1))
    chances = [
        (request, state, n - 1, n_same - 1, chance)
        for request, end_states, counts, n in counted.iter_rows()
        for state, n_same, chance in zip(end_states, counts, right(dict(zip(end_states, counts, strict=True))), strict=True)]
    schema = {"request": pl.String, "state": pl.String, "n_others": pl.Int64, "n_same": pl.Int64, "chance": pl.Float64}
    rows = states.join(pl.DataFrame(chances, schema=schema, orient="row"), on=["request", "state"])
    description = pl.format("{} of {} other sessions of this request end in the same state", "n_same", "n_others")
    none = pl.col("turn_id").fill_null(pl.lit([], dtype=pl.List(pl.String)))
    return votes(rows, (2.0 * pl.col("chance") - 1.0).round(6), description, none)


def right(counts: dict[str, int]) -> list[float]:
    """Chance of each end state ("" is nothing written) to be the right one, tempered; `counts`: sessions by end state."""
    n = sum(counts.values())
    n_seen = sum(state != "" for state in counts)
    weight = {}
    for state, n_same in counts.items():
        is_right = _IDLE_RIGHT if state == "" else (1.0 - _IDLE_RIGHT) / (_OTHERS + n_seen)
        is_wrong = _IDLE_WRONG if state == "" else (1.0 - _IDLE_WRONG) / _OTHERS
        weight[state] = math.log(is_right) + _likelihood(n_same, n) - n_same * math.log(is_wrong)
    unseen = (1.0 - _IDLE_RIGHT) * _OTHERS / (_OTHERS + n_seen) + (0.0 if "" in counts else _IDLE_RIGHT)
    none = math.log(unseen) + _likelihood(0, n)
    top = max(*weight.values(), none)
    total = sum(math.exp(each - top) for each in weight.values()) + math.exp(none - top)
    chances = [min(max(math.exp(weight[state] - top) / total, 0.003), 0.997) for state in counts]
    return [1.0 / (1.0 + ((1.0 - chance) / chance) ** _TEMPER) for chance in chances]


def _likelihood(n_right: int, n: int) -> float:
    """Log of the integral of rate^n_right (1 - rate)^(n - n_right) over the Beta distribution of rates."""
    good, bad = RIGHT + n_right, WRONG + n - n_right
    return math.lgamma(good) + math.lgamma(bad) - math.lgamma(good + bad)


def in_part(evidence: Evidence) -> pl.DataFrame:
    """Share of what the other sessions of the request wrote that the session wrote too, as a probability in -1..1."""
    counted = evidence.requests.with_columns(pl.len().over("request").alias("n")).filter(pl.col("n") >= _ENOUGH)
    if counted.is_empty():
        return pl.DataFrame(schema=VOTES)
    items = _items(evidence, evidence.requests).select("session_id", (pl.col("tool") + "\n" + pl.col("item")).alias("item"))
    parts = pl.concat([items, evidence.everyones_writes.select("session_id", pl.col("tool").alias("item"))])
    parts = parts.with_columns(pl.int_range(pl.len()).over("session_id", "item").alias("again"))
    parts = parts.join(counted, on="session_id").with_columns((pl.len().over("request", "item", "again") - 1).alias("n_same"))
    own = parts.group_by("session_id").agg(pl.col("n_same").sum(), pl.len().alias("n_own"))
    everything = parts.group_by("request").agg(pl.len().alias("n_all"))
    rows = (
        counted.join(everything, on="request").join(own, on="session_id", how="left")
        .with_columns(pl.col("n_same", "n_own").fill_null(0)).filter(pl.col("n_all") > pl.col("n_own")))
    share = pl.col("n_same") / (pl.col("n_all") - pl.col("n_own"))
    chance = 1.0 / (1.0 + (-_IN_PART * (share - 0.5)).exp())
    description = pl.format("wrote {} % of what the other sessions of this request wrote", (100 * share).round().cast(pl.Int64))
    return votes(rows, (2.0 * chance - 1.0).round(6), description, pl.lit([], pl.List(pl.String)))


def _items(evidence: Evidence, requests: pl.DataFrame) -> pl.DataFrame:
    """List what writes were given: session_id, turn_id, tool, path, item (`path=value`, lower-cased, numbers in one form, texts
    for people as one mark), request; without arguments that hardly two sessions of a request share."""
    value = pl.col("value").str.strip_chars().str.to_lowercase()
    number = value.cast(pl.Float64, strict=False)
    plain = (
        pl.when(value.str.contains(_PROSE)).then(pl.lit("…")).when(number.is_not_null()).then(number.cast(pl.String))
        .otherwise(value))
    values = evidence.values.select("turn_id", "path", (pl.col("path") + "=" + plain).alias("item"))
    written = evidence.everyones_writes.select("session_id", "turn_id", "tool")
    items = written.join(values, on="turn_id").join(requests, on="session_id")
    place = ["request", "tool", "path"]
    given = items.select(*place, "item", "session_id").unique()
    n_sessions = given.group_by(place).agg(pl.col("session_id").n_unique().cast(pl.Int64).alias("n_sessions"))
    n_equal = (pl.col("n") * (pl.col("n") - 1)).sum().alias("n_equal")
    counted = given.group_by(*place, "item").agg(pl.len().cast(pl.Int64).alias("n"))
    chance = counted.group_by(place).agg(pl.col("n").sum().alias("n_given"), n_equal).join(n_sessions, on=place)
    likely = pl.col("n_equal") >= _STABLE * pl.col("n_given") * (pl.col("n_sessions") - 1)
    return items.join(chance.filter((pl.col("n_sessions") >= _ENOUGH) & ~likely), on=place, how="anti")
