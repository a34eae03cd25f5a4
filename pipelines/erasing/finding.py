"""A person's data in a warehouse: their events, and the sessions, tasks and services that came from them.

Theirs is every session whose identity they are; every session that contains one of their values, by any speaker, as a
whole: without these events the rest would not be true; and of data outside of sessions (row changes, business events, log
lines) each event that contains one of their values. Lineage is by ids: session ids (aliases too), ids of events, ids of tasks.
Does not see what `identifiers` does not.
"""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from pipelines.erasing.identifiers import Identifiers, NameMatch
from warehouse.schema import layout
from warehouse.store import Store

_TEXTS = ("session_id", "content", "call_id", "tool", "arguments", "name", "value", "usage")
_TURNS = "select turn_id as id, session_id from core.turns union all select result_id, session_id from core.turns"


class Theirs(NamedTuple):
    """A person's data."""

    events: pl.DataFrame
    """event_id, record_id, file_id, session_id as in the log (null: none)."""
    sessions: list[str]
    """Sessions as they were put together (`core.sessions`), sorted."""
    names: list[tuple[str, str]]
    """(source, session id or alias) as in the log, sorted."""
    tasks: list[str]
    """Tasks and variants that came from their sessions, sorted."""
    services: list[str]
    """Services that they used: models fitted to all sessions of these change at the next build."""

    @property
    def is_nothing(self) -> bool:
        """Whether there is no data of the person."""
        return self.events.is_empty() and not self.sessions

    @property
    def lineage(self) -> set[str]:
        """Every id that shows that a record came from them."""
        return {*self.events["event_id"], *self.sessions, *(name for _, name in self.names), *self.tasks}


def find(store: Store, person: Identifiers, name_match: NameMatch) -> Theirs:
    """Find the person's data in the warehouse."""
    hits = _mentions(store, person, name_match)
    event_ids = hits["event_id"].to_list()
    identified = store.read("select session_id from core.sessions where lower(trim(identity)) in (select unnest($values))",
                            values=person.needles)["session_id"].to_list()
    sessions = _sessions(store, event_ids, set(), identified)
    named = store.read(
        f"select distinct source, session_id from core.events where session_id is not null and event_id in ("
        f"select id from ({_TURNS}) where session_id in (select unnest($sessions)))", sessions=sessions)
    links = store.read("select source, session_id, value from core.events where kind = 'link' and value is not null")
    linked: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for source, session, alias in links.drop_nulls("session_id").iter_rows():
        linked.setdefault((source, session), []).append((source, alias))
        linked.setdefault((source, alias), []).append((source, session))
    reached = {*hits.drop_nulls("session_id").select("source", "session_id").iter_rows(), *named.iter_rows()}
    _add_linked(reached, linked)
    sessions = _sessions(store, event_ids, {name for _, name in reached}, sessions)
    reached |= _in_other_logs(store, sessions, {name for _, name in reached})
    _add_linked(reached, linked)
    names = sorted(reached)
    sessions = _sessions(store, event_ids, {name for _, name in names}, sessions)
    events = store.read(
        "select event_id, record_id, file_id, session_id from core.events where event_id in (select unnest($events)) "
        "or (source, session_id) in (select (unnest($sources), unnest($names))) "
        f"or event_id in (select id from ({_TURNS}) where session_id in (select unnest($sessions)))",
        events=event_ids, sources=[source for source, _ in names], names=[name for _, name in names],
        sessions=sessions).sort("event_id")
    tasks = store.read(  # of these sessions, and variants of these tasks or made from what these sessions did
        "with own as (select task_id from mart.tasks where list_has_any(session_ids || succeeded_session_ids, $sessions)) "
        "select task_id from own union select task_id from mart.variants where derived_from in (select task_id from own) "
        "or list_has_any(session_ids, $sessions)", sessions=sessions)
    services = store.read(
        "select service from core.sessions where session_id in (select unnest($sessions)) union "
        "select service from mart.facts where event_id in (select unnest($events)) union "
        "select service from mart.recorded where event_id in (select unnest($events))",
        events=events["event_id"].to_list(), sessions=sessions)
    return Theirs(events, sessions, names, tasks["task_id"].sort().to_list(), services["service"].sort().to_list())


def _add_linked(reached: set[tuple[str, str]], linked: dict[tuple[str, str], list[tuple[str, str]]]) -> None:
    """Add all aliases that links give the same sessions."""
    waiting = list(reached)
    while waiting:
        new = [each for each in linked.get(waiting.pop(), []) if each not in reached]
        reached.update(new)
        waiting += new


def _in_other_logs(store: Store, sessions: list[str], names: set[str]) -> set[tuple[str, str]]:
    """Return source and id of what other logs tell of the same conversations."""
    rows = store.read(
        "with one as (select list_append(other_session_ids, session_id) as ids from core.sessions "
        "where len(other_session_ids) > 0) select distinct source, session_id from core.events where session_id in ("
        "select split_part(unnest(ids), '~', 1) from one where list_has_any(ids, $ids)) or session_id in ("
        "select unnest(ids) from one where list_has_any(ids, $ids))", ids=sorted({*sessions, *names}))
    return {(source, session) for source, session in rows.drop_nulls("session_id").iter_rows()}


def rows_with(store: Store, table: str, person: Identifiers) -> list[int]:
    """Return the numbers of a table's rows (its `rowid`) that contain a value of the person."""
    texts = [f"lower({name})" if kind == "VARCHAR" else f"lower(to_json({name})::varchar)"
             for name, kind, _ in layout().columns[table] if "VARCHAR" in kind or kind in ("BLOB", "JSON")]
    if not texts:
        return []
    spellings = dict.fromkeys(each for needle in person.needles for each in (needle, needle.replace("\\", "\\\\")))
    needles = {f"n{number}": each for number, each in enumerate(spellings)}
    any_of = " or ".join(f"contains({text}, ${name})" for text in texts for name in needles)
    rows = store.read(f"select rowid as row, to_json(t)::varchar as text from {table} t where {any_of}", **needles)
    return [row for row, text in rows.iter_rows() if person.within(text)]


def _mentions(store: Store, person: Identifiers, name_match: NameMatch) -> pl.DataFrame:
    """Return event_id, source and session_id of the events that mention the person."""
    texts = [f"coalesce({name}, '')" for name in _TEXTS]
    needles = [*person.needles, *([name_match.names[0]] if len(name_match.names) > 1 else [])]
    any_of = " or ".join(f"contains(lower({text}), ${f'n{n}'})" for n in range(len(needles)) for text in texts)
    rows = store.read(
        f"select event_id, source, session_id, {', '.join(_TEXTS[1:])} from core.events where {any_of}",
        **{f"n{n}": needle for n, needle in enumerate(needles)})
    is_theirs = [
        any(person.within(text) for text in row[2:]) or person.is_called(row[2 + _TEXTS[1:].index("name")])
        or name_match.speaks(" ".join(text for text in row[2:] if text)) for row in rows.iter_rows()]
    return rows.select("event_id", "source", "session_id").filter(pl.Series(is_theirs, dtype=pl.Boolean))


def _sessions(store: Store, event_ids: list[str], names: set[str], session_ids: list[str]) -> list[str]:
    """Return the sessions with these events, those with one of these names (also as a parallel conversation), and these."""
    rows = store.read(
        f"select distinct session_id from ({_TURNS}) where id in (select unnest($events)) union "
        "select session_id from core.sessions where split_part(session_id, '~', 1) in (select unnest($names)) "
        "or session_id in (select unnest($names))", events=event_ids, names=sorted(names))
    return sorted({*rows["session_id"], *session_ids})
