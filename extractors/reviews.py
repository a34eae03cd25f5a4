"""Reviews: what persons answered to "is this session's work right?", and whether they agree.

Input: frames of `core.events` and of sessions. Output: a frame of `Review`, a decision on each that does not count, and figures
of agreement. A reviewer's latest review of a session counts. If reviewers of a session disagree, more than half of three or
more settle it; else none counts. Does not see: whether a reviewer looked, and how a sample was drawn.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from itertools import combinations
from typing import NamedTuple

import polars as pl

from warehouse.records import Decision, Review, frame, frame_schema

FEWEST_OF_A_MAJORITY = 3
"""Reviewers of a session from which on more than half of them settle it."""


class Agreement(NamedTuple):
    """How far reviewers of the same sessions agree."""

    n_sessions: int
    """Sessions with two reviewers or more."""
    n_pairs: int
    share: float | None
    """Share of pairs with the same answer; None without pairs."""
    kappa: float | None
    """Cohen's kappa over all pairs; None where chance alone explains every answer."""


def reviews(events: pl.DataFrame, sessions: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(frame of `Review` by session and id, frame of `Decision` on those that do not count)."""
    given = events.filter(pl.col("kind") == "review").sort("session_id", "happened_at", "event_id", nulls_last=False)
    known = set(sessions["session_id"])
    latest = {(row["session_id"], row["name"]): row["event_id"] for row in given.to_dicts()}
    answers = {row["event_id"]: json.loads(row["value"]) for row in given.to_dicts()}
    right_by_session: dict[str, list[bool]] = defaultdict(list)
    for (session_id, _), event_id in latest.items():
        right_by_session[session_id].append(answers[event_id]["right"])
    rows, decisions = [], []
    for row in given.to_dicts():
        session_id, answer = row["session_id"], answers[row["event_id"]]
        problem = None
        if session_id not in known:
            problem = "unknown_session", f"{row['name']} reviewed session {session_id}, which no log has; add the log."
        elif latest[session_id, row["name"]] != row["event_id"]:
            problem = "reviewed_again", f"{row['name']} reviewed session {session_id} again; the later review counts."
        elif settled(right_by_session[session_id]) is not answer["right"]:
            n_right, n = sum(right_by_session[session_id]), len(right_by_session[session_id])
            problem = "reviewers_disagree", (f"{n_right} of {n} reviewers call session {session_id} right; "
                                             "ask another reviewer, or let one of them review it again.")
        rows.append(Review(
            review_id=row["event_id"], session_id=session_id, happened_at=row["happened_at"], reviewer=row["name"],
            is_right=answer["right"], reason=row["content"] or "", task_id=row["call_id"], is_sampled=answer["sampled"],
            stands=problem is None))
        if problem:
            decisions.append(Decision(stage="sessions", subject=row["event_id"], kept=False, reason=problem[0],
                                      detail=problem[1], file_id=row["file_id"]))
    return frame(Review, rows).sort("session_id", "review_id").select(list(frame_schema(Review))), frame(Decision, decisions)


def settled(answers: list[bool]) -> bool | None:
    """Return the answer that the reviewers of one session give together; None if they do not agree."""
    n_right = sum(answers)
    if n_right in (0, len(answers)):
        return n_right > 0 if answers else None
    return None if len(answers) < FEWEST_OF_A_MAJORITY or 2 * n_right == len(answers) else 2 * n_right > len(answers)


def settled_sessions(reviewed: pl.DataFrame) -> dict[str, bool]:
    """Session -> is its work right? `reviewed`: frame of `Review`."""
    standing = reviewed.filter("stands").sort("session_id")
    return dict(standing.select("session_id", "is_right").unique(maintain_order=True).iter_rows())


def agreement_of(reviewed: pl.DataFrame) -> Agreement:
    """Measure agreement between reviewers; of each, the latest review of a session."""
    last = reviewed.sort("happened_at", "review_id", nulls_last=False).unique(["session_id", "reviewer"], keep="last")
    by_session: dict[str, list[bool]] = defaultdict(list)
    for session_id, right in last.sort("session_id", "reviewer").select("session_id", "is_right").iter_rows():
        by_session[session_id].append(right)
    pairs = [pair for answers in by_session.values() for pair in combinations(answers, 2)]
    n_sessions = sum(len(answers) > 1 for answers in by_session.values())
    if not pairs:
        return Agreement(n_sessions, 0, None, None)
    share = sum(one == other for one, other in pairs) / len(pairs)
    first, second = Counter(one for one, _ in pairs), Counter(other for _, other in pairs)
    chance = sum(first[side] * second[side] for side in (True, False)) / len(pairs) ** 2
    kappa = None if chance == 1.0 else round((share - chance) / (1 - chance), 4)
    return Agreement(n_sessions, len(pairs), round(share, 4), kappa)
