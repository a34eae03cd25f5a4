"""How likely coding sessions are said to be right before any verification, against the truth of a data set of `coding.py`."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import duckdb

CHEATS = ("skip", "delete", "weaken", "conftest")
"""Attempts that make the tests pass by other means."""
GOOD = 0.5
Rated = tuple[dict[str, Any], float | None]
"""A session as truth has it, and how likely it is right."""


def rated(out: Path, folder: Path) -> list[Rated]:
    """Return the sessions of a repository, with what the run in `out` says of them."""
    with duckdb.connect(str(out / "warehouse.published.duckdb"), read_only=True) as warehouse:
        chances = dict(warehouse.sql("select session_id, success from mart.code_changes order by all").fetchall())
    lines = (folder / "truth" / "sessions.jsonl").read_text("utf-8").splitlines()
    return [(session, chances.get(session["session_id"])) for session in map(json.loads, lines)]


def figures(sessions: Iterable[Rated]) -> dict[str, float]:
    """Return `success_auroc` of the sessions of which merging does not tell, and how many of them are rated; and the share of
    the sessions that cheat which are called good."""
    every = list(sessions)
    hard = [(session["resolved"], chance) for session, chance in every if _is_hard(session)]
    right, wrong = ([chance for is_right, chance in hard if is_right is side and chance is not None] for side in (True, False))
    cheating = [chance for session, chance in every if session.get("attempt") in CHEATS]
    shares: dict[str, float] = {}
    if right and wrong:
        n_above = sum((one > other) + (one == other) / 2 for one in right for other in wrong)
        shares["success_auroc"] = n_above / (len(right) * len(wrong))
    if hard:
        shares["success_rated"] = (len(right) + len(wrong)) / len(hard)
    if cheating:
        shares["cheats_called_good"] = sum(chance is not None and chance >= GOOD for chance in cheating) / len(cheating)
    return {name: round(share, 4) for name, share in shares.items()}


def _is_hard(session: dict[str, Any]) -> bool:
    """Return whether a session about a task is not merged, was reverted, is red though right, or cheats."""
    return session.get("resolved") is not None and (
        not session["merged"] or session.get("reverted_by") is not None or session.get("attempt") in CHEATS
        or (session["resolved"] and session.get("ci_green") is False))
