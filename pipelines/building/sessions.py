"""The stage `sessions`: events become sessions, turns, feedback, reviews, row changes and tools; a run may select.

Events of web sites are left out: they are work of people, which the stage `site_rooms` joins.

A selection (since a day, of services, so many) leaves the ledger as it is: every other session gets a decision, and another
run selects otherwise without reading anything again.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import polars as pl

from extractors.drift import drift, drift_of
from extractors.formats import history_of
from extractors.residues import residues, without
from extractors.session_parts import assemble_parts
from extractors.sessions import (
    OF_SPANS,
    AssembledSessions,
    aliases_in,
    assemble,
    completed,
    names_by_alias,
    renamed_by_links,
    renamed_events,
    row_changes,
    with_requests,
)
from extractors.site_events import of_sites
from extractors.tool_parts import applied, decisions, in_parts
from extractors.tools import tools_of
from pipelines.building.decisions import RULE_CHANGED, replace_decisions
from pipelines.building.parts import held, n_parts, read_parts, scratch
from pipelines.building.sealing import seal_epoch
from pipelines.running.memory import release
from pipelines.running.stage import Counts
from pipelines.settings import Settings
from warehouse.errors import InputError, Missing
from warehouse.records import Decision, frame
from warehouse.store import Store

REASON = "not_selected"


_TEXTS = ("content", "arguments", "value", "usage")
_SPOKEN = "kind in ('message', 'call', 'result')"
_MANY_LOGS = f"""
    select count(distinct (source, format)) filter ({_SPOKEN}) != 1
        or count(*) filter ({_SPOKEN} and session_id is null) > 0
        or count(*) filter (kind = 'page') > 0
        or count(*) filter (kind in ('feedback', 'outcome') and session_id is null and call_id is not null) > 0 as "any",
        min(format) filter ({_SPOKEN}) as format from core.events
"""
"""Whether a session may have events of which no session id tells that they are its own; and a format of the log."""
_DATED = """
    with observed as (
        select * from core.events where kind not in ('correction', 'review')
        and not (kind = 'row_change' and coalesce(name = 'snapshot', false))),
    begun as (select source, session_id, min(happened_at) as began from observed where session_id is not null group by all),
    made as (select turn_id as event_id, tool as _tool from core.turns),
    answered as (
        select result_id as event_id, any_value(tool) as _answered from core.turns
        where result_id is not null and tool is not null group by result_id),
    dated as (
        select observed.*, strftime(coalesce(began, happened_at), '%Y-%m-%d') as day, coalesce(session_id, record_id) as unit,
            _tool, _answered
        from observed left join begun using (source, session_id) left join made using (event_id)
        left join answered using (event_id))
    select * from dated where day is not null
"""
"""As `extractors.drift.dated_events`."""
_ROWS = 20_000
"""Row changes that are read at once."""


def sessions(store: Store, settings: Settings) -> Counts:
    """Assemble events into sessions, turns, feedback, row changes and tools; record what changed in the logs' structure."""
    n = n_parts(store, "core.events", _TEXTS) if _is_parted(store, settings) else 1
    return _by_parts(store, settings, n) if n > 1 else _at_once(store, settings)


def _is_parted(store: Store, settings: Settings) -> bool:
    """Whether each session is made of the events with its id alone."""
    logs = store.read(_MANY_LOGS)
    return not (settings.since or settings.services or settings.limit is not None or logs["any"].item()
                or history_of(logs["format"].item()) in OF_SPANS)


def _at_once(store: Store, settings: Settings) -> Counts:
    every = store.table("core.events")
    is_of_site = of_sites(every)
    events = every.filter(~is_of_site)
    made = selected(assemble(events, store.table("raw.declarations"), settings.configured.sessions.gap_minutes), settings)
    n_turns = store.replace("core.turns", in_parts(made.turns))
    counts = _record(store, settings, made, _of_sites(every.filter(is_of_site), made.sessions))
    return counts | {"n_turns": n_turns} | _record_drift(store, drift(events, made.turns))


def _by_parts(store: Store, settings: Settings, n: int) -> Counts:
    """Assemble the same from parts of the sessions."""
    others = store.table("core.events", f"not ({_SPOKEN}) and kind != 'row_change'").unique("event_id")
    names, conflicts = names_by_alias(others)
    others = renamed_by_links(others, names)
    with scratch(store) as folder:
        turns = _TurnFiles(folder / "turns")
        with held(store, n):
            files = store.write_parts(folder / "events", f"select * from core.events where {_SPOKEN}", n, "session_id")
        parts = [partial(_linked, read, names) for read in read_parts(files)]
        woven = assemble_parts(
            parts, aliases_in(others), settings.configured.sessions.gap_minutes, turns.add, turns.drop)
        shutil.rmtree(folder / "events")
        others = renamed_events(others, woven.names)
        every, more, decisions = with_requests(woven.sessions, others, settings.configured.sessions.gap_minutes)
        turns.add(more)
        turns.put(residues(turns.scan()))
        tools, uncalled = tools_of(turns.scan(), store.table("raw.declarations"))
        decided = [frame(Decision, [*conflicts, *woven.decisions, *decisions]), uncalled]
        made = completed(every, more.clear(), tools, others, decided)
        turns.divide()
        n_turns = store.replace_from("core.turns", turns.files, "session_id, position")
        counts = _record(store, settings, made, frame(Decision, []))
        n_row_changes = _append_row_changes(store, folder / "changes.parquet", n)
        release()
        with held(store, n):
            days = read_parts(store.write_parts(folder / "days", _DATED, n, "day"))
        changes = drift_of(read() for read in days)
    return counts | {"n_turns": n_turns, "n_row_changes": n_row_changes} | _record_drift(store, changes)


def _append_row_changes(store: Store, file: Path, n: int) -> int:
    with held(store, n):
        store.write_parquet(file, "select * from core.events where kind = 'row_change' "
                            "order by happened_at nulls first, position nulls first, event_id")
    rows = pl.scan_parquet(file)
    starts = range(0, rows.select(pl.len()).collect().item(), _ROWS)
    return sum(store.append("core.row_changes", row_changes(rows.slice(start, _ROWS).collect())) for start in starts)


def _record(store: Store, settings: Settings, made: AssembledSessions, more: pl.DataFrame) -> Counts:
    """Write all tables but the turns."""
    tables = {
        "core.sessions": made.sessions, "core.feedback": made.feedback, "core.row_changes": made.row_changes,
        "core.corrections": made.corrections, "core.reviews": made.reviews, "core.tools": made.tools}
    counts = {f"n_{name.split('.')[1]}": store.replace(name, frame) for name, frame in tables.items()}
    seal_epoch(store, settings, made.sessions["session_id"])
    replace_decisions(store, "sessions", pl.concat([made.decisions, more]))
    return counts


def _record_drift(store: Store, changes: pl.DataFrame) -> Counts:
    store.replace("mart.decisions", changes, "stage = 'drift' and reason != $reason", reason=RULE_CHANGED)
    return {"n_changes": changes.height}


def _linked(read: Callable[[], pl.DataFrame], names: pl.DataFrame) -> pl.DataFrame:
    return renamed_by_links(read().unique("event_id"), names)


class _TurnFiles:
    """Turns as Parquet files of a folder."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder, self.files = folder, list[Path]()

    def add(self, turns: pl.DataFrame) -> None:
        """Write a file more."""
        self.files.append(self._folder / f"{len(self.files)}.parquet")
        turns.write_parquet(self.files[-1], compression="lz4")

    def drop(self, session_ids: set[str]) -> None:
        """Take the turns of some sessions away."""
        for file in self.files:
            pl.read_parquet(file).filter(~pl.col("session_id").is_in(list(session_ids))).write_parquet(file, compression="lz4")

    def put(self, changed: pl.DataFrame) -> None:
        """Put other texts in the place of those that turns have (`extractors.residues.residues`)."""
        for file in self.files if changed.height else ():
            without(changed, pl.read_parquet(file)).write_parquet(file, compression="lz4")

    def divide(self) -> None:
        """Name calls by the parts of their tools (`extractors.tool_parts`)."""
        deciding = decisions(self.scan())
        for file in self.files if deciding else ():
            applied(deciding, pl.read_parquet(file)).write_parquet(file, compression="lz4")

    def scan(self) -> pl.LazyFrame:
        """Return all turns, to be read."""
        return pl.scan_parquet(self.files)


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
