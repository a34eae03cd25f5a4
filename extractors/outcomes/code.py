"""Outcomes of sessions that changed a repository: what became of the change, and what the verifier says of it.

In: the tables of the stages `starts` and `code_rooms`. Out: votes. `code_change` is the probability before tests were run
(`extractors/workspaces/success.py`), and counts as that. A verdict counts as known, like a review: the known tests passed, and
the answers that they ask for were compared outside of the code under test. It abstains where the verifier does.
"""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from extractors.outcomes.evidence import Evidence, votes
from warehouse.records import CodeChangeRow, CodeVerdict, empty

VERDICT = "verdict"
"""Name of the votes of the verifier; no signal of the combination."""


class CodeOutcomes(NamedTuple):
    """What is known of sessions of coding."""

    changes: pl.DataFrame = empty(CodeChangeRow)
    verdicts: pl.DataFrame = empty(CodeVerdict)


def code_change(evidence: Evidence) -> pl.DataFrame:
    """Twice the probability of success less 1, of what became of the change and how it came about."""
    last = evidence.turns.group_by("session_id", maintain_order=True).agg(pl.col("turn_id").tail(1))
    rows = evidence.code_changes.drop_nulls("success").join(last, on="session_id").sort("session_id")
    described = pl.lit("the change: ") + pl.col("evidence").list.join(", ")
    return votes(rows, (2 * pl.col("success") - 1).round(6), described, pl.col("turn_id"))


def verdicts_of_code(verdicts: pl.DataFrame, sessions: pl.DataFrame) -> pl.DataFrame:
    """Return one vote for each session of which the verifier says whether it solved its task."""
    certain = verdicts.drop_nulls("resolved").join(sessions, on="session_id", how="semi").sort("session_id", "task_id")
    rows = certain.group_by("session_id", maintain_order=True).agg(pl.col("resolved").all(), pl.col("detail").str.join("; "))
    answer = pl.when("resolved").then(pl.lit("it solves its task: ")).otherwise(pl.lit("it does not solve its task: "))
    return votes(rows, pl.when("resolved").then(1.0).otherwise(-1.0), answer + pl.col("detail"), pl.lit([], pl.List(pl.String)))
