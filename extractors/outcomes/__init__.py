"""Outcomes: how well each session went, as a probability with its reasons, or an honest abstention.

In: sessions, turns, feedback, and what tools do. Out: a frame of `Outcome`, one row a session, and decisions. Signals
are small functions that vote on a session or abstain (`signals`); `combining` makes a probability of the votes, `manner` looks
for words and amounts that go with it. Each module says what it sees and does not see. That something was written at all has no
sign of its own."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Set
from dataclasses import replace
from typing import NamedTuple

import polars as pl

from extractors.outcomes.calibration import calibrated, interval, nearly_sure
from extractors.outcomes.code import VERDICT, CodeOutcomes, verdicts_of_code
from extractors.outcomes.combining import Combined, combine
from extractors.outcomes.condition_rows import condition_rows
from extractors.outcomes.evidence import VOTES, Evidence, gather
from extractors.outcomes.feedback import CORRECTION, REVIEW, from_feedback, going, verdicts_of, words_of
from extractors.outcomes.manner import amount, excess, manner
from extractors.outcomes.signals import Signal, registered
from warehouse.records import (
    ConditionRow,
    Correction,
    Decision,
    Memoize,
    Outcome,
    Review,
    SignalWorth,
    empty,
    frame,
    frame_schema,
    recompute,
)

NO_CODE = CodeOutcomes()
_NO_EFFECTS = {"service": pl.String(), "tool": pl.String(), "effect": pl.String()}
RULED_OUT = 0.02
"""Most that the probability of a session is which a decisive signal speaks against, before reviews calibrate it."""
_JUDGED = ("probability", "low", "high", "blind")
"""What an abstention leaves out."""
_WEAK = ("unaccounted",)
"""Signals that give no probability by themselves."""
_LEARNT = {"amount": amount, "excess": excess, "manner": manner}
"""Signals that look at the others' probabilities, and so come after them."""


class Outcomes(NamedTuple):
    """What `judge` gives."""

    outcomes: pl.DataFrame
    """Frame of `Outcome`, by session_id, one row a session."""
    decisions: pl.DataFrame
    """Frame of `Decision`, stage `outcomes`: sessions without a probability."""
    worth: pl.DataFrame
    """Frame of `SignalWorth`, by service, signal and side: what the votes for and against were found to be worth."""
    conditions: pl.DataFrame
    """Frame of `ConditionRow`: on what agents decline, and what the instructions state."""


def judge(sessions: pl.DataFrame, turns: pl.DataFrame, feedback: pl.DataFrame, effects: pl.DataFrame | None = None,
          starts_from: Mapping[str, str] | None = None, reviews: Iterable[str] = (), goals: pl.DataFrame | None = None,
          row_changes: pl.DataFrame | None = None, corrections: pl.DataFrame | None = None,
          reviewed_sessions: pl.DataFrame | None = None, code: CodeOutcomes = NO_CODE,
          memoize: Memoize = recompute) -> Outcomes:
    """Judge every session. One that no signal speaks of, learnt ones aside, has no probability but a decision that says why.

    `effects`: frame of service, tool, effect; without it nothing is known to write, and signals about writes abstain.
    `starts_from`: service -> `reset` or `shared`; only sessions of a `reset` service are compared by their end state.
    `goals`: frame of `Goal`; without it, what was asked is not held against what was done. `row_changes`: frame of `RowChange`.
    `reviews`: names of feedback in which people who looked at a session say how it went; it counts as known.
    `reviewed_sessions`: frame of `Review`; those on which reviewers agree are known, and a calibration, like `reviews`.
    `code`: what is known of sessions of coding; those of which the verifier has a verdict are known.
    `corrections`: frame of `Correction` of outcomes, one a session, each over all else that is said of the session."""
    if sessions.is_empty():
        return Outcomes(empty(Outcome), empty(Decision), empty(SignalWorth), empty(ConditionRow))
    doing = pl.DataFrame(schema=_NO_EFFECTS) if effects is None else effects
    reviewing = pl.col("name").is_in(sorted(reviews))
    evidence = gather(sessions, turns, feedback.filter(~reviewing), doing, starts_from or {}, goals, row_changes, memoize)
    evidence = replace(evidence, code_changes=code.changes.join(sessions.select("session_id"), on="session_id", how="semi"))
    reviewed = going(from_feedback(replace(evidence, feedback=feedback.filter(reviewing))).filter(pl.col("vote") != 0))
    settled = verdicts_of(empty(Review) if reviewed_sessions is None else reviewed_sessions, sessions)
    reviewed |= going(settled)
    corrected = words_of(empty(Correction) if corrections is None else corrections, sessions)
    verified = verdicts_of_code(code.verdicts, sessions)
    known_outcomes = reviewed | going(verified) | going(corrected)
    signals = registered()
    votes = pl.concat([_named(name, signal.see(evidence)) for name, signal in signals.items()])
    votes = votes.join(sessions.select("session_id"), on="session_id", how="semi")
    services = _services(sessions, turns, votes, evidence)
    spoken_of = votes.filter((pl.col("vote") != 0) & ~pl.col("name").is_in(_WEAK))["session_id"].to_list()
    first = combine(votes, services, signals, known_outcomes)
    votes = pl.concat([votes, *(_named(name, learn(evidence, first.probabilities)) for name, learn in _LEARNT.items())])
    later = {name: Signal(name, lambda evidence: pl.DataFrame(schema=VOTES), name, graded=True) for name in _LEARNT}
    combined = combine(votes, services, {**signals, **later}, known_outcomes)
    decisive = [name for name, signal in signals.items() if signal.decisive]
    ruled_out = set(votes.filter(pl.col("name").is_in(decisive) & (pl.col("vote") < 0))["session_id"])
    verdicts = {name: is_solved and name not in ruled_out for name, is_solved in going(verified).items()}
    published = _published(_without(combined, ruled_out), reviewed, verdicts | going(corrected))
    judged = pl.when(pl.col("session_id").is_in({*spoken_of, *known_outcomes})).then(pl.col(_JUDGED)).name.keep()
    certain = _named(CORRECTION, corrected), _named(REVIEW, settled), _named(VERDICT, verified)
    outcomes = _outcomes(sessions, pl.concat([votes, *certain]), published.with_columns(judged))
    unjudged = outcomes.filter(pl.col("probability").is_null())["session_id"].to_list()
    nothing = "session {} has no turns and no feedback; look for the log that holds them"
    silent = "no signal speaks of session {}, so its success is not guessed; rate or review some sessions of its service"
    abstained = frame(Decision, [
        Decision(stage="outcomes", subject=session, kept=False, reason=reason, detail=detail.format(session))
        for session in unjudged
        for reason, detail in [("no_signal", silent) if session in services else ("nothing_to_judge", nothing)]])
    n_sessions = Counter(services.values())
    worth = frame(SignalWorth, [SignalWorth(
        service=each.service, signal=each.group, side="for" if each.side > 0 else "against", n_votes=each.n_votes,
        coverage=round(each.n_votes / n_sessions[each.service], 6), agreement=each.agreement, log_odds=each.log_odds)
        for each in sorted(combined.worth)])
    return Outcomes(outcomes, abstained, worth, condition_rows(evidence))


def _without(combined: Combined, ruled_out: Set[str]) -> Combined:
    """Lower the probabilities of the sessions that a decisive signal speaks against."""
    lowered = [pl.when(pl.col("session_id").is_in(sorted(ruled_out))).then(pl.min_horizontal(name, pl.lit(RULED_OUT)))
               .otherwise(name).alias(name) for name in ("probability", "blind")]
    return combined._replace(probabilities=combined.probabilities.with_columns(lowered))


def _named(name: str, votes: pl.DataFrame) -> pl.DataFrame:
    return votes.select(pl.lit(name).alias("name"), *VOTES)


def _services(sessions: pl.DataFrame, turns: pl.DataFrame, votes: pl.DataFrame, evidence: Evidence) -> dict[str, str]:
    """Kind of service of every session that there is something to judge of; those without anybody's words are a kind apart."""
    something = pl.concat([turns.select("session_id"), votes.select("session_id")]).unique()
    silent = pl.when("worded").then(pl.lit("")).otherwise(pl.lit(" without words"))
    kinds = evidence.session_requests.select("session_id", (pl.col("service") + silent).alias("kind"))
    judged = sessions.join(something, on="session_id", how="semi").join(kinds, on="session_id", how="left")
    return dict(judged.select("session_id", pl.coalesce("kind", "service")).sort("session_id").iter_rows())


def _published(combined: Combined, reviews: Mapping[str, bool], corrected: Mapping[str, bool]) -> pl.DataFrame:
    """Add intervals and a hash of the model to the probabilities, calibrated by reviews. `corrected`: by persons, or by the
    verifier of code; these do not calibrate: persons correct where something is wrong, and only changes with tests are
    verified, so they are no fair sample."""
    raw = dict(combined.probabilities.select("session_id", "probability").iter_rows())
    uncorrected = {name: good for name, good in reviews.items() if name not in corrected}
    reviewed_chances = sorted(raw[name] for name in uncorrected if name in raw)
    chances = calibrated(raw, uncorrected) | nearly_sure(raw, corrected)
    spread = [interval(chances[name], reviewed_chances) for name in raw]
    made_with = [[list(each) for each in combined.worth], sorted({**reviews, **corrected}.items())]
    version = hashlib.sha256(json.dumps(made_with, separators=(",", ":")).encode()).hexdigest()[:16]
    return combined.probabilities.with_columns(
        pl.Series("probability", [chances[name] for name in raw], pl.Float64),
        pl.Series("low", [low for low, _ in spread], pl.Float64), pl.Series("high", [high for _, high in spread], pl.Float64),
        pl.lit(version).alias("model"))


def _outcomes(sessions: pl.DataFrame, votes: pl.DataFrame, published: pl.DataFrame) -> pl.DataFrame:
    listed = (
        votes.sort("session_id", "name").group_by("session_id", maintain_order=True)
        .agg(pl.struct("name", "vote", "description", "evidence").alias("signals"))
        .with_columns(pl.col("signals").map_elements(
            lambda signals: json.dumps(list(signals), sort_keys=True, separators=(",", ":"), ensure_ascii=False),
            return_dtype=pl.String)))
    return (
        sessions.select("session_id").join(published, on="session_id", how="left").join(listed, on="session_id", how="left")
        .with_columns(pl.col("signals").fill_null("[]"), pl.col("model").fill_null(""), pl.col("is_contested").fill_null(False))
        .select(list(frame_schema(Outcome))).cast(pl.Schema(frame_schema(Outcome))).sort("session_id"))
