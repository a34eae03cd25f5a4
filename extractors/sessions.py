"""Events to sessions: aliases resolved, histories joined, calls with their results, the same session of two formats once.

In: frames of `core.events` and `raw.declarations`. Out: frames of sessions, turns, feedback, row changes, tools and verdicts.
The order of the events does not matter. Sees session ids as logged, links, overlap of histories, identity and pauses. Of a
session in two formats the richer telling is taken, and what the other knows of its parts (times, errors) is filled in; what
the other alone tells stays in the events. Does not see that two ids are one visit where no link says so. Business events make
sessions where they show a routine (`clicks`); reasoning, other business events and log lines stay in the events.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import orjson
import polars as pl

from extractors import clicks, links, routes
from extractors.corrections import corrections
from extractors.opinions import opinions
from extractors.shelf import Thread
from extractors.spelled import object_of
from extractors.tellings import Columns, pairs, take
from extractors.threads import Run, Weaver
from extractors.tools import tools_of
from extractors.turns import turns_of
from warehouse.records import Declaration, RowChange, Session, Turn, Verdict, empty, frame, frame_schema

_NO_SERVICE = "main"
_SPOKEN = ("message", "call", "result")
_INSTANTS = {"happened_at", "answered_at", "started_at", "ended_at"}


@dataclass(frozen=True)
class Sessions:
    """Tables of `core`, and what became of the rest."""

    sessions: pl.DataFrame
    turns: pl.DataFrame
    feedback: pl.DataFrame
    row_changes: pl.DataFrame
    corrections: pl.DataFrame
    tools: pl.DataFrame
    verdicts: pl.DataFrame


def assemble(events: pl.DataFrame, declarations: pl.DataFrame | None = None, gap_minutes: float = 30.0) -> Sessions:
    """Sessions from events of any number of files, in any order.

    `gap_minutes`: a pause of one identity longer than this begins a new session where the log names none.
    """
    declarations = empty(Declaration) if declarations is None else declarations
    events, conflicts = links.resolve(events.unique("event_id", maintain_order=False))
    woven = _Woven()
    woven.verdicts += conflicts
    _conversations(events, gap_minutes, woven)
    requests = _apart(routes.assemble(events.filter(pl.col("kind") == "request"), gap_minutes), woven)
    runs, actions = clicks.assemble(events)
    sessions = pl.concat([_frame(Session, woven.sessions), requests.sessions, runs]).sort("session_id")
    turns = pl.concat([_frame(Turn, woven.turns), requests.turns, actions]).sort("session_id", "position")
    tools, left = tools_of(turns, declarations)
    feedback, lost = opinions(events, sessions)
    corrected, gone = corrections(events, sessions)
    verdicts = [frame(Verdict, woven.verdicts), left, lost, gone, _kept(sessions)]
    return Sessions(sessions, turns, feedback, _row_changes(events), corrected, tools,
                    pl.concat(verdicts).unique(["stage", "subject", "reason"], keep="first").sort("subject", "reason"))


class _Woven:
    """Rows made so far."""

    def __init__(self) -> None:
        self.sessions: list[dict[str, Any]] = []
        self.turns: list[dict[str, Any]] = []
        self.verdicts: list[Verdict] = []

    def add(self, session_id: str, thread: Thread, columns: Columns) -> None:
        """A session and its turns."""
        rows = thread.rows
        service = _most_frequent([columns["service"][row] for row in rows])
        turns, verdicts = turns_of(session_id, service, rows, columns)
        times = [t for turn in turns for t in (turn["happened_at"], turn["answered_at"]) if t is not None]
        n_calls = sum(turn["kind"] == "call" for turn in turns)
        self.sessions.append({
            "session_id": session_id, "source": columns["source"][rows[0]], "service": service,
            "started_at": min(times, default=None), "ended_at": max(times, default=None),
            "n_messages": len(turns) - n_calls, "n_calls": n_calls,
            "identity": next((name for row in rows if (name := columns["name"][row]) is not None), None),
            "format": columns["format"][rows[0]]})
        self.turns += turns
        self.verdicts += verdicts


def _conversations(events: pl.DataFrame, gap_minutes: float, woven: _Woven) -> None:
    columns, groups = _runs(_spoken(events, gap_minutes))
    for session_id, versions in groups.items():
        told: list[tuple[str, list[Thread]]] = []
        for log_format, runs in sorted(versions.items()):
            weaver = Weaver(columns)
            weaver.weave(runs)
            told.append((log_format, weaver.threads))
            woven.verdicts += _told_again(session_id, weaver, columns)
        _choose(session_id, told, columns, woven)


def _apart(requests: routes.Requests, woven: _Woven) -> routes.Requests:
    """Requests logged under the id of a conversation, as a session of their own beside it: what the application was asked
    while the conversation ran is another telling, by another service, and neither is lost.
    """
    taken = requests.sessions.filter(pl.col("session_id").is_in([each["session_id"] for each in woven.sessions]))
    names = {session_id: f"{session_id}~requests" for session_id in taken["session_id"].sort()}
    for session_id, name in names.items():
        woven.verdicts.append(Verdict(
            stage="sessions", subject=name, kept=True, reason="shared_session_id",
            detail=f"session id {session_id} stands for a conversation and for requests to an application; the requests are "
            f"kept as {name}; nothing to mend."))
    named = pl.col("session_id").replace(names)
    return routes.Requests(requests.sessions.with_columns(named), requests.turns.with_columns(named))


def _spoken(events: pl.DataFrame, gap_minutes: float) -> pl.DataFrame:
    """Events of conversations with a session each and a position each; candidates that were not taken are left out."""
    spoken = events.filter(pl.col("kind").is_in(_SPOKEN) & ~pl.col("lossy").fill_null("").str.contains('"candidate '))
    named = spoken.filter(pl.col("session_id").is_not_null()).with_columns(pl.lit(False).alias("steps"))
    nameless = routes.cut(spoken.filter(pl.col("session_id").is_null()), gap_minutes)
    order = ["happened_at", "record_id", "event_id"]
    both = pl.concat([named, _in_order(nameless)]).sort(order, nulls_last=False)
    keys = ["session_id", "format", "file_id"]
    both = both.with_columns(pl.col("position").fill_null(pl.int_range(pl.len()).over(keys)))
    restarted = pl.col("position").n_unique().over(keys) < pl.len().over(keys)
    run = ["session_id", "format", "run_id"]
    return both.with_columns(
        pl.when("steps").then(pl.lit("")).when(restarted).then("record_id").otherwise("file_id").alias("run_id"),
        pl.col("happened_at").dt.epoch("us"),
    ).sort(pl.col("happened_at").min().over(run), pl.col("position").min().over(run), "run_id", "position", "event_id",
           nulls_last=False)


def _in_order(nameless: pl.DataFrame) -> pl.DataFrame:
    """Events without a session id; where each file holds one step of a conversation and no more, the steps in order of time
    (of those at one time instructions, what was said, calls, results, then by id) are one run.
    """
    group = ["session_id", "format"]
    side = pl.when(pl.col("kind") == "message").then("role").otherwise("kind").replace({"call": "assistant"})
    single = (side.n_unique().over("file_id") == 1) & (pl.col("record_id").n_unique().over("file_id") == 1)
    steps = single.all().over(group) & (pl.col("file_id").n_unique().over(group) > 1)
    found = nameless.with_columns(steps.alias("steps"))
    spoken = pl.when(pl.col("role").is_in(["system", "developer"])).then(pl.lit("system")).otherwise("kind")
    rank = spoken.replace_strict(["system", *_SPOKEN], [0, 1, 2, 3], return_dtype=pl.Int64)
    ordered = found.sort("happened_at", rank, "call_id", "record_id", "position", "event_id", nulls_last=False)
    return ordered.with_columns(
        pl.when("steps").then(pl.int_range(pl.len()).over(group)).otherwise("position").alias("position")).select(found.columns)


def _runs(spoken: pl.DataFrame) -> tuple[Columns, dict[str, dict[str, list[Run]]]]:
    """Columns of the events, and their runs by session and format, in order."""
    columns: Columns = spoken.to_dict(as_series=False)
    grouped = spoken.with_row_index("row").group_by(["session_id", "format", "run_id", "file_id"], maintain_order=True).agg(
        "row")
    groups: dict[str, dict[str, list[Run]]] = {}
    for session_id, log_format, run_id, file_id, rows in grouped.iter_rows():
        groups.setdefault(session_id, {}).setdefault(log_format, []).append(Run(run_id, file_id, log_format, rows))
    return columns, groups


def _choose(session_id: str, told: list[tuple[str, list[Thread]]], columns: Columns, woven: _Woven) -> None:
    """Of the formats that tell a session the richest is taken; its longest thread keeps the session's id.

    What another format tells of the same parts is filled in; one that tells no part of them tells another conversation.
    """
    ranked = sorted(told, key=lambda each: _riches(each[1], each[0], columns), reverse=True)
    chosen, threads = ranked[0]
    rows = [row for thread in threads for row in thread.rows]
    others: list[Thread] = []
    for log_format, again in ranked[1:]:
        same = pairs(rows, [row for thread in again for row in thread.rows], columns)
        for other, row in same.items():
            take(row, other, columns)
        if same:
            woven.verdicts.append(_duplicate(session_id, chosen, log_format, again, same, columns))
        else:
            others += again
    threads = sorted(threads, key=lambda each: _riches([each], "", columns), reverse=True)
    woven.add(session_id, threads[0], columns)
    for thread in [*threads[1:], *others]:
        name = f"{session_id}~{columns['event_id'][thread.rows[0]][:16]}"
        woven.add(name, thread, columns)
        woven.verdicts.append(Verdict(
            stage="sessions", subject=name, kept=True, reason="shared_session_id",
            detail=f"session id {session_id} stands for two conversations that have no common end; this one is kept as "
            f"{name}; give each its own id.", file_id=columns["file_id"][thread.rows[0]]))


def _duplicate(session_id: str, chosen: str, log_format: str, again: list[Thread], same: dict[int, int],
               columns: Columns) -> Verdict:
    alone = sum(columns["kind"][row] != "result" and row not in same for thread in again for row in thread.rows)
    beyond = f"; {alone} turns that {log_format} alone tells stay in the events" if alone else ""
    return Verdict(
        stage="sessions", subject=f"{session_id}@{log_format}", kept=False, reason="duplicate_session",
        detail=f"session {session_id} is in the logs as {chosen} and as {log_format}; the richer one, {chosen}, is taken, with "
        f"the times and errors that the other adds{beyond}.")


def _riches(threads: list[Thread], log_format: str, columns: Columns) -> tuple[int, int, str, str]:
    """More turns, then more bytes of content, then the format's name, then the first event's id."""
    rows = [row for thread in threads for row in thread.rows]
    n_turns = sum(columns["kind"][row] != "result" for row in rows)
    n_bytes = sum(len((columns["content"][row] or "").encode()) for row in rows)
    return n_turns, n_bytes, log_format, columns["event_id"][rows[0]]


def _told_again(session_id: str, weaver: Weaver, columns: Columns) -> list[Verdict]:
    again = [Verdict(stage="sessions", subject=f"{session_id}@{run.run_id[:16]}", kept=False, reason="repeated_history",
                     detail=f"session {session_id}: a record that tells nothing beyond what others tell of it.",
                     file_id=run.file_id) for run in weaver.repeated]
    return again + [Verdict(stage="sessions", subject=columns["event_id"][row], kept=False, reason="replaced_answer",
                            detail=f"session {session_id}: an answer that the later history does not hold; another one was "
                            "taken.", file_id=columns["file_id"][row]) for row in weaver.replaced]


def _most_frequent(services: list[str | None]) -> str:
    counts = Counter(service for service in services if service is not None)
    return min(counts, key=lambda name: (-counts[name], name), default=_NO_SERVICE)


def _frame(record: type[Session] | type[Turn], rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Rows with times in microseconds as a frame of `record`; a session's day follows from its start."""
    schema = frame_schema(record)
    columns = {name: [row.get(name) for row in rows] for name in schema}
    found = pl.DataFrame(columns, schema={name: pl.Int64() if name in _INSTANTS else kind for name, kind in schema.items()})
    found = found.with_columns(
        pl.col(name).cast(pl.Datetime("us")).dt.replace_time_zone("UTC") for name in schema if name in _INSTANTS)
    return found.with_columns(routes.day_of("started_at").alias("day")) if record is Session else found


def _kept(sessions: pl.DataFrame) -> pl.DataFrame:
    """A verdict for each session that goes on."""
    detail = pl.format("session {} of service {}: {} messages, {} calls.", "session_id", "service", "n_messages", "n_calls")
    return sessions.select(
        pl.lit("sessions").alias("stage"), pl.col("session_id").alias("subject"), pl.lit(True).alias("kept"),
        pl.lit("assembled").alias("reason"), detail.alias("detail"), pl.lit(None, pl.String()).alias("file_id"),
        pl.lit(None, pl.Int64()).alias("line"))


def _row_changes(events: pl.DataFrame) -> pl.DataFrame:
    """Row changes by time, then by their place in the database's own log where it states one."""
    changes = events.filter(pl.col("kind") == "row_change").sort("happened_at", "position", "event_id")
    images = [object_of(value) for value in changes.get_column("value")]
    sides = [pl.Series(side, [_text(image.get(side)) for image in images], pl.String()) for side in ("before", "after")]
    return changes.select(
        pl.col("event_id").alias("change_id"), "source", "happened_at", pl.col("tool").alias("table_name"),
        pl.col("name").alias("operation"), pl.col("arguments").alias("key"), *sides).select(list(frame_schema(RowChange)))



def _text(value: Any) -> str | None:
    return None if value is None else orjson.dumps(value).decode()
