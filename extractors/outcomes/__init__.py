"""Outcomes: how well each session went, as a probability with its reasons, or an honest abstention.

In: sessions, turns, feedback, and what tools do. Out: a frame of `Outcome`, one row a session, and verdicts. Signals
are small functions that vote on a session or abstain (`signals`); `combining` makes a probability of the votes, `manner` looks
for words and amounts that go with it. Each module says what it sees and does not see. That something was written at all has no
sign of its own.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import polars as pl

from extractors.outcomes.calibration import calibrated, interval, known
from extractors.outcomes.combining import Combined, combine
from extractors.outcomes.corrected import CORRECTION, going, words_of
from extractors.outcomes.evidence import VOTES, Evidence, gather
from extractors.outcomes.feedback import from_feedback
from extractors.outcomes.manner import amount, manner
from extractors.outcomes.signals import Signal, registered
from warehouse.records import Correction, Outcome, SignalWorth, Verdict, empty, frame, frame_schema

_NO_EFFECTS = {"service": pl.String(), "tool": pl.String(), "effect": pl.String()}
_TOLD = ("probability", "low", "high", "blind")
"""What an abstention leaves out."""
_LEARNT = {"amount": amount, "manner": manner}
"""Signals that look at the others' probabilities, and so come after them."""


class Outcomes(NamedTuple):
    """What `judge` gives."""

    outcomes: pl.DataFrame
    """Frame of `Outcome`, by session_id, one row a session."""
    verdicts: pl.DataFrame
    """Frame of `Verdict`, stage `outcomes`: sessions without a probability."""
    worth: pl.DataFrame
    """Frame of `SignalWorth`, by service, signal and side: what the votes for and against were found to be worth."""


def judge(
    sessions: pl.DataFrame,
    turns: pl.DataFrame,
    feedback: pl.DataFrame,
    effects: pl.DataFrame | None = None,
    starts_from: Mapping[str, str] | None = None,
    reviews: Iterable[str] = (),
    goals: pl.DataFrame | None = None,
    row_changes: pl.DataFrame | None = None,
    corrections: pl.DataFrame | None = None,
) -> Outcomes:
    """Judge every session. One that no signal speaks of, learnt ones aside, has no probability but a verdict that says why.

    `effects`: frame of service, tool, effect; without it nothing is known to write, and signals about writes abstain.
    `starts_from`: service -> `reset` or `shared`; only sessions of a `reset` service are compared by their end state.
    `goals`: frame of `Goal`; without it, what was asked is not held against what was done. `row_changes`: frame of `RowChange`.
    `reviews`: names of feedback in which people who looked at a session say how it went; it counts as known.
    `corrections`: frame of `Correction` of outcomes, one a session, each over all else that is said of the session.
    """
    if sessions.is_empty():
        return Outcomes(empty(Outcome), empty(Verdict), empty(SignalWorth))
    doing = pl.DataFrame(schema=_NO_EFFECTS) if effects is None else effects
    reviewing = pl.col("name").is_in(sorted(reviews))
    seen = gather(sessions, turns, feedback.filter(~reviewing), doing, starts_from or {}, goals, row_changes)
    reviewed = _reviewed(seen._replace(feedback=feedback.filter(reviewing)))
    corrected = words_of(empty(Correction) if corrections is None else corrections, sessions)
    found = reviewed | going(corrected)
    signals = registered()
    votes = pl.concat([_named(name, signal.see(seen)) for name, signal in signals.items()])
    votes = votes.join(sessions.select("session_id"), on="session_id", how="semi")
    services = _services(sessions, turns, votes, seen)
    spoken_of = votes.filter(pl.col("vote") != 0)["session_id"].to_list()
    first = combine(votes, services, signals, found)
    votes = pl.concat([votes, *(_named(name, learn(seen, first.probabilities)) for name, learn in _LEARNT.items())])
    later = {name: Signal(name, lambda seen: pl.DataFrame(schema=VOTES), name, graded=True) for name in _LEARNT}
    combined = combine(votes, services, {**signals, **later}, found)
    published = _published(combined, reviewed, going(corrected))
    told = pl.when(pl.col("session_id").is_in({*spoken_of, *found})).then(pl.col(_TOLD)).name.keep()
    outcomes = _outcomes(sessions, pl.concat([votes, _named(CORRECTION, corrected)]), published.with_columns(told))
    left = _left(outcomes.filter(pl.col("probability").is_null())["session_id"].to_list(), services)
    return Outcomes(outcomes, left, _worth(combined, Counter(services.values())))


def _named(name: str, votes: pl.DataFrame) -> pl.DataFrame:
    return votes.select(pl.lit(name).alias("name"), *VOTES)


def _reviewed(seen: Evidence) -> dict[str, bool]:
    rows = from_feedback(seen).filter(pl.col("vote") != 0)
    return dict(rows.select("session_id", pl.col("vote") > 0).iter_rows())


def _services(sessions: pl.DataFrame, turns: pl.DataFrame, votes: pl.DataFrame, seen: Evidence) -> dict[str, str]:
    """Kind of service of every session that there is something to judge of; those without anybody's words are a kind apart."""
    something = pl.concat([turns.select("session_id"), votes.select("session_id")]).unique()
    silent = pl.when("worded").then(pl.lit("")).otherwise(pl.lit(" without words"))
    kinds = seen.asked.select("session_id", (pl.col("service") + silent).alias("kind"))
    judged = sessions.join(something, on="session_id", how="semi").join(kinds, on="session_id", how="left")
    return dict(judged.select("session_id", pl.coalesce("kind", "service")).sort("session_id").iter_rows())


def _published(combined: Combined, reviews: Mapping[str, bool], corrected: Mapping[str, bool]) -> pl.DataFrame:
    """Columns of `Outcome` but the signals: probabilities calibrated where there are reviews, intervals, model. What persons
    corrected is known, and no fair sample to calibrate by: they look where something is wrong."""
    raw = dict(combined.probabilities.select("session_id", "probability").iter_rows())
    uncorrected = {name: good for name, good in reviews.items() if name not in corrected}
    seen = sorted(raw[name] for name in uncorrected if name in raw)
    held = calibrated(raw, uncorrected) | known(raw, corrected)
    spread = [interval(held[name], seen) for name in raw]
    return combined.probabilities.with_columns(
        pl.Series("probability", [held[name] for name in raw], pl.Float64),
        pl.Series("low", [low for low, _ in spread], pl.Float64),
        pl.Series("high", [high for _, high in spread], pl.Float64),
        pl.lit(_version(combined, {**reviews, **corrected})).alias("model"),
    )


def _worth(combined: Combined, n_sessions: Mapping[str, int]) -> pl.DataFrame:
    return frame(SignalWorth, [SignalWorth(
        service=each.service, signal=each.group, side="for" if each.side > 0 else "against", n_votes=each.n_votes,
        coverage=round(each.n_votes / n_sessions[each.service], 6), agreement=each.agreement, log_odds=each.log_odds)
        for each in sorted(combined.worth)])


def _version(combined: Combined, reviews: Mapping[str, bool]) -> str:
    """Hash of what the probabilities were made with: what each vote was found to be worth, and the reviews."""
    text = json.dumps([[list(each) for each in combined.worth], sorted(reviews.items())], separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _outcomes(sessions: pl.DataFrame, votes: pl.DataFrame, published: pl.DataFrame) -> pl.DataFrame:
    listed = (
        votes.sort("session_id", "name")
        .group_by("session_id", maintain_order=True)
        .agg(pl.struct("name", "vote", "says", "evidence").alias("signals"))
        .with_columns(pl.col("signals").map_elements(_json, return_dtype=pl.String))
    )
    return (
        sessions.select("session_id")
        .join(published, on="session_id", how="left")
        .join(listed, on="session_id", how="left")
        .with_columns(pl.col("signals").fill_null("[]"), pl.col("model").fill_null(""))
        .select(list(frame_schema(Outcome)))
        .cast(pl.Schema(frame_schema(Outcome)))
        .sort("session_id")
    )


def _json(signals: Iterable[dict[str, Any]]) -> str:
    return json.dumps(list(signals), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _left(sessions: Iterable[str], services: Mapping[str, str]) -> pl.DataFrame:
    """Verdicts on the sessions that were abstained on."""
    nothing = "session {} has no turns and no feedback; look for the log that holds them"
    silent = "no signal speaks of session {}, so its success is not guessed; rate or review some sessions of its service"
    return frame(Verdict, [
        Verdict(stage="outcomes", subject=session, kept=False, reason=reason, detail=detail.format(session))
        for session in sessions
        for reason, detail in [("no_signal", silent) if session in services else ("nothing_to_judge", nothing)]])
