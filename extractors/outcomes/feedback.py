"""What people said of a session afterwards, as a vote.

Sees: answers that are good or bad by themselves (up, down, good, bad, resolved, 4 of 5, 👍), and yes/no answers to a
question whose words tell which answer is good ("resolved", "helpful"; "reopened", "complaint"). Does not see:
comments in prose, and yes/no answers to other questions ("did it rain?"): it abstains on these. Who answers is
selected, and answers are wrong now and then: that is the combination's business, not this module's.
"""

from __future__ import annotations

import polars as pl

from extractors.outcomes.evidence import Evidence, votes

_GOOD = (
    "up",
    "good",
    "great",
    "excellent",
    "positive",
    "resolved",
    "solved",
    "success",
    "successful",
    "succeeded",
    "satisfied",
    "happy",
    "like",
    "liked",
    "helpful",
    "correct",
    "pass",
    "passed",
    "ok",
    "okay",
    "thumbs_up",
    "👍",
    "😀",
    "🙂",
    "accepted",
    "complete",
    "completed",
)
_BAD = (
    "down",
    "bad",
    "poor",
    "terrible",
    "negative",
    "unresolved",
    "unsolved",
    "failure",
    "unsuccessful",
    "failed",
    "fail",
    "unsatisfied",
    "dissatisfied",
    "unhappy",
    "dislike",
    "disliked",
    "unhelpful",
    "incorrect",
    "wrong",
    "thumbs_down",
    "👎",
    "☹",
    "🙁",
    "rejected",
    "incomplete",
    "reopened",
    "escalated",
)
_YES = ("yes", "y", "true", "t", "1", "1.0")
_NO = ("no", "n", "false", "f", "0", "0.0")

_GOOD_QUESTION = (
    r"\b(?:resolved?|solved?|success\w*|succesful\w*|helpful|helped|satisf\w+|happy|correct\w*|complete\w*|good|like[ds]?|"
    r"pass(?:ed)?|accept\w*|recommend\w*|enjoy\w*)\b"
)
_BAD_QUESTION = (
    r"\b(?:re-?open\w*|complain\w*|escalat\w*|problem\w*|issues?|errors?|fail\w*|unresolved|wrong|incorrect\w*|refund\w*|"
    r"abandon\w*|churn\w*|dissatisf\w+|unhappy|reject\w*)\b"
)
_ON_FIVE = r"^[1-5](?:\.0)?(?:\s*/\s*5|\s*stars?)?$"


def from_feedback(seen: Evidence) -> pl.DataFrame:
    """Mean of the answers of known direction, in -1..1, per session."""
    answers = polarities(seen.feedback)
    rows = answers.group_by("session_id", maintain_order=True).agg(
        pl.col("polarity").mean().round(6),
        (pl.col("name") + " = " + pl.col("value")).unique(maintain_order=True).sort().str.join(", ").alias("said"),
        pl.col("feedback_id").sort(),
    )
    return votes(rows, pl.col("polarity"), pl.lit("feedback: ") + pl.col("said"), pl.col("feedback_id"))


def polarities(feedback: pl.DataFrame) -> pl.DataFrame:
    """The answers of known direction, with the column `polarity` in -1..1, by session and id."""
    said = pl.col("value").str.strip_chars().str.to_lowercase()
    question = pl.col("name").str.to_lowercase().str.replace_all(r"[_\-]+", " ")
    scale = said.str.contains(_ON_FIVE) & said.str.contains(_ON_FIVE).all().over("name") & (said.n_unique().over("name") > 2)
    answer = pl.when(said.is_in(_YES)).then(1.0).when(said.is_in(_NO)).then(-1.0)
    direction = pl.when(question.str.contains(_BAD_QUESTION)).then(-1.0).when(question.str.contains(_GOOD_QUESTION)).then(1.0)
    polarity = (
        pl.when(scale)
        .then((said.str.extract(r"^([1-5])").cast(pl.Float64, strict=False) - 3.0) / 2.0)
        .when(said.is_in(_GOOD))
        .then(1.0)
        .when(said.is_in(_BAD))
        .then(-1.0)
        .otherwise(answer * direction)
    )
    answers = feedback.with_columns(polarity.cast(pl.Float64).alias("polarity"))
    return answers.drop_nulls("polarity").sort("session_id", "feedback_id")
