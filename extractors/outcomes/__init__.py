"""Outcomes: how well each session went, as a probability with its reasons, or an honest abstention.

In: sessions, turns, feedback, and what tools do. Out: a frame of `Outcome`, one row a session, and verdicts. Signals
are small functions that vote on a session or abstain (`SIGNALS`); `combining` makes a probability of the votes. Each
module says what it sees and does not see. That something was written at all has no sign, and is no signal.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import polars as pl

from extractors.outcomes.asked_done import missing_or_extra, said_otherwise, untraced
from extractors.outcomes.combining import Combined, combine
from extractors.outcomes.consensus import end_state
from extractors.outcomes.endings import complaint, error_last, handover, repeats, thanks, unanswered
from extractors.outcomes.evidence import VOTES, Evidence, gather
from extractors.outcomes.feedback import from_feedback
from warehouse.records import Outcome, Verdict, empty, frame, frame_schema

MINIMUM = 50
"""Rated sessions from which on weights are learnt from the ratings."""

SIGNALS: dict[str, Callable[[Evidence], pl.DataFrame]] = {
    "complaint": complaint,
    "end_state": end_state,
    "error_last": error_last,
    "feedback": from_feedback,
    "handover": handover,
    "missing_or_extra": missing_or_extra,
    "repeats": repeats,
    "said_otherwise": said_otherwise,
    "thanks": thanks,
    "unanswered": unanswered,
    "untraced": untraced,
}
"""Name -> signal: evidence in, a frame of `evidence.VOTES` out."""

_NO_EFFECTS = {"service": pl.String(), "tool": pl.String(), "effect": pl.String()}


class Outcomes(NamedTuple):
    """What `judge` gives."""

    outcomes: pl.DataFrame
    """Frame of `Outcome`, by session_id, one row a session."""
    verdicts: pl.DataFrame
    """Frame of `Verdict`, stage `outcomes`: sessions without a probability."""


def judge(
    sessions: pl.DataFrame,
    turns: pl.DataFrame,
    feedback: pl.DataFrame,
    effects: pl.DataFrame | None = None,
    starts_from: Mapping[str, str] | None = None,
    minimum: int = MINIMUM,
    reviews: Iterable[str] = (),
) -> Outcomes:
    """Judge every session. One with turns and no vote has the base rate; one without turns has None and a verdict.

    `effects`: frame of service, tool, effect; without it nothing is known to write, and signals about writes abstain.
    `starts_from`: service -> `reset` or `shared`; only sessions of a `reset` service are compared by their end state
    (of all services where it is None).
    """
    if sessions.is_empty():
        return Outcomes(empty(Outcome), empty(Verdict))
    known = pl.DataFrame(schema=_NO_EFFECTS) if effects is None else effects
    seen = gather(sessions, turns, feedback, known, starts_from or {})
    votes = pl.concat(
        [pl.DataFrame(schema={"name": pl.String(), **VOTES})]
        + [signal(seen).select(pl.lit(name).alias("name"), *VOTES) for name, signal in sorted(SIGNALS.items())]
    ).join(sessions.select("session_id"), on="session_id", how="semi")
    outcomes = _outcomes(sessions, turns, votes, combine(votes, minimum))
    return Outcomes(outcomes, _left(outcomes.filter(pl.col("probability").is_null())))


def _outcomes(sessions: pl.DataFrame, turns: pl.DataFrame, votes: pl.DataFrame, combined: Combined) -> pl.DataFrame:
    listed = (
        votes.sort("session_id", "name")
        .group_by("session_id", maintain_order=True)
        .agg(pl.struct("name", "vote", "says", "evidence").alias("signals"))
        .with_columns(pl.col("signals").map_elements(_json, return_dtype=pl.String))
    )
    something = sessions.select("session_id").join(turns.select("session_id").unique(), on="session_id", how="semi")
    rated = pl.concat([something, votes.select("session_id")]).unique().with_columns(pl.lit(True).alias("judged"))
    return (
        sessions.select("session_id")
        .join(combined.probabilities, on="session_id", how="left")
        .join(listed, on="session_id", how="left")
        .join(rated, on="session_id", how="left")
        .with_columns(
            pl.when(pl.col("judged")).then(pl.col("probability").fill_null(combined.silent)).alias("probability"),
            pl.col("signals").fill_null("[]"),
        )
        .select(list(frame_schema(Outcome)))
        .cast(pl.Schema(frame_schema(Outcome)))
        .sort("session_id")
    )


def _json(signals: Iterable[dict[str, Any]]) -> str:
    return json.dumps(list(signals), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _left(rows: pl.DataFrame) -> pl.DataFrame:
    return frame(
        Verdict,
        [
            Verdict(
                stage="outcomes",
                subject=session_id,
                kept=False,
                reason="nothing_to_judge",
                detail=f"session {session_id} has no turns and no feedback; look for the log that holds them",
            )
            for session_id in rows["session_id"].to_list()
        ],
    )
