"""What tests and builds said last, what the agent says it did though nothing acted, and sessions in which nothing was called.

Sees: summaries of test runners and builds and exit codes in answers of tools; English claims in the first person or the
passive; whether any call came back with success. Does not see: tests that check nothing, claims in other words, and the
request that words alone answer.
"""

from __future__ import annotations

import math

import polars as pl

from extractors.outcomes.evidence import Evidence, votes

_FAILED = (
    r"(?im)\b[1-9]\d* (?:tests? )?(?:failed|failing)\b|\btest result: FAILED\b|\bBUILD FAILED\b|"
    r"\bexit(?:ed with)?(?: code| status)[: ]+[1-9]\d*\b"
)
_PASSED = (
    r"(?im)\b[1-9]\d* (?:tests? )?pass(?:ed|ing)\b|\btest result: ok\b|\bBUILD SUCCESS(?:FUL)?\b|\ball (?:tests|checks) pass"
)
_CLAIM = (
    r"(?i)\b(?:I(?:'ve| have)(?: now| just| successfully| already)? \w+ed|"
    r"(?:has|have) (?:now |just |successfully |already )?been \w+ed)\b"
)
_NO_CLAIM = r"(?i)\b(?:has|have)(?: not|n't) been\b|\b(?:received|reviewed|checked|confirmed|looked|located|noted|verified)\b"

_CALLING = 0.8
"""Share of a service's sessions with a call that worked, from which on a session without one is taken for not served."""

_UNSERVED = -1.0
"""Log odds of a session that was not served."""


def unserved(seen: Evidence) -> pl.DataFrame:
    """A probability below one half, as -1..1, where no call worked, in a service that works with calls."""
    works = seen.calls.filter(~pl.col("failed")).select("session_id", pl.lit(True).alias("called")).unique()
    of = seen.asked.select("session_id", "service").join(works, on="session_id", how="left").with_columns(
        pl.col("called").fill_null(False))
    rows = of.filter(~pl.col("called") & (pl.col("called").mean().over("service") >= _CALLING))
    turns = seen.turns.group_by("session_id", maintain_order=True).agg(pl.col("turn_id").last())
    vote = round(2.0 / (1.0 + math.exp(-_UNSERVED)) - 1.0, 6)
    return votes(rows.join(turns, on="session_id"), vote, "nothing was looked up or done", pl.concat_list("turn_id"))


def tests(seen: Evidence) -> pl.DataFrame:
    """1 where the last run of tests or of a build passed, -1 where it failed."""
    failed, passed = pl.col("content").str.contains(_FAILED), pl.col("content").str.contains(_PASSED)
    run = (pl.col("kind") == "call") & (failed | passed)
    ran = seen.turns.filter(run).group_by("session_id", maintain_order=True).last()
    says = pl.when(failed).then(pl.lit("the last tests failed")).otherwise(pl.lit("the last tests passed"))
    return votes(ran, pl.when(failed).then(-1.0).otherwise(1.0), says, pl.concat_list("turn_id"))


def claimed(seen: Evidence) -> pl.DataFrame:
    """-1 where the agent's last words say that something was done, and nothing that acts was called with success."""
    if not seen.calls["acts"].any():
        return votes(seen.asked.clear(), -1.0, "", pl.concat_list("session_id"))
    acted = seen.calls.filter(pl.col("acts") & ~pl.col("failed"))
    message = (pl.col("kind") == "message") & (pl.col("role") == "assistant")
    claims = pl.col("content").str.contains(_CLAIM) & ~pl.col("content").str.contains(_NO_CLAIM)
    last = seen.turns.filter(message & claims).join(acted, on="session_id", how="anti").group_by(
        "session_id", maintain_order=True).last()
    return votes(last, -1.0, "says that it was done, and nothing was", pl.concat_list("turn_id"))
