"""Reads that are made again after a write: the same answer speaks against the session, another one for it."""

from __future__ import annotations

from typing import Any

import polars as pl

from extractors.outcomes.evidence import VOTES, gather
from extractors.outcomes.rechecks import rechecked
from tests.extractors.outcomes.test_outcomes import EFFECTS, RESET, feedback, frames, session

MadeSession = tuple[dict[str, Any], list[dict[str, Any]]]
ASK = ("user", "please paint the north wall of hut77x blue")


def painted(name: str, before: str, after: str, *, paint: str = "ok") -> MadeSession:
    """Return a session that looks, paints and looks again."""
    steps = ("look", {}, before), ("paint", {"c": "blue"}, paint), ("look", {}, after)
    return session(name, ASK, *steps, ("assistant", "there"))


def votes_of(*sessions: MadeSession) -> dict[str, float]:
    votes = rechecked(gather(*frames(*sessions), feedback(), EFFECTS, RESET))
    assert votes.schema == pl.Schema(VOTES)
    return dict(votes.select("session_id", "vote").iter_rows())


CHANGED = [painted(f"changed{n}", "grey", "blue") for n in range(6)]


def test_a_read_that_shows_the_same_after_a_write_speaks_against_the_session() -> None:
    votes = votes_of(*CHANGED, painted("same", "grey", "grey"))
    assert votes["same"] < -0.5 < 0.0 < votes["changed0"] < 0.5


def test_a_read_that_never_shows_what_writes_change_says_nothing() -> None:
    assert votes_of(*(painted(f"same{n}", "grey", "grey") for n in range(7))) == {}
    assert votes_of(*CHANGED[:3], painted("same", "grey", "grey")) == {}, "too few others"


def test_a_read_without_a_successful_write_between_says_nothing() -> None:
    idle = session("idle", ASK, ("look", {}, "grey"), ("look", {}, "grey"), ("assistant", "it is grey"))
    assert votes_of(*CHANGED, idle, painted("failed", "grey", "grey", paint="Error: no")).keys() == {
        f"changed{n}" for n in range(6)}


def test_where_all_reads_show_a_change_the_base_rate_holds_it() -> None:
    assert set(votes_of(*CHANGED).values()) == {0.0}


def test_calls_of_the_user_count_as_well() -> None:
    sessions, turns = frames(*CHANGED, painted("same", "grey", "grey"))
    by_user = turns.with_columns(
        pl.when(pl.col("kind") == "call").then(pl.lit("user")).otherwise("requestor").alias("requestor"))
    votes = rechecked(gather(sessions, by_user, feedback(), EFFECTS, RESET))
    assert dict(votes.select("session_id", pl.col("vote") < 0).iter_rows())["same"]
