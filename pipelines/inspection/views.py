"""Read the published tables for people: the rows that the browser's pages and the report show.

Input: a source of rows (`Library` of the browser, `StoreSource` of the report). Output: rows as dicts. Lists come in pages by
key: the next page begins after the last row of this one, so the last page is as fast as the first. Figures are aggregated in
SQL, so their number is bounded by `MOST` and by what is counted (services, tools, days), not by sessions.
Every order is total: equal warehouses give equal rows."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

from extractors.outcomes.feedback import CORRECTION, REVIEW
from extractors.outcomes.signals import registered
from pipelines.inspection.summary import place_of
from warehouse.errors import InputError, Missing
from warehouse.records import PART_OPENS
from warehouse.store import Store
from warehouse.vocabulary import OUTCOME_SQL, OUTCOMES

Row = dict[str, Any]
SIZE = 50
"""Rows of a page."""
TURNS = 200
"""Turns of a page."""
MOST = 60
"""Rows of one kind that a figure shows; it states how many there are besides."""
_TOOLS_AND_PARTS = (   # a tool whose argument decides what it does has a program for each value
    "(select service, tool, n_calls from core.tools union all select service, tool, count(*) as n_calls from core.turns "
    f"where contains(tool, '{PART_OPENS}') group by service, tool)")
_JUDGED = "core.sessions left join mart.outcomes using (session_id)"
_SPANS = ("hour", 3), ("day", 64), ("week", 448), ("month", 1900)
"""Widths of the steps of time, and up to how many days each is taken; then years."""
STARTED = f"coalesce(started_at, timestamptz '{datetime(1, 1, 1, tzinfo=UTC):%Y-%m-%d} 00:00:00+00')"
_PUBLISHED = "exists (select 1 from mart.decisions where stage = 'verify' and subject = task_id and kept) as is_published"
DECIDED_TASKS = (
    f"(select *, {_PUBLISHED} from ("
    "select task_id, service, family, goal, split, rate, difficulty_band, len(session_ids) as n_sessions, null as made_from "
    "from mart.tasks union all select task_id, service, family, goal, split, null, null, len(session_ids), made_from "
    "from mart.variants where made_from != 'failure'))")
"""Tasks, new ones too, with whether they are published."""
_DECISIONS = "select stage, kept, reason, detail from mart.decisions where subject = $id order by stage, reason"
LISTS = {
    "reasons": ("stage, reason, count(*) as n, arg_min(detail, subject) as example",
                "mart.decisions where not kept and stage != 'drift' group by stage, reason", "n desc, stage, reason"),
    "families": ("service, family, coalesce(name, family) as name, coalesce(sentence, goal) as sentence, n_sessions, n_tasks, "
                 "n_succeeded, rate, rate_low, rate_high, difficulty_band",
                 "mart.families left join mart.names using (service, family)", "n_sessions desc, service, name, family"),
    "signals": ("service, signal, side, n_votes, coverage, agreement, round(log_odds, 3) as log_odds", "mart.signals",
                "service, abs(log_odds) desc, signal, side"),
    "fidelity": ("service, tool, coalesce(effect, 'unknown') as effect, n_calls, coalesce(n_support, 0) as n_support, "
                 "coalesce(n_against, 0) as n_against, round(fidelity, 4) as fidelity, round(abstains, 4) as abstains, "
                 "round(cassette_fidelity, 4) as cassette_fidelity, round(cassette_abstains, 4) as cassette_abstains",
                 f"{_TOOLS_AND_PARTS} left join mart.behaviours using (service, tool)", "n_calls desc, service, tool"),
    "drift": ("reason, detail", "mart.decisions where stage = 'drift'", "subject, reason"),
    "environments": ("environment, service, n_tasks, n_tools, content_digest, rewards_digest, image_id, image_skip_reason",
                     "mart.environments", "n_tasks desc, environment"),
    "datasets": ("path, kind, split, n_rows, n_bytes, sha256", "mart.datasets", "path"),
    "leakage": ("service, report", "mart.leakage", "service")}
"""What a figure lists -> columns, table and order: why rows were rejected (with one of the sentences), families with their
names, what each side of each signal is worth, tools with what was measured of them, changes of the logs, published
environments, files to train on, and reports of what the splits share."""


class RowSource(Protocol):
    """What answers queries on a published warehouse."""

    def rows(self, sql: str, **parameters: object) -> list[Row]:
        """Return the rows of a query."""

    def row(self, sql: str, **parameters: object) -> Row | None:
        """Return the first row of a query."""
        return next(iter(self.rows(sql, **parameters)), None)


class StoreSource(RowSource):
    """An open store as a source of rows."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def rows(self, sql: str, **parameters: object) -> list[Row]:
        """Return the rows of a query."""
        return self.store.read(sql, **parameters).to_dicts()


class Paged(NamedTuple):
    """A page of a list."""

    rows: list[Row]
    after: str | None
    """Where the next page begins; None: this is the last."""


class Some(NamedTuple):
    """The first rows of a kind."""

    rows: list[Row]
    n: int
    """How many there are in all."""

    @property
    def besides(self) -> int:
        """Return how many are not shown."""
        return self.n - len(self.rows)


class Times(NamedTuple):
    """Outcomes by steps of time."""

    step: str
    """hour, day, week, month or year."""
    rows: list[Row]
    """{"at", "outcome", "n"}."""
    rates: list[Row]
    """{"at", "n", "mean"}: mean probability of the judged."""
    n_timeless: int
    """Sessions whose beginning is not known."""


def begins(after: str | None, n_parts: int) -> list[Any]:
    """Return the key that a page begins after; empty: from the beginning. Raises InputError for anything else."""
    if not after:
        return []
    try:
        key = json.loads(base64.urlsafe_b64decode(after.encode()))
    except ValueError:
        key = None
    if not isinstance(key, list) or len(key) != n_parts or not all(isinstance(part, str | int | float) for part in key):
        raise InputError("this is no beginning of a page", hint="begin with the first page")
    return key


def paged(rows: Sequence[Row], columns: Sequence[str]) -> Paged:
    """Return a page of rows, of which one more than a page was asked for; `columns`: the key."""
    if len(rows) <= SIZE:
        return Paged(list(rows), None)
    shown = list(rows[:SIZE])
    key = [part if isinstance(part := shown[-1][name], str | int | float) else str(part) for name in columns]
    return Paged(shown, base64.urlsafe_b64encode(json.dumps(key).encode()).decode())


def _page(source: RowSource, select: str, wanted: Sequence[tuple[str, str, Any]], after: str | None, beyond: str, order: str,
          key: Sequence[str], size: int | None = SIZE) -> Paged:
    """Return a page of a query; size None: all of it. `wanted`: (name, condition, value), no condition without a value;
    `beyond`: condition of the rows that come after the key, whose parts are $key0, $key1 …"""
    conditions, parameters = ["true"], dict[str, object]()
    for name, condition, value in wanted:
        if value:
            conditions.append(condition)
            parameters[name] = value
    if begin := begins(after, len(key)):
        conditions.append(beyond)
        parameters |= {f"key{place}": part for place, part in enumerate(begin)}
    limit = f" limit {size + 1}" if size else ""
    rows = source.rows(f"{select} where {' and '.join(conditions)} order by {order}{limit}", **parameters)
    return paged(rows, key) if size else Paged(rows, None)


def listed(source: RowSource, name: str) -> Some:
    """Return the first rows of one of `LISTS`, and how many it has."""
    columns, table, order = LISTS[name]
    rows = source.rows(f"select {columns}, count(*) over () as n_in_all from {table} order by {order} limit {MOST}")
    return Some([{name: value for name, value in row.items() if name != "n_in_all"} for row in rows],
                rows[0]["n_in_all"] if rows else 0)


def identity(source: RowSource) -> Row:
    """Return digests of the files that were read and of the environments that were published; no clock, no path."""
    files = [row["file_id"] for row in source.rows("select file_id from raw.files order by file_id")]
    built = source.rows("select environment, content_digest, rewards_digest from mart.environments order by environment")
    digest = hashlib.sha256(json.dumps([files, [list(row.values()) for row in built]]).encode()).hexdigest()
    return {"digest": digest, "logs": hashlib.sha256(json.dumps(files).encode()).hexdigest(), "n_files": len(files)}


def totals(source: RowSource) -> Row:
    """Count everything, and give the first and last day."""
    row = source.row("""select
        (select count(*) from core.sessions) as n_sessions, (select count(distinct service) from core.sessions) as n_services,
        (select count(*) from core.turns where kind = 'call') as n_calls, (select count(*) from core.tools) as n_tools,
        (select count(*) from mart.families) as n_families, (select count(*) from mart.tasks) as n_tasks,
        (select count(*) from raw.records) as n_records, (select count(*) from mart.environments) as n_environments,
        (select coalesce(sum(n_tasks), 0)::bigint from mart.environments) as n_published,
        (select count(*) from mart.decisions where stage = 'verify' and kept) as n_verified,
        (select count(*) from core.corrections where stands) as n_corrections,
        (select count(*) from mart.variants where made_from = 'failure') as n_from_failures,
        (select count(*) from mart.variants where made_from != 'failure') as n_generated,
        (select strftime(min(started_at), '%-d %b %Y') from core.sessions) as first_day,
        (select strftime(max(started_at), '%-d %b %Y') from core.sessions) as last_day""")
    assert row is not None
    return row


def funnel(source: RowSource) -> list[Row]:
    """Return {"stage", "kept", "reason", "n"} in the order that a session goes through the stages, without drift."""
    rows = source.rows("select stage, kept, reason, n from mart.funnel where stage != 'drift'")
    return sorted(rows, key=lambda row: (place_of(row["stage"]), row["stage"], not row["kept"]))


def stages(source: RowSource) -> list[Row]:
    """Return {"stage", "kept", "n_rejected", "why"}, a row a stage: the funnel's counts, and reasons with their counts."""
    by_stage: dict[str, Row] = {}
    for row in sorted(funnel(source), key=lambda row: (-row["n"], row["reason"])):
        if row["stage"] != "names":
            own = by_stage.setdefault(row["stage"], {"stage": row["stage"], "kept": 0, "n_rejected": 0, "why": []})
            own["kept" if row["kept"] else "n_rejected"] += row["n"]
            own["why"] += [] if row["kept"] else [f"{row['reason']} {row['n']}"]
    return sorted(by_stage.values(), key=lambda row: (place_of(row["stage"]), row["stage"]))


def overview(source: RowSource) -> Row:
    """Return the numbers of the start page: counts, services, outcomes, drift and the funnel."""
    return {**totals(source), "funnel": funnel(source), "drift": listed(source, "drift").rows[:20], "services": source.rows(
        "select service, n_sessions, environment, coalesce(e.n_tasks, 0) as n_tasks, coalesce(e.n_tools, 0) as n_tools "
        "from (select service, count(*) as n_sessions from core.sessions group by service) "
        "left join mart.environments e using (service) order by n_sessions desc, service"), "outcomes": source.row(
        f"select {', '.join(f'count(*) filter ({test}) as {name}' for name, test in OUTCOMES.items())} from {_JUDGED}")}


def rejected(source: RowSource, wanted: Mapping[str, str], after: str | None = None, size: int | None = SIZE) -> Paged:
    """Return a page of rejected rows, by stage, reason and subject. `wanted`: stage, reason, words."""
    return _page(
        source, "select stage, reason, subject, detail, path, line from (select * from mart.decisions where not kept) v "
        "left join raw.files f using (file_id)", (
            ("stage", "stage = $stage", wanted.get("stage")), ("reason", "reason = $reason", wanted.get("reason")),
            ("words", "contains(lower(subject || ' ' || detail || ' ' || coalesce(path, '')), $words)",
             wanted.get("words", "").lower())),
        after, "(stage, reason, subject) > ($key0, $key1, $key2)", "stage, reason, subject",
        ("stage", "reason", "subject"), size)


def families(source: RowSource, wanted: Mapping[str, str], after: str | None = None, size: int | None = SIZE) -> Paged:
    """Return a page of families, largest first. `wanted`: service, words."""
    return _page(
        source, "select f.*, name, sentence, written_by from mart.families f join mart.names using (family)",
        (("service", "f.service = $service", wanted.get("service")),
         ("words", "contains(lower(name || ' ' || sentence), $words)", wanted.get("words", "").lower())),
        after, "(n_sessions < $key0 or (n_sessions = $key0 and family > $key1))", "n_sessions desc, family",
        ("n_sessions", "family"), size)


def family(source: RowSource, name: str) -> Row:
    """Return a family, or a kind of request that is no family by itself. Raises Missing."""
    row = source.row(
        "select n.*, f.* exclude (service, family), f.family is not null as is_family from mart.names n "
        "left join mart.families f using (family) where n.family = $id", id=name)
    if row is None:
        raise Missing(f"no family {name!r}", hint="look for it in the list of families")
    return row


def session(source: RowSource, session_id: str) -> Row:
    """Return all that is known of a session but its turns. Raises Missing."""
    row = source.row("select * from core.sessions where session_id = $id", id=session_id)
    if row is None:
        raise Missing(f"no session {session_id!r}", hint="look for it in the list of sessions")
    goals = source.rows(
        "select g.*, s.sentence, name from mart.goals g left join mart.sentences s using (goal_id) "
        "left join mart.names using (family) where session_id = $id order by place", id=session_id)
    outcome = source.row("select * from mart.outcomes where session_id = $id", id=session_id)
    return {
        **row, "goals": goals, "outcome": outcome, "votes": votes(source, row["service"], outcome),
        "feedback": source.rows("select * from core.feedback where session_id = $id order by happened_at", id=session_id),
        "tasks": source.rows(
            f"select task_id, family, list_contains(succeeded_session_ids, $id) as has_succeeded, split, {_PUBLISHED} "
            "from mart.tasks where list_contains(session_ids, $id) order by task_id", id=session_id),
        "decisions": source.rows(_DECISIONS, id=session_id)}


def votes(source: RowSource, service: str, outcome: Row | None) -> list[Row]:
    """Return the votes behind an outcome, strongest first, each with what such a vote is worth in the service."""
    worth = {(row["signal"], row["side"]): row for row in source.rows(
        "select signal, side, n_votes, agreement, log_odds from mart.signals where service in ($service, $service || "
        "' without words')", service=service)}
    groups = {name: signal.group for name, signal in registered().items()}
    rows = [{**vote, "worth": worth.get((groups.get(vote["name"], vote["name"]), "for" if vote["vote"] > 0 else "against")),
             "is_person": vote["name"] in (CORRECTION, REVIEW)} for vote in (json.loads(outcome["signals"]) if outcome else [])]
    return sorted(rows, key=lambda vote: (not vote["is_person"], -abs(vote["vote"]), vote["name"]))


def turns(source: RowSource, session_id: str, begin: int = 0) -> list[Row]:
    """Return turns of a session from a position on, a page and one more at most."""
    return source.rows(
        "select * from core.turns where session_id = $id and position >= $begin order by position "
        f"limit {TURNS + 1}", id=session_id, begin=begin)


def turn_of(source: RowSource, event_id: str) -> Row | None:
    """Return the turn that an event is (a message, a call or a call's result); None if it is none."""
    return source.row(
        "select session_id, position, turn_id from core.turns where turn_id = $id or result_id = $id limit 1", id=event_id)


def task(source: RowSource, task_id: str) -> Row:
    """Return all that the tables hold of a task, also of a new one. Raises Missing."""
    logged = source.row("select * from mart.tasks where task_id = $id", id=task_id)
    variant = source.row("select * from mart.variants where task_id = $id", id=task_id)
    if logged is None and variant is None:
        raise Missing(f"no task {task_id!r}", hint="look for it in its family or its environment")
    merged = {**(variant or {}), **(logged or {}), "made_from": variant["made_from"] if variant else None,
              "derived_from": (variant or {}).get("derived_from") or (logged or {}).get("derived_from")}
    rows = source.rows(
        "select session_id, started_at, probability from core.sessions join mart.outcomes using (session_id) "
        "where session_id in (select unnest($ids)) order by probability desc nulls last, session_id",
        ids=merged["session_ids"]) if merged["session_ids"] else []
    good = merged.get("succeeded_session_ids") or []
    return {
        **merged, "slots": json.loads(merged["slots"]),
        "sessions": [{**row, "has_succeeded": row["session_id"] in good} for row in rows],
        "name": (source.row("select name from mart.names where family = $id", id=merged["family"]) or {}).get("name"),
        "decisions": source.rows(_DECISIONS, id=task_id), "is_published": source.row(
            "select 1 from mart.decisions where stage = 'verify' and subject = $id and kept", id=task_id) is not None}


def outcomes(source: RowSource) -> dict[str, int]:
    """Count sessions by outcome, in the order of OUTCOMES."""
    rows = source.rows(f"select {OUTCOME_SQL} as outcome, count(*) as n from {_JUDGED} group by outcome")
    return {name: next((row["n"] for row in rows if row["outcome"] == name), 0) for name in OUTCOMES}


def times(source: RowSource) -> Times:
    """Return outcomes by the hour, day, week, month or year: at most about `MOST` steps."""
    span = source.row("select min(started_at) as first, max(started_at) as last, "
                      "count(*) filter (started_at is null) as n_timeless from core.sessions")
    assert span is not None
    if span["first"] is None:
        return Times("day", [], [], span["n_timeless"])
    days = (span["last"] - span["first"]).total_seconds() / 86400
    step = next((step for step, most in _SPANS if days <= most), "year")
    at = f"strftime(date_trunc('{step}', started_at), '%Y-%m-%dT%H:%M:%SZ')"
    base = f"from {_JUDGED} where started_at is not null group by all"
    rows = source.rows(f'select {at} as "at", {OUTCOME_SQL} as outcome, count(*) as n {base} order by all')
    rates = source.rows(f'select {at} as "at", count(probability) as n, avg(probability) as mean {base} '
                        "having count(probability) > 0 order by all")
    return Times(step, rows, [{**row, "mean": round(row["mean"], 4)} for row in rates], span["n_timeless"])


def difficulty(source: RowSource) -> list[Row]:
    """Return {"difficulty_band", "split", "n"}: tasks by how often they succeed; None: not known."""
    return source.rows("select difficulty_band, split, count(*) as n from mart.tasks group by all order by all")


def splits(source: RowSource) -> list[Row]:
    """Return {"service", "split", "n_tasks", "n_sessions"}."""
    return source.rows(
        "select service, split, count(*) as n_tasks, sum(len(session_ids))::bigint as n_sessions from mart.tasks "
        f"group by service, split order by service, split limit {3 * MOST}")


def leakage(source: RowSource) -> Some:
    """Return what the splits share, a row a service: the report as it stands in the warehouse."""
    reports = listed(source, "leakage")
    return reports._replace(rows=[{"service": row["service"], **json.loads(row["report"])} for row in reports.rows])
