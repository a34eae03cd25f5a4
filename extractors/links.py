"""Aliases to sessions: a trace whose session another record, or another file, names.

In: events, some of which bear an alias (`trace:…`) for a session, and link events that say the session of an alias. Out: the
events with their sessions, and verdicts on links that contradict each other. Links hold within their source, over any number
of files in any order; an alias may stand for another alias. An alias that no link explains stays the session's id.
Does not see: that two ids are one session where no link says so.
"""

from __future__ import annotations

import polars as pl

from warehouse.records import Verdict

_Key = tuple[str, str]
"""Source and alias."""


def resolve(events: pl.DataFrame) -> tuple[pl.DataFrame, list[Verdict]]:
    """Events with the session that links say in place of its alias; link events stay as they are."""
    known, verdicts = _known(events)
    if not known:
        return events, []
    ends = _ends(known)
    names = pl.DataFrame([(source, alias, session) for (source, alias), session in ends.items()],
                         schema={"source": pl.String(), "session_id": pl.String(), "_session": pl.String()}, orient="row")
    joined = events.join(names, on=["source", "session_id"], how="left", maintain_order="left")
    named = pl.when(pl.col("kind") == "link").then("session_id").otherwise(pl.coalesce("_session", "session_id"))
    return joined.with_columns(named.alias("session_id")).drop("_session"), verdicts


def _known(events: pl.DataFrame) -> tuple[dict[_Key, str], list[Verdict]]:
    """Session (or further alias) of each alias; of two, the first in the order of the alphabet."""
    told = events.filter(
        (pl.col("kind") == "link") & pl.col("session_id").is_not_null() & pl.col("value").is_not_null()
        & (pl.col("session_id") != pl.col("value")))
    found: dict[_Key, str] = {}
    verdicts: list[Verdict] = []
    ordered = told.select("source", "value", "session_id", "event_id", "file_id").sort(pl.all())
    for source, alias, session, event_id, file_id in ordered.iter_rows():
        kept = found.setdefault((source, alias), session)
        if kept != session:
            verdicts.append(Verdict(
                stage="sessions", subject=event_id, kept=False, reason="conflicting_link", file_id=file_id,
                detail=f"{alias} is said to belong to session {session} and to session {kept}; {kept} is taken; mend the log "
                "that is wrong."))
    return found, verdicts


def _ends(known: dict[_Key, str]) -> dict[_Key, str]:
    """Where each chain of aliases ends; one that runs in a circle ends at the first of it in the order of the alphabet."""
    ends: dict[_Key, str] = {}
    for key in known:
        source, name = key
        trail: list[str] = []
        seen: set[str] = set()
        while (source, name) in known and (source, name) not in ends and name not in seen:
            trail.append(name)
            seen.add(name)
            name = known[source, name]
        if name in seen:
            name = min(trail[trail.index(name):])
        end = ends.get((source, name), name)
        ends.update({(source, alias): end for alias in trail})
    return ends
