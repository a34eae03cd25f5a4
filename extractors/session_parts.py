"""Assemble the conversations of one log by parts: what is held is one part, and a few numbers of each conversation.

In: the events of conversations, in parts that each hold all events of their sessions. Out: the sessions, and each part's turns,
which the caller stores: the same as `extractors.sessions.assemble` makes of all at once, whatever the parts are.

Conversations of one log may be one (requests with the history so far) or be in doubt (they share an id): `_may_be_same` finds
them by hashes of their beginnings and of their ids, so that it may take some that are not, but misses none. These are assembled
together afterwards. Does not see: conversations that several logs tell; these want all at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import polars as pl

from extractors.request_chains import is_request, marks_of
from extractors.sessions import Woven, weave
from extractors.tellings import LoggedTalk
from warehouse.records import Decision, Session, empty

_ID, _WHOLE, _BEGINS = range(3)
_TRACES = {"place": pl.Int64(), "what": pl.Int64(), "mark": pl.Int64()}
"""Of a conversation: its place in the part, and a hash of an id of it, of all that it tells, or of what it tells up to one that
is not the last."""


class PartedSessions(NamedTuple):
    """What `assemble_parts` gives besides the turns."""

    sessions: pl.DataFrame
    """Frame of `Session`."""
    decisions: list[Decision]
    names: dict[str, str]
    """Session id -> that of the session which is the same conversation."""


class _WovenPart(NamedTuple):
    sessions: pl.DataFrame
    decided: list[tuple[str | None, Decision]]
    names: list[tuple[str, str]]
    """Session id of its events, and of the session made of them, of each conversation."""
    traces: pl.DataFrame
    """Columns of `_TRACES`."""
    apart: Counter[str]
    """By session id of events: conversations that are no single request."""


def assemble_parts(parts: Sequence[Callable[[], pl.DataFrame]], aliases: dict[str, list[str]], gap_minutes: float,
                   store: Callable[[pl.DataFrame], None], drop: Callable[[set[str]], None]) -> PartedSessions:
    """Assemble the sessions of one log. `parts`: each gives its events, with links applied (`names_by_alias`). `aliases`: of
    `aliases_in`. `store`: takes turns; `drop`: takes away those that it was given of some sessions."""
    made = [_woven(part(), aliases, gap_minutes, store) for part in parts]
    tied = _may_be_same(made)
    sessions = pl.concat([empty(Session), *(each.sessions for each in made)])
    decisions = [decision for each in made for of, decision in each.decided if of not in tied]
    woven = Woven()
    if tied:
        gone = {name for each in made for of, name in each.names if of in tied}
        drop(gone)
        again = pl.concat([part().filter(pl.col("session_id").is_in(list(tied))) for part in parts])
        n_apart = sum(n for each in made for of, n in each.apart.items() if of not in tied)
        woven.unite(weave(again, gap_minutes, woven), aliases, gap_minutes, n_apart)
        store(woven.turns_frame)
        sessions = pl.concat([sessions.filter(~pl.col("session_id").is_in(list(gone))), woven.sessions_frame])
        decisions += [decision for _, decision in woven.decided]
    return PartedSessions(sessions.sort("session_id"), decisions, woven.names)


def _woven(events: pl.DataFrame, aliases: dict[str, list[str]], gap_minutes: float,
           store: Callable[[pl.DataFrame], None]) -> _WovenPart:
    woven = Woven()
    columns = weave(events, gap_minutes, woven)
    names = [(str(columns["session_id"][rows[0]]), name) for name, rows in woven.conversations]
    traces: list[tuple[int, int, int]] = []
    apart = Counter[str]()
    for place, ((of, _), telling) in enumerate(zip(names, woven.tell(columns, aliases), strict=True)):
        if telling.parts:
            traces += ((place, *trace) for trace in _traces(telling))
            apart[of] += not is_request(telling.parts)
    woven.add_apart(columns)
    store(woven.turns_frame)
    return _WovenPart(woven.sessions_frame, woven.decided, names, pl.DataFrame(traces, schema=_TRACES, orient="row"), apart)


def _traces(telling: LoggedTalk) -> Iterator[tuple[int, int]]:
    yield from ((_ID, hash(each)) for each in telling.ids)
    *begins, whole = marks_of(telling.parts)
    yield _WHOLE, whole
    yield from ((_BEGINS, each) for each in begins)


def _may_be_same(made: Sequence[_WovenPart]) -> set[str]:
    """Return the session ids whose conversations share an id with another one, begin with all of another one, or are such a
    beginning."""
    numbered = [each.traces.with_columns(pl.lit(number, pl.Int64()).alias("part")) for number, each in enumerate(made)]
    every = pl.concat([pl.DataFrame(schema=_TRACES | {"part": pl.Int64()}), *numbered])
    shared = every.filter(pl.col("what") == _ID).filter(pl.struct("part", "place").n_unique().over("mark") > 1)
    whole, begins = every.filter(pl.col("what") == _WHOLE), every.filter(pl.col("what") == _BEGINS)
    chained = [whole.join(begins, on="mark", how="semi"), begins.join(whole, on="mark", how="semi")]
    return {made[part].names[place][0] for part, place in pl.concat([shared, *chained]).select("part", "place").iter_rows()}
