"""What logs could become, without a build: what is in them, what is missing, and what would help most if it were logged.

Reads the logs into a warehouse of its own that is deleted afterwards, with the stages that every run begins with. Detects calls
without results, results without calls, texts that were cut, tools without a declaration, sessions that had to be put together
without an id, absent times, users, system prompts and feedback, several versions of a tool, and how sessions begin. Does not
detect what a build finds out: which tools write, what is a task, whether sessions agree on an end. Texts count as cut if they
say so, or if several of one kind end at the very same greatest length: answers of a fixed length look so too.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Any, NamedTuple

import polars as pl

from env_builder.world import find_beginning
from extractors.configuration import load
from extractors.inventory import discover
from pipelines.running.stage import carry_out
from pipelines.settings import Settings
from pipelines.stages import STAGES
from warehouse.store import Store

MOST_BYTES = 128 * 2 ** 20
"""Bytes of logs that are read: about a minute."""
MINIMUM_CUT, SAME_LENGTH = 200, 3
"""Characters from which a text can be cut, and how many distinct texts of the greatest length show it."""
_SAYS_CUT = r"(?i)(?:\[?(?:\.\.\.|…)?\s*[\[(<]?truncated[\])>]?|…|\[cut\])\s*$"
Row = dict[str, Any]


class Gap(NamedTuple):
    """Something that the logs lack."""

    field: str
    """What to log."""
    lacks: str
    """What lacks it, as a noun: sessions, calls, tools, texts."""
    weight: float
    """How much of a build depends on it, in [0, 1]; a judgement, by which gaps are ordered."""
    gives: str
    """What it would make possible."""
    sql: str
    """Query of one row: how many lack it, of how many, an example."""


_OF_SESSIONS = "select count(*) filter ({lacks}), count(*), min(session_id) filter ({lacks}) from core.sessions as s"
_SAYS = "not exists (select 1 from core.turns as t where t.session_id = s.session_id and t.role = '{role}')"
GAPS = (
    Gap("result of every call", "calls", 1.0, "answers of tools; a call without one is unknown",
        "select count(*) filter (content is null), count(*), min(session_id || ', ' || tool) filter (content is null) "
        "from core.turns where kind = 'call'"),
    Gap("id of the session", "sessions", 0.9, "whole sessions; without it they are put together by people, times and texts",
        _OF_SESSIONS.format(lacks="session_id like '~%'")),
    Gap("messages of the user", "sessions", 0.9, "tasks with a request; without it a session is no task",
        _OF_SESSIONS.format(lacks=_SAYS.format(role="user"))),
    Gap("whole texts", "texts", 0.8, "answers byte for byte; a cut one is no document",
        f"with texts as (select distinct kind, coalesce(tool, role) as who, content, length(content) as n, session_id "
        f"from core.turns where content is not null and length(content) >= {MINIMUM_CUT}), "
        f"longest as (select kind, who, max(n) as n from texts group by all), "
        f"same as (select kind, who, n from texts join longest using (kind, who, n) group by all "
        f"having count(distinct content) >= {SAME_LENGTH}) "
        f"select count(*) filter (is_cut), count(*), min(session_id) filter (is_cut) from (select texts.*, same.n is not null "
        f"or regexp_matches(content, '{_SAYS_CUT}') as is_cut from texts left join same using (kind, who, n))"),
    Gap("feedback, or the outcome", "sessions", 0.7, "which sessions succeeded; without it only the words tell",
        _OF_SESSIONS.format(lacks="session_id not in (select session_id from core.feedback)")),
    Gap("call id of every result", "results", 0.7, "results at their calls; others are rejected",
        "select (select count(*) from core.events where kind = 'result') - count(result_id), "
        "(select count(*) from core.events where kind = 'result'), null from core.turns"),
    Gap("time of every event", "sessions", 0.6, "the order of sessions, so that a shared world can be rebuilt",
        _OF_SESSIONS.format(lacks="started_at is null")),
    Gap("list of tools with their schemas", "tools", 0.5, "descriptions and types that agents see; others are inferred",
        "select count(*) filter (not declared), count(*), min(tool) filter (not declared) from core.tools"),
    Gap("system prompt", "sessions", 0.4, "the policy that the agent must keep, and rewards that check it",
        _OF_SESSIONS.format(lacks=_SAYS.format(role="system"))),
    Gap("id of the user", "sessions", 0.3, "splits that keep a person in one split, and sessions without an id",
        _OF_SESSIONS.format(lacks="identity is null")),
)
HELPFUL = 5
"""Fields that are named as those that would help most."""


def audit_logs(logs: tuple[str, ...], config: str | None = None) -> Row:
    """Return {"read", "sources", "rejected", "services", "gaps", "fields_that_help", "notes"}. Raises InputError."""
    chosen, read = _chosen(logs, config)
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(logs=chosen, out=folder, configuration=config, privacy=False)
        for stage in STAGES[:2]:
            carry_out(stage, settings)
        with Store.open(settings.warehouse, write=False) as store:
            gaps = list(_gaps(store))
            return {
                "read": read, "sources": store.read("select * from sources").to_dicts(), "rejected": _rejected(store),
                "services": list(_services(store)), "gaps": gaps,
                "fields_that_help": [gap["field"] for gap in sorted(gaps, key=_loss)[:HELPFUL]],
                "notes": [*_notes(store)]}


def _loss(gap: Row) -> tuple[float, str]:
    return -gap["weight"] * gap["share"], gap["field"]


def _chosen(logs: tuple[str, ...], config: str | None) -> tuple[tuple[str, ...], Row]:
    """Return what to read, and how much that is: the first file, and more while they fit."""
    files, _ = discover(logs, configuration=load(config) if config else None)
    sizes = [file.stamp().n_bytes for file in files]
    n_files = next((place for place in range(1, len(files)) if sum(sizes[:place + 1]) > MOST_BYTES), len(files))
    chosen = logs if n_files == len(files) else tuple(file.place for file in files[:n_files])
    return chosen, {"n_files": n_files, "n_bytes": sum(sizes[:n_files]), "n_files_of_all": len(files)}


def _gaps(store: Store) -> Iterator[Row]:
    for gap in GAPS:
        n, n_of, example = store.read(gap.sql).row(0)
        if n > 0:
            yield {"field": gap.field, "n": n, "of": n_of, "lacks": gap.lacks, "share": round(n / n_of, 4), "example": example,
                   "gives": gap.gives, "weight": gap.weight}


def _rejected(store: Store) -> list[Row]:
    return store.read("select stage, reason, n, detail as example from rejected order by n desc, reason").to_dicts()


def _services(store: Store) -> Iterator[Row]:
    """Yield a row a service: sessions, period, tools, what may become tasks, and how sessions begin."""
    sessions, turns = store.table("core.sessions"), store.table("core.turns")
    tools = store.read("select service, count(*) as n from core.tools group by service")
    n_tools = dict(tools.iter_rows())
    for service in sessions["service"].unique().sort():
        own = sessions.filter(pl.col("service") == service)
        mine = turns.filter(pl.col("service") == service)
        requested = set(mine.filter(pl.col("role") == "user")["session_id"])
        calls = mine.filter((pl.col("kind") == "call") & pl.col("content").is_not_null())
        kinds = calls.filter(pl.col("session_id").is_in(list(requested))).group_by("session_id").agg(
            pl.col("tool").unique().sort())
        calling = own.filter(pl.col("n_calls") > 0)
        beginning = find_beginning(calling, mine.join(calling, on="session_id", how="semi")) if calling.height > 1 else None
        yield {
            "service": service, "n_sessions": own.height, "first": own["started_at"].min(), "last": own["ended_at"].max(),
            "n_messages": int(own["n_messages"].sum()), "n_calls": int(own["n_calls"].sum()),
            "n_tools": n_tools.get(service, 0),
            "n_may_be_tasks": kinds.height, "n_kinds_of_work": kinds["tool"].n_unique() if kinds.height else 0,
            "begins": beginning.starts_from if beginning is not None and beginning.decided_by else None,
            "votes": beginning.votes if beginning is not None else {}}


def _notes(store: Store) -> Iterator[str]:
    """Yield a sentence for each thing that is no gap and that a reader of the figures must know."""
    versions = store.read("select tool, count(distinct input_schema) as n from raw.declarations group by tool having n > 1 "
                          "order by n desc, tool")
    if versions.height:
        yield (f"{versions.height:,} tools are declared in several versions ({versions['tool'][0]}: {versions['n'][0]}): a new "
               f"deploy, or several tenants")
    several = store.read("select count(*) from (select identity from core.sessions where identity is not null "
                         "group by identity having count(distinct service) > 1)").item()
    if several:
        yield f"{several:,} users have sessions of several services"
    ratings = store.read("select name, count(*) as n, count(distinct value) as n_values from core.feedback group by name "
                         "order by n desc, name")
    for name, n, values in ratings.iter_rows():
        yield f"feedback: {name}, {n:,} times with {values:,} values"
