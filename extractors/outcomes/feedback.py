"""Signals from what people said of a session afterwards: ratings, and corrections by persons.

Sees answers that are good or bad by themselves (up, down, resolved, 4 of 5, 👍), and yes/no answers to a question whose words
tell which answer is good. It abstains on prose and on other questions. Who answers is no fair sample, and answers are sometimes
wrong; the combination of votes accounts for that. A correction counts as known until a later one replaces it."""

from __future__ import annotations

import polars as pl

from extractors.outcomes.evidence import Evidence, votes

_GOOD = (
    "up", "good", "great", "excellent", "positive", "resolved", "solved", "success", "successful", "succeeded", "satisfied",
    "happy", "like", "liked", "helpful", "correct", "pass", "passed", "ok", "okay", "thumbs_up", "👍", "😀", "🙂", "accepted",
    "complete", "completed")
_BAD = (
    "down", "bad", "poor", "terrible", "negative", "unresolved", "unsolved", "failure", "unsuccessful", "failed", "fail",
    "unsatisfied", "dissatisfied", "unhappy", "dislike", "disliked", "unhelpful", "incorrect", "wrong", "thumbs_down", "👎",
    "☹", "🙁", "rejected", "incomplete", "reopened", "escalated")
_YES = ("yes", "y", "true", "t", "1", "1.0")
_NO = ("no", "n", "false", "f", "0", "0.0")
_GOOD_QUESTION = (
    r"\b(?:resolved?|solved?|success\w*|succesful\w*|helpful|helped|satisf\w+|happy|correct\w*|complete\w*|good|like[ds]?|"
    r"pass(?:ed)?|accept\w*|recommend\w*|enjoy\w*)\b")
_BAD_QUESTION = (
    r"\b(?:re-?open\w*|complain\w*|escalat\w*|problem\w*|issues?|errors?|fail\w*|unresolved|wrong|incorrect\w*|refund\w*|"
    r"abandon\w*|churn\w*|dissatisf\w+|unhappy|reject\w*)\b")
_ON_FIVE = r"^[1-5](?:\.0)?(?:\s*/\s*5|\s*stars?)?$"


def from_feedback(evidence: Evidence) -> pl.DataFrame:
    """Mean of the answers of known direction, in -1..1, per session."""
    answers = polarities(evidence.feedback)
    rows = answers.group_by("session_id", maintain_order=True).agg(
        pl.col("polarity").mean().round(6),
        (pl.col("name") + " = " + pl.col("value")).unique(maintain_order=True).sort().str.join(", ").alias("said"),
        pl.col("feedback_id").sort())
    return votes(rows, pl.col("polarity"), pl.lit("feedback: ") + pl.col("said"), pl.col("feedback_id"))


def polarities(feedback: pl.DataFrame) -> pl.DataFrame:
    """Return the answers of known direction, with the column `polarity` in -1..1, by session and id."""
    text = pl.col("value").str.strip_chars().str.to_lowercase()
    question = pl.col("name").str.to_lowercase().str.replace_all(r"[_\-]+", " ")
    scale = text.str.contains(_ON_FIVE) & text.str.contains(_ON_FIVE).all().over("name") & (text.n_unique().over("name") > 2)
    answer = pl.when(text.is_in(_YES)).then(1.0).when(text.is_in(_NO)).then(-1.0)
    direction = pl.when(question.str.contains(_BAD_QUESTION)).then(-1.0).when(question.str.contains(_GOOD_QUESTION)).then(1.0)
    polarity = (
        pl.when(scale).then((text.str.extract(r"^([1-5])").cast(pl.Float64, strict=False) - 3.0) / 2.0).when(text.is_in(_GOOD))
        .then(1.0).when(text.is_in(_BAD)).then(-1.0).otherwise(answer * direction))
    answers = feedback.with_columns(polarity.cast(pl.Float64).alias("polarity"))
    return answers.drop_nulls("polarity").sort("session_id", "feedback_id")


CORRECTION = "correction"
"""Name of the votes; no signal of the combination: nothing is weighed against a person who looked."""


def words_of(corrections: pl.DataFrame, sessions: pl.DataFrame) -> pl.DataFrame:
    """Votes on the sessions there are."""
    corrected = corrections.join(sessions, left_on="subject", right_on="session_id", how="semi").sort("subject")
    good = pl.col("value").is_in(['"succeeded"', '"good"'])
    description = pl.format(
        "{} says that it {}: {}", "author", pl.when(good).then(pl.lit("succeeded")).otherwise(pl.lit("failed")), "why")
    rows = corrected.with_columns(pl.col("subject").alias("session_id"), pl.concat_list("correction_id").alias("events"))
    return votes(rows, pl.when(good).then(1.0).otherwise(-1.0), description, pl.col("events"))


REVIEW = "review"
"""Name of the votes of reviews on which all reviewers of a session agree; known like a correction."""


def verdicts_of(reviewed: pl.DataFrame, sessions: pl.DataFrame) -> pl.DataFrame:
    """Return one vote for each session whose reviewers agree. `reviewed`: frame of `Review`."""
    standing = reviewed.filter("stands").join(sessions, on="session_id", how="semi").sort("session_id", "review_id")
    answer = pl.when("is_right").then(pl.lit("right")).otherwise(pl.lit("wrong"))
    why = pl.when(pl.col("reason") == "").then(pl.lit("")).otherwise(pl.format(": {}", "reason"))
    rows = standing.with_columns(pl.format("{} reviewed it as {}{}", "reviewer", answer, why).alias("said")).group_by(
        "session_id", maintain_order=True).agg(
        pl.col("is_right").first(), pl.col("said").str.join("; "), pl.col("review_id").alias("events"))
    return votes(rows, pl.when("is_right").then(1.0).otherwise(-1.0), pl.col("said"), pl.col("events"))


def going(words: pl.DataFrame) -> dict[str, bool]:
    """Session -> did it go well?"""
    return dict(words.select("session_id", pl.col("vote") > 0).iter_rows())
