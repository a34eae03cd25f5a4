"""What the report says of a warehouse: SQL that is aggregated before it leaves DuckDB, and the audits beside it.

In: a published warehouse, the folder that a run wrote. Out: rows as dicts, none of them a session: their number is bounded by
`MOST` and by what is counted (services, tools, days), so a page made of them is as long for a hundred thousand sessions as for
a thousand. Every order is total: equal warehouses give equal rows.
"""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from pipelines.summary import ORDER
from warehouse.store import Store

Row = dict[str, Any]
MOST = 60
"""Rows of one kind that the page shows; how many there are besides is said."""
CLASSES = ("worked", "probably worked", "probably failed", "failed", "not judged")
"""What became of a session, by its probability: from .9, from .5, from .1, below, none."""
_CLASS = """case when probability is null then 'not judged' when probability >= .9 then 'worked'
    when probability >= .5 then 'probably worked' when probability >= .1 then 'probably failed' else 'failed' end"""
_SPANS = (("hour", 3), ("day", 64), ("week", 448), ("month", 1900))
"""Widths of the steps of time, and up to how many days each is taken; then years."""


class Some(NamedTuple):
    """The first rows of a kind."""

    rows: list[Row]
    n: int
    """How many there are in all."""

    @property
    def besides(self) -> int:
        """How many are not shown."""
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


def some(store: Store, columns: str, source: str, order: str, most: int = MOST) -> Some:
    """The first rows of a query in an order, and how many it has."""
    rows = store.read(f"select {columns}, count(*) over () as n_in_all from {source} order by {order} limit {most}")
    return Some(rows.drop("n_in_all").to_dicts(), int(rows["n_in_all"][0]) if rows.height else 0)


def identity(store: Store) -> Row:
    """What the page is about: digests of the files that were read and of the rooms that were published; no clock, no path."""
    files = store.read("select file_id from raw.files order by file_id")["file_id"].to_list()
    rooms = store.read("select environment, content_digest, rewards_digest from mart.environments order by environment")
    digest = hashlib.sha256(json.dumps([files, rooms.rows()]).encode()).hexdigest()
    return {"digest": digest, "logs": hashlib.sha256(json.dumps(files).encode()).hexdigest(), "n_files": len(files)}


def totals(store: Store) -> Row:
    """Counts of everything, and the first and last day."""
    return store.read("""select
        (select count(*) from core.sessions) as n_sessions, (select count(distinct service) from core.sessions) as n_services,
        (select count(*) from core.turns where kind = 'call') as n_calls, (select count(*) from core.tools) as n_tools,
        (select count(*) from mart.families) as n_families, (select count(*) from mart.tasks) as n_tasks,
        (select count(*) from raw.records) as n_records, (select count(*) from mart.environments) as n_environments,
        (select coalesce(sum(n_tasks), 0)::bigint from mart.environments) as n_published,
        (select count(*) from mart.variants where made_from = 'failure') as n_from_failures,
        (select count(*) from mart.variants where made_from != 'failure') as n_generated,
        (select strftime(min(started_at), '%-d %b %Y') from core.sessions) as first_day,
        (select strftime(max(started_at), '%-d %b %Y') from core.sessions) as last_day""").row(0, named=True)


def funnel(store: Store) -> list[Row]:
    """{"stage", "kept", "n_left", "why"} in the order that a session goes through the stages."""
    rows = store.read("""select stage, coalesce(sum(n) filter (kept), 0)::bigint as kept,
            coalesce(sum(n) filter (not kept), 0)::bigint as n_left,
            list(reason || ' ' || n order by n desc, reason) filter (not kept) as why
        from mart.funnel where stage not in ('drift', 'names') group by stage order by stage""").to_dicts()
    return sorted(rows, key=lambda row: ORDER.index(row["stage"]) if row["stage"] in ORDER else len(ORDER))


def left(store: Store) -> Some:
    """{"stage", "reason", "n", "example"}: why something was left, the most frequent first, with one of its sentences."""
    return some(store, "stage, reason, count(*) as n, arg_min(detail, subject) as example",
                "mart.verdicts where not kept and stage != 'drift' group by stage, reason", "n desc, stage, reason")


def families(store: Store) -> Some:
    """Families with their names, the largest first."""
    return some(
        store, "service, family, coalesce(name, family) as name, coalesce(sentence, goal) as sentence, n_sessions, n_tasks, "
        "n_good, rate, rate_low, rate_high, band",
        "mart.families left join mart.names using (service, family)", "n_sessions desc, service, name, family")


def family_sessions(store: Store) -> int:
    """Sessions of all families together; one that asks for two things belongs to the family of both."""
    return int(store.read("select coalesce(sum(n_sessions), 0)::bigint as n from mart.families").item())


def outcomes(store: Store) -> dict[str, int]:
    """Sessions by what became of them, in the order of CLASSES."""
    found = dict(store.read(
        f"select {_CLASS} as outcome, count(*) as n from core.sessions left join mart.outcomes using (session_id) "
        "group by outcome").iter_rows())
    return {name: found.get(name, 0) for name in CLASSES}


def times(store: Store) -> Times:
    """Outcomes by the hour, day, week, month or year: at most about `MOST` steps."""
    first, last, n_timeless = store.read(
        "select min(started_at), max(started_at), count(*) filter (started_at is null) from core.sessions").row(0)
    if first is None:
        return Times("day", [], [], n_timeless)
    step = _step(first, last)
    base = "from core.sessions left join mart.outcomes using (session_id) where started_at is not null"
    at = f"strftime(date_trunc('{step}', started_at), '%Y-%m-%dT%H:%M:%SZ')"
    rows = store.read(f'select {at} as "at", {_CLASS} as outcome, count(*) as n {base} group by all order by all').to_dicts()
    rates = store.read(f'select {at} as "at", count(probability) as n, avg(probability) as mean {base} group by all '
                       "having count(probability) > 0 order by all").to_dicts()
    return Times(step, rows, [{**row, "mean": round(row["mean"], 4)} for row in rates], n_timeless)


def _step(first: datetime, last: datetime) -> str:
    days = (last - first).total_seconds() / 86400
    return next((step for step, most in _SPANS if days <= most), "year")


def signals(store: Store) -> Some:
    """What each side of each signal of success was found to be worth."""
    return some(store, "service, signal, side, n_votes, coverage, agreement, round(log_odds, 3) as log_odds", "mart.signals",
                "service, abs(log_odds) desc, signal, side")


def bands(store: Store) -> list[Row]:
    """{"band", "split", "n"}: tasks by how often they succeed; a band of None cannot be told."""
    return store.read("select band, split, count(*) as n from mart.tasks group by all order by all").to_dicts()


def fidelity(store: Store) -> Some:
    """Tools with what was found of them, the most called first."""
    return some(
        store, "service, tool, coalesce(effect, 'unknown') as effect, n_calls, coalesce(n_support, 0) as n_support, "
        "coalesce(n_against, 0) as n_against, round(fidelity, 4) as fidelity, round(abstains, 4) as abstains",
        "core.tools left join mart.behaviours using (service, tool)", "n_calls desc, service, tool")


def splits(store: Store) -> list[Row]:
    """{"service", "split", "n_tasks", "n_sessions"}."""
    return store.read(
        "select service, split, count(*) as n_tasks, sum(len(session_ids))::bigint as n_sessions from mart.tasks "
        f"group by service, split order by service, split limit {3 * MOST}").to_dicts()


def leakage(store: Store) -> Some:
    """What the sides of the split share, a row a service: the report as it stands in the warehouse."""
    found = some(store, "service, report", "mart.leakage", "service")
    return found._replace(rows=[{"service": row["service"], **json.loads(row["report"])} for row in found.rows])


def drift(store: Store) -> Some:
    """What changed in what the logs are made of: a sentence each."""
    return some(store, "reason, detail", "mart.verdicts where stage = 'drift'", "subject, reason")


def environments(store: Store) -> Some:
    """The published rooms."""
    return some(store, "environment, service, n_tasks, n_tools, content_digest, rewards_digest, image_id, image_left",
                "mart.environments", "n_tasks desc, environment")


def datasets(store: Store) -> Some:
    """The files to train on."""
    return some(store, "path, kind, split, n_rows, n_bytes, sha256", "mart.datasets", "path")


def beside(folder: Path, names: list[str], within: tuple[str, str]) -> list[tuple[str, Row]]:
    """(name, JSON document) of the files `folder/<within 0>/<name>/<within 1>` that are there."""
    found = [(name, folder / within[0] / name / within[1]) for name in names]
    return [(name, json.loads(path.read_bytes())) for name, path in found if path.is_file()]
