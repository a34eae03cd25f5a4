"""Which sessions a run builds from, where somebody chose: since a day, of services, so many.

In: all sessions that were read. Out: those that are chosen, with what is theirs, and a verdict on every other. What was read
stays in the ledger: a run that chooses otherwise builds otherwise, and reads nothing again.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from extractors.sessions import Sessions
from pipelines.settings import Settings
from warehouse.errors import InputError, Missing
from warehouse.records import Verdict, frame

REASON = "not_selected"


def selected(made: Sessions, settings: Settings) -> Sessions:
    """The sessions that the settings choose: the newest ones, where there is a limit. Raises Missing for a service that is not
    there, and InputError for a day that all sessions are older than."""
    if settings.since is None and not settings.services and settings.limit is None:
        return made
    known = made.sessions["service"].unique().to_list()
    for name in settings.services:
        if name not in known:
            raise Missing.named("service", name, known)
    chosen = made.sessions
    if settings.services:
        chosen = chosen.filter(pl.col("service").is_in(settings.services))
    if settings.since is not None:
        chosen = since(chosen, settings.since)
    if settings.limit is not None:
        chosen = chosen.sort("started_at", "session_id", descending=[True, False], nulls_last=True).head(settings.limit)
    kept = chosen["session_id"].implode()
    others = made.sessions.filter(~pl.col("session_id").is_in(kept)).sort("session_id")
    says = f"{_told(settings)}; run without it to build from all."
    verdicts = [
        Verdict(stage="sessions", subject=name, kept=False, reason=REASON, detail=says) for name in others["session_id"]]
    before = made.verdicts.filter(~(pl.col("kept") & pl.col("subject").is_in(others["session_id"].implode())))
    is_kept = pl.col("session_id").is_in(kept)
    tools, turns = made.tools.filter(pl.col("service").is_in(chosen["service"].unique().implode())), made.turns.filter(is_kept)
    return replace(
        made, sessions=made.sessions.filter(is_kept), turns=turns, feedback=made.feedback.filter(is_kept),
        tools=_counted(tools, turns),
        verdicts=pl.concat([before, frame(Verdict, verdicts)]))


def _counted(tools: pl.DataFrame, turns: pl.DataFrame) -> pl.DataFrame:
    """The tools with their calls in these turns."""
    calls = turns.filter(pl.col("kind") == "call").group_by("service", "tool").agg(pl.len().cast(pl.Int64()).alias("n_calls"))
    counted = tools.drop("n_calls").join(calls, on=["service", "tool"], how="left", maintain_order="left")
    return counted.with_columns(pl.col("n_calls").fill_null(0)).select(tools.columns)


def since(sessions: pl.DataFrame, day: str) -> pl.DataFrame:
    """The sessions of that day and later ones; one without a day is not known to be new enough. Raises InputError where
    all are older."""
    found = sessions.filter(pl.col("day") >= day)
    if found.is_empty() and not sessions.is_empty():
        newest = sessions.select(pl.col("day").max()).item()
        says = f"the newest is of {newest}" if newest else "the log says of none when it was"
        raise InputError(f"there is no session since that day: {says}", f"--since {day}",
                         "give an earlier day, or leave it out" if newest else "leave it out")
    return found


def _told(settings: Settings) -> str:
    """The choice as it was written."""
    return "The run was told " + " ".join([
        *([f"--since {settings.since}"] if settings.since else []), *(f"--service {name}" for name in settings.services),
        *([f"--limit {settings.limit}"] if settings.limit is not None else [])])
