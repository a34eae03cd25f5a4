"""The stage `sessions`: events become sessions, turns, feedback, reviews, row changes and tools; a run may select.

Events of web sites are left out: they are work of people, which the stage `site_rooms` joins.

A selection (since a day, of services, so many) leaves the ledger as it is: every other session gets a decision, and another
run selects otherwise without reading anything again.
"""

from __future__ import annotations

from dataclasses import replace

import polars as pl

from extractors.drift import drift
from extractors.sessions import AssembledSessions, assemble
from extractors.site_events import of_sites
from pipelines.building.decisions import RULE_CHANGED, replace_decisions
from pipelines.building.sealing import seal_epoch
from pipelines.running.stage import Counts
from pipelines.settings import Settings
from warehouse.errors import InputError, Missing
from warehouse.records import Decision, frame
from warehouse.store import Store

REASON = "not_selected"


def sessions(store: Store, settings: Settings) -> Counts:
    """Assemble events into sessions, turns, feedback, row changes and tools; record what changed in the logs' structure."""
    every = store.table("core.events")
    is_of_site = of_sites(every)
    events = every.filter(~is_of_site)
    made = selected(assemble(events, store.table("raw.declarations"), settings.configured.sessions.gap_minutes), settings)
    tables = {
        "core.sessions": made.sessions, "core.turns": made.turns, "core.feedback": made.feedback,
        "core.row_changes": made.row_changes, "core.corrections": made.corrections, "core.reviews": made.reviews,
        "core.tools": made.tools}
    counts = {f"n_{name.split('.')[1]}": store.replace(name, frame) for name, frame in tables.items()}
    seal_epoch(store, settings, made.sessions["session_id"])
    replace_decisions(store, "sessions", pl.concat([made.decisions, _of_sites(every.filter(is_of_site), made.sessions)]))
    changes = drift(events, made.turns)
    store.replace("mart.decisions", changes, "stage = 'drift' and reason != $reason", reason=RULE_CHANGED)
    return {**counts, "n_changes": changes.height}


def _of_sites(events: pl.DataFrame, sessions: pl.DataFrame) -> pl.DataFrame:
    """Return a decision on each session that is work on a web site and nothing else."""
    names = set(events["session_id"].drop_nulls()) - set(sessions["session_id"])
    detail = "It is work on a web site, which the stage site_rooms joins; no action needed."
    return frame(Decision, [Decision(stage="sessions", subject=name, kept=False, reason="work_on_a_site", detail=detail)
                            for name in sorted(names)])


def selected(made: AssembledSessions, settings: Settings) -> AssembledSessions:
    """Take the sessions that the settings choose: the newest ones, where there is a limit. Raises Missing for a service that is
    not there, and InputError for a day that all sessions are older than."""
    if settings.since is None and not settings.services and settings.limit is None:
        return made
    services = made.sessions["service"].unique().to_list()
    for name in settings.services:
        if name not in services:
            raise Missing.named("service", name, services)
    chosen = made.sessions
    if settings.services:
        chosen = chosen.filter(pl.col("service").is_in(settings.services))
    if settings.since is not None:
        chosen = since(chosen, settings.since)
    if settings.limit is not None:
        chosen = chosen.sort("started_at", "session_id", descending=[True, False], nulls_last=True).head(settings.limit)
    kept = chosen["session_id"].implode()
    others = made.sessions.filter(~pl.col("session_id").is_in(kept)).sort("session_id")
    options = [*([f"--since {settings.since}"] if settings.since else []), *(f"--service {name}" for name in settings.services),
               *([f"--limit {settings.limit}"] if settings.limit is not None else [])]
    detail = f"The run was told {' '.join(options)}; run without it to build from all."
    decisions = [
        Decision(stage="sessions", subject=name, kept=False, reason=REASON, detail=detail) for name in others["session_id"]]
    before = made.decisions.filter(~(pl.col("kept") & pl.col("subject").is_in(others["session_id"].implode())))
    is_kept = pl.col("session_id").is_in(kept)
    tools, turns = made.tools.filter(pl.col("service").is_in(chosen["service"].unique().implode())), made.turns.filter(is_kept)
    calls = turns.filter(pl.col("kind") == "call").group_by("service", "tool").agg(pl.len().cast(pl.Int64()).alias("n_calls"))
    counted = tools.drop("n_calls").join(calls, on=["service", "tool"], how="left", maintain_order="left")
    return replace(
        made, sessions=made.sessions.filter(is_kept), turns=turns, feedback=made.feedback.filter(is_kept),
        reviews=made.reviews.filter(is_kept),
        tools=counted.with_columns(pl.col("n_calls").fill_null(0)).select(tools.columns),
        decisions=pl.concat([before, frame(Decision, decisions)]))


def since(sessions: pl.DataFrame, day: str) -> pl.DataFrame:
    """Take sessions of that day and later; none without a day. Raises InputError where all are older."""
    recent = sessions.filter(pl.col("day") >= day)
    if recent.is_empty() and not sessions.is_empty():
        newest = sessions.select(pl.col("day").max()).item()
        detail = f"the newest is of {newest}" if newest else "the log says of none when it was"
        raise InputError(f"there is no session since that day: {detail}", f"--since {day}",
                         "give an earlier day, or leave it out" if newest else "leave it out")
    return recent
