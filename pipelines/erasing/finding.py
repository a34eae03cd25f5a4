"""What of a warehouse is a person's: their events, and the sessions, tasks and services that came from them.

Theirs is every session whose identity they are; every session in which one of their values stands, whoever speaks there: what
another session says of them cannot be cut out of it and leave the rest true, so that session goes as a whole; and of what
belongs to no session (row changes, business events, log lines) each event that holds one of their values. Lineage is by ids:
session ids (aliases too), ids of events, ids of tasks. Does not see what `identifiers` does not.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import polars as pl

from pipelines.erasing.identifiers import Identifiers
from pipelines.erasing.known import Known
from warehouse.schema import layout
from warehouse.store import Store

_TEXTS = ("session_id", "content", "call_id", "tool", "arguments", "name", "value", "usage")
_TURNS = "select turn_id as id, session_id from core.turns union all select result_id, session_id from core.turns"


class Theirs(NamedTuple):
    """What is a person's."""

    events: pl.DataFrame
    """event_id, record_id, file_id, session_id as in the log (null: none)."""
    sessions: list[str]
    """Sessions as they were put together (`core.sessions`), sorted."""
    names: list[tuple[str, str]]
    """(source, session id or alias) as in the log, sorted."""
    tasks: list[str]
    """Tasks and variants that came from their sessions, sorted."""
    services: list[str]
    """Services that they were seen in: what is fitted to all sessions of these moves at the next build."""

    @property
    def is_nothing(self) -> bool:
        """Nothing of the person is there."""
        return self.events.is_empty() and not self.sessions

    @property
    def lineage(self) -> set[str]:
        """Every id by which something that came from them can be told."""
        return {*self.events["event_id"], *self.sessions, *(name for _, name in self.names), *self.tasks}


def find(store: Store, person: Identifiers, known: Known) -> Theirs:
    """What of the warehouse is theirs."""
    hits = _speaking(store, person, known)
    sessions = _sessions(store, hits["event_id"].to_list(), set(), _identified(store, person))
    names = _aliases(store, {*hits.drop_nulls("session_id").select("source", "session_id").iter_rows(),
                             *_named(store, sessions)})
    sessions = _sessions(store, hits["event_id"].to_list(), {name for _, name in names}, sessions)
    events = _events(store, hits["event_id"].to_list(), names, sessions)
    tasks = _tasks(store, sessions)
    return Theirs(events, sessions, names, tasks, _services(store, events["event_id"].to_list(), sessions))


def speaks(store: Store, table: str, person: Identifiers) -> list[int]:
    """Numbers of the rows of a table (its `rowid`) in which a value of the person stands."""
    texts = [f"lower({name})" if kind == "VARCHAR" else f"lower(to_json({name})::varchar)"
             for name, kind, _ in layout().columns[table] if "VARCHAR" in kind or kind in ("BLOB", "JSON")]
    if not texts:
        return []
    needles = {f"n{number}": each for number, each in enumerate(_as_json(person.needles))}
    any_of = " or ".join(f"contains({text}, ${name})" for text in texts for name in needles)
    rows = store.read(f"select rowid as row, to_json(t)::varchar as text from {table} t where {any_of}", **needles)
    return [row for row, text in rows.iter_rows() if person.within(text)]


def _as_json(needles: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(each for needle in needles for each in (needle, needle.replace("\\", "\\\\"))))


def _speaking(store: Store, person: Identifiers, known: Known) -> pl.DataFrame:
    """event_id, source and session_id of the events in which the person is spoken of."""
    texts = [f"coalesce({name}, '')" for name in _TEXTS]
    needles = [*person.needles, *([known.names[0]] if len(known.names) > 1 else [])]
    any_of = " or ".join(f"contains(lower({text}), ${f'n{n}'})" for n in range(len(needles)) for text in texts)
    rows = store.read(
        f"select event_id, source, session_id, {', '.join(_TEXTS[1:])} from core.events where {any_of}",
        **{f"n{n}": needle for n, needle in enumerate(needles)})
    is_theirs = [
        any(person.within(text) for text in row[2:]) or person_is(person, row[2 + _TEXTS[1:].index("name")])
        or known.speaks(" ".join(text for text in row[2:] if text)) for row in rows.iter_rows()]
    return rows.select("event_id", "source", "session_id").filter(pl.Series(is_theirs, dtype=pl.Boolean))


def person_is(person: Identifiers, identity: str | None) -> bool:
    """Is somebody who is logged under this identity the person?"""
    return identity is not None and identity.strip().lower() in person.needles


def _identified(store: Store, person: Identifiers) -> list[str]:
    return store.read("select session_id from core.sessions where lower(trim(identity)) in (select unnest($values))",
                      values=person.needles)["session_id"].to_list()


def _sessions(store: Store, event_ids: list[str], names: set[str], known: list[str]) -> list[str]:
    """Sessions that hold these events, that have one of these names (a conversation beside it has it too), or are known."""
    found = store.read(
        f"select distinct session_id from ({_TURNS}) where id in (select unnest($events)) union "
        "select session_id from core.sessions where split_part(session_id, '~', 1) in (select unnest($names)) "
        "or session_id in (select unnest($names))", events=event_ids, names=sorted(names))
    return sorted({*found["session_id"], *known})


def _named(store: Store, sessions: list[str]) -> list[tuple[str, str]]:
    """(source, session id in the log) of events that these sessions are made of."""
    rows = store.read(
        f"select distinct source, session_id from core.events where session_id is not null and event_id in ("
        f"select id from ({_TURNS}) where session_id in (select unnest($sessions)))", sessions=sessions)
    return list(rows.iter_rows())


def _aliases(store: Store, names: set[tuple[str, str]]) -> list[tuple[str, str]]:
    """The names, and all that links say of the same sessions."""
    links = store.read("select source, session_id, value from core.events where kind = 'link' and value is not null")
    beside: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for source, session, alias in links.drop_nulls("session_id").iter_rows():
        beside.setdefault((source, session), []).append((source, alias))
        beside.setdefault((source, alias), []).append((source, session))
    waiting, found = list(names), set(names)
    while waiting:
        new = [each for each in beside.get(waiting.pop(), []) if each not in found]
        found.update(new)
        waiting += new
    return sorted(found)


def _events(store: Store, event_ids: list[str], names: list[tuple[str, str]], sessions: list[str]) -> pl.DataFrame:
    rows = store.read(
        "select event_id, record_id, file_id, session_id from core.events where event_id in (select unnest($events)) "
        "or (source, session_id) in (select (unnest($sources), unnest($names))) "
        f"or event_id in (select id from ({_TURNS}) where session_id in (select unnest($sessions)))",
        events=event_ids, sources=[source for source, _ in names], names=[name for _, name in names], sessions=sessions)
    return rows.sort("event_id")


def _tasks(store: Store, sessions: list[str]) -> list[str]:
    """Tasks of these sessions, and variants of these tasks or made from what these sessions did."""
    found = store.read(
        "with own as (select task_id from mart.tasks where list_has_any(session_ids || good_session_ids, $sessions)) "
        "select task_id from own union select task_id from mart.variants where derived_from in (select task_id from own) "
        "or list_has_any(session_ids, $sessions)", sessions=sessions)
    return found["task_id"].sort().to_list()


def _services(store: Store, event_ids: list[str], sessions: list[str]) -> list[str]:
    found = store.read(
        "select service from core.sessions where session_id in (select unnest($sessions)) union "
        "select service from mart.facts where event_id in (select unnest($events)) union "
        "select service from mart.recorded where event_id in (select unnest($events))", events=event_ids, sessions=sessions)
    return found["service"].sort().to_list()
