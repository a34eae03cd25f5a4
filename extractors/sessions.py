"""Assemble events to sessions: resolve aliases, join histories, pair calls with results, merge a session of two formats.

Input: frames of `core.events` and `raw.declarations`, in any order. Output: sessions, turns, feedback, row changes,
corrections, tools and decisions. Links hold within their source over any number of files; an alias without a link stays the
session's id. Of a session in two formats the richer one is taken and gets times and errors from the other. Feedback belongs to
the session that it names, else to that of the call or message whose id it names. Of corrections the latest on a subject stands.
What several logs tell under several ids is one session too (`extractors.sameness`, `extractors.united`).
Reviews are `extractors.reviews`.
Business events make sessions if they show a routine; reasoning, other business events and log lines stay in the events. Does
not see that two conversations are one visit if no link says so."""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import orjson
import polars as pl

from extractors import routes
from extractors.components import components
from extractors.content import object_of
from extractors.formats import history_of
from extractors.formats.conversation import AROUND
from extractors.reading import nth_id
from extractors.residues import without_residues
from extractors.reviews import reviews
from extractors.sameness import Sameness, same_conversations
from extractors.span_merging import Enclosing, continued, merge_spans
from extractors.tellings import LoggedTalk, telling_of
from extractors.threads import Columns, Run, Thread, Weaver, pairs, take, turns_of
from extractors.tools import tools_of
from extractors.united import richest, unite
from warehouse.records import Correction, Decision, Declaration, Feedback, RowChange, Session, Turn, empty, frame, frame_schema

_NO_SERVICE = "main"
OF_SPANS = ("spans", "traces")
"""Histories of formats in which a session is told by spans, of which another file may hold more."""
_SPOKEN = ("message", "call", "result")
_INSTANTS = {"happened_at", "answered_at", "started_at", "ended_at"}


@dataclass(frozen=True)
class AssembledSessions:
    """Tables of `core`, and what became of the rest."""

    sessions: pl.DataFrame
    turns: pl.DataFrame
    feedback: pl.DataFrame
    row_changes: pl.DataFrame
    corrections: pl.DataFrame
    reviews: pl.DataFrame
    tools: pl.DataFrame
    decisions: pl.DataFrame


def assemble(events: pl.DataFrame, declarations: pl.DataFrame | None = None, gap_minutes: float = 30.0) -> AssembledSessions:
    """Assemble sessions from events in any order. `gap_minutes`: a longer pause of an identity cuts, where no id does."""
    events, conflicts = resolve_aliases(events.unique("event_id", maintain_order=False))
    woven = Woven()
    woven.decide(None, conflicts)
    columns = weave(events, gap_minutes, woven)
    woven.unite(columns, aliases_in(events), gap_minutes)
    events = renamed_events(events, woven.names)
    every, others, decisions = with_requests(woven.sessions_frame, events, gap_minutes)
    turns = without_residues(pl.concat([woven.turns_frame, others]).sort("session_id", "position"))
    tools, uncalled = tools_of(turns, empty(Declaration) if declarations is None else declarations)
    decisions = [*(each for _, each in woven.decided), *decisions]
    return completed(every, turns, tools, events, [frame(Decision, decisions), uncalled])


def with_requests(
    sessions: pl.DataFrame, events: pl.DataFrame, gap_minutes: float,
) -> tuple[pl.DataFrame, pl.DataFrame, list[Decision]]:
    """Return the sessions of conversations with those of requests and actions, the turns of these, and decisions on ids that
    both have."""
    requests = routes.assemble(events.filter(pl.col("kind") == "request"), gap_minutes)
    taken = requests.sessions.join(sessions, on="session_id", how="semi")
    names = {session_id: f"{session_id}~requests" for session_id in taken["session_id"].sort()}
    decisions = [Decision(
        stage="sessions", subject=name, kept=True, reason="shared_session_id",
        detail=f"session id {session_id} stands for a conversation and for requests to an application; the requests are "
        f"kept as {name}; no action needed.") for session_id, name in names.items()]
    named = pl.col("session_id").replace(names)
    actions = routes.sessions_of_actions(events)
    every = pl.concat([sessions, requests.sessions.with_columns(named), actions.sessions]).sort("session_id")
    return every, pl.concat([requests.turns.with_columns(named), actions.turns]), decisions


def completed(sessions: pl.DataFrame, turns: pl.DataFrame, tools: pl.DataFrame, events: pl.DataFrame,
              decided: list[pl.DataFrame]) -> AssembledSessions:
    """Return all tables, with what `events` say of the sessions: feedback, corrections, reviews and changes of rows."""
    feedback, lost = opinions(events, sessions)
    corrected, gone = corrections(events, sessions)
    reviewed, unsettled = reviews(events, sessions)
    detail = pl.format("session {} of service {}: {} messages, {} calls.", "session_id", "service", "n_messages", "n_calls")
    kept = _decided(sessions, "session_id", True, pl.lit("assembled"), detail)
    decisions = pl.concat([*decided, lost, gone, unsettled, kept])
    decisions = decisions.unique(["stage", "subject", "reason"], keep="first").sort("subject", "reason")
    return AssembledSessions(sessions, turns, feedback, row_changes(events), corrected, reviewed, tools, decisions)


def row_changes(events: pl.DataFrame) -> pl.DataFrame:
    """Return the changes of rows among events, by time: a frame of `RowChange`."""
    changes = events.filter(pl.col("kind") == "row_change").sort("happened_at", "position", "event_id")
    images = [_images(value) for value in changes.get_column("value")]
    sides = {side: pl.Series([image[place] for image in images], dtype=pl.String)
             for place, side in enumerate(("before", "after"))}
    changes = changes.with_columns(change_id="event_id", table_name="tool", operation="name", key="arguments", **sides)
    return changes.select(list(frame_schema(RowChange)))


def _images(value: str | None) -> list[str | None]:
    """Return the row before and after a change, as JSON texts."""
    image = object_of(value)
    return [None if (row := image.get(side)) is None else orjson.dumps(row).decode() for side in ("before", "after")]


def renamed_events(events: pl.DataFrame, names: dict[str, str]) -> pl.DataFrame:
    """Events that are on a session which is another one, such as feedback, as events on that one."""
    if not names:
        return events
    on_session = (pl.col("kind") == "correction") & (pl.col("tool") == "outcome")
    return events.with_columns(
        pl.col("session_id").replace(names),
        pl.when(on_session).then(pl.col("call_id").replace(names)).otherwise("call_id").alias("call_id"))


def _decided(rows: pl.DataFrame, subject: str, kept: bool, reason: pl.Expr, detail: pl.Expr) -> pl.DataFrame:
    file_id = pl.col("file_id") if "file_id" in rows.columns else pl.lit(None, pl.String())
    return rows.select(
        pl.lit("sessions").alias("stage"), pl.col(subject).alias("subject"), pl.lit(kept).alias("kept"),
        reason.alias("reason"), detail.alias("detail"), file_id.alias("file_id"), pl.lit(None, pl.Int64()).alias("line"))


class Woven:
    """Conversations as they are woven, and the sessions made of them."""

    def __init__(self) -> None:
        self.sessions: list[dict[str, Any]] = []
        self.turns: list[dict[str, Any]] = []
        self.decided: list[tuple[str | None, Decision]] = []
        """Decisions, with the session id of the events that they are on; None: not of one session."""
        self.conversations: list[tuple[str, list[int]]] = []
        """Id and rows of each, as one log or several under one id tell it."""
        self._turn_ids: set[str] = set()
        self.names: dict[str, str] = {}
        """Session id -> that of the session which is the same conversation."""
        self.traces: dict[str, list[str]] = {}
        """Session id -> ids of the traces of other files that go on from it."""

    def decide(self, session_id: str | None, decisions: Iterable[Decision]) -> None:
        """Add decisions on what the events of a session say."""
        self.decided += [(session_id, each) for each in decisions]

    @property
    def sessions_frame(self) -> pl.DataFrame:
        """Frame of `Session`."""
        return _frame(Session, self.sessions)

    @property
    def turns_frame(self) -> pl.DataFrame:
        """Frame of `Turn`."""
        return _frame(Turn, self.turns)

    def tell(self, columns: Columns, aliases: dict[str, list[str]]) -> list[LoggedTalk]:
        """Return what each conversation tells."""
        return [telling_of(name, rows, columns, aliases.get(name, ())) for name, rows in self.conversations]

    def add_apart(self, columns: Columns) -> None:
        """Make a session of each conversation, none of which is another one."""
        for name, rows in self.conversations:
            self._add(name, rows, columns, alike=None, other_session_ids=[])

    def unite(self, columns: Columns, aliases: dict[str, list[str]], gap_minutes: float, n_apart: int = 0) -> None:
        """Make one session of what several logs tell under several ids, and sessions of all others. `n_apart`: conversations
        that are none of these, and no single request."""
        tellings = self.tell(columns, aliases)
        sameness = same_conversations(tellings, gap_minutes, n_apart)
        alike = _alike(sameness)
        others_of: dict[LoggedTalk, list[LoggedTalk]] = {}
        for group in sameness.groups:
            taken = richest(group)
            others_of[taken] = [each for each in group if each is not taken]
            self.names.update((each.name, taken.name) for each in others_of[taken])
        self.decide(None, _same(sameness, self.names, columns))
        for telling in tellings:
            if telling.name not in self.names:
                others = others_of.get(telling, [])
                names = [telling.name, *(each.name for each in others)]
                traces = [trace for name in names for trace in self.traces.get(name, ())]
                self._add(telling.name, unite(telling, others, columns) if others else telling.rows, columns,
                          alike=alike.get(telling.name), other_session_ids=sorted([*names[1:], *traces]))
                self.names.update(dict.fromkeys(traces, telling.name))

    def _add(self, session_id: str, rows: list[int], columns: Columns, **more: Any) -> None:
        counts = Counter(service for row in rows if (service := columns["service"][row]) is not None)
        service = min(counts, key=lambda name: (-counts[name], name), default=_NO_SERVICE)
        turns, decisions = turns_of(session_id, service, rows, columns)
        for turn in turns:  # a branch of a conversation has the beginning too
            if turn["turn_id"] in self._turn_ids:
                turn["turn_id"] = hashlib.sha256(f"{turn['turn_id']}@{session_id}".encode()).hexdigest()[:32]
            self._turn_ids.add(turn["turn_id"])
        times = [t for turn in turns for t in (turn["happened_at"], turn["answered_at"]) if t is not None]
        n_calls = sum(turn["kind"] == "call" for turn in turns)
        self.sessions.append({
            "session_id": session_id, "source": columns["source"][rows[0]], "service": service,
            "started_at": min(times, default=None), "ended_at": max(times, default=None),
            "n_messages": len(turns) - n_calls, "n_calls": n_calls,
            "identity": next((name for row in rows if (name := columns["name"][row]) is not None), None),
            "format": columns["format"][rows[0]], **more})
        self.turns += turns
        self.decide(columns["session_id"][rows[0]], decisions)


def weave(events: pl.DataFrame, gap_minutes: float, woven: Woven) -> Columns:
    """Weave events to the conversations of `woven`; gives the events that these are rows of, by column."""
    spoken, again = _spoken(events, gap_minutes)
    spoken = spoken.with_row_index("row")
    for record_id, session_id, file_id in again:
        woven.decide(session_id, [Decision(
            stage="sessions", subject=f"{session_id}@{record_id[:16]}", kept=False, reason="repeated_history", file_id=file_id,
            detail=f"session {session_id}: a record that was delivered twice.")])
    columns: Columns = spoken.to_dict(as_series=False)
    around = _enclosing(events)
    runs_by_session: dict[str, dict[str, list[Run]]] = {}
    keys = ["session_id", "format", "run_id", "file_id"]
    for session_id, log_format, run_id, file_id, rows in spoken.group_by(keys, maintain_order=True).agg("row").iter_rows():
        runs = runs_by_session.setdefault(session_id, {}).setdefault(log_format, [])
        runs.append(Run(run_id, file_id, log_format, rows))
    _join_traces(runs_by_session, columns, woven)
    for session_id, versions in runs_by_session.items():
        threads_by_format: list[tuple[str, list[Thread]]] = []
        for log_format, runs in sorted(versions.items()):
            weaver = Weaver(columns)
            enclosing = around.get((session_id, log_format))
            if enclosing is not None or (len(runs) > 1 and history_of(log_format) in OF_SPANS):
                weaver.threads, weaver.repeated = merge_spans(runs, columns, enclosing)
            else:
                weaver.weave(runs)
            threads_by_format.append((log_format, weaver.threads))
            woven.decide(session_id, (Decision(
                stage="sessions", subject=f"{session_id}@{run.run_id[:16]}", kept=False, reason="repeated_history",
                detail=f"session {session_id}: a record that tells nothing beyond what others tell of it.", file_id=run.file_id,
            ) for run in weaver.repeated))
            woven.decide(session_id, (Decision(
                stage="sessions", subject=columns["event_id"][row], kept=False, reason="replaced_answer",
                detail=f"session {session_id}: an answer that the later history does not hold; another one was taken.",
                file_id=columns["file_id"][row]) for row in weaver.replaced))
        _choose(session_id, threads_by_format, columns, woven)
    return columns


def aliases_in(events: pl.DataFrame) -> dict[str, list[str]]:
    """Return the other names that links give each session."""
    links = events.filter(pl.col("kind") == "link").select("session_id", "value").drop_nulls().unique().sort(pl.all())
    aliases: dict[str, list[str]] = {}
    for session_id, alias in links.iter_rows():
        aliases.setdefault(session_id, []).append(alias)
    return aliases


def _join_traces(runs_by_session: dict[str, dict[str, list[Run]]], columns: Columns, woven: Woven) -> None:
    """Put traces without a session that go on from a trace of another file with it."""
    nameless: dict[tuple[str, str], dict[str, Thread]] = {}
    for session_id, versions in runs_by_session.items():
        log_format, runs = next(iter(versions.items()))
        if session_id.startswith("trace:") and len(versions) == 1 and history_of(log_format) in OF_SPANS:
            thread = merge_spans(runs, columns)[0][0]
            nameless.setdefault((columns["source"][thread.rows[0]], log_format), {})[session_id] = thread
    for (_, log_format), threads in nameless.items():
        if len({columns["file_id"][row] for thread in threads.values() for row in thread.rows}) > 1:
            for session_id, first in continued(threads, columns).items():
                runs_by_session[first][log_format] += runs_by_session.pop(session_id)[log_format]
                woven.traces.setdefault(first, []).append(session_id)


def _enclosing(events: pl.DataFrame) -> dict[tuple[str, str], Enclosing]:
    """Return when each trace began, by session and format, of sessions in several files and formats that say a user's words as
    of then: another file may hold the span around a model than the model's."""
    of_traces = [name for name in events["format"].unique() if history_of(name) == "traces"]
    is_log = pl.col("kind") == "log"
    is_around = (pl.col("role") == "assistant") & pl.col("lossy").fill_null("").str.contains(AROUND, literal=True)
    spans = events.filter((is_log | is_around) & pl.col("format").is_in(of_traces) & pl.col("session_id").is_not_null())
    at, lasted = pl.col("happened_at").dt.epoch("us"), (pl.col("latency_ms") * 1000).round().cast(pl.Int64)
    rows = spans.select("session_id", "format", at.alias("began") - pl.when(is_log).then(0).otherwise(lasted),
                        lasted.alias("lasted"), "file_id").drop_nulls().sort(pl.all())
    open_spans: dict[tuple[str, str], list[tuple[int, int, str]]] = {}
    for session_id, log_format, began, lasted_us, file_id in rows.iter_rows():
        open_spans.setdefault((session_id, log_format), []).append((began, began + lasted_us, file_id))

    def enclosing(spans: list[tuple[int, int, str]], at: int, file_id: str) -> int:
        return next((began for began, ended, other in spans if other != file_id and began <= at <= ended), at)

    several = events.filter(pl.col("format").is_in(of_traces) & pl.col("session_id").is_not_null()).group_by(
        "session_id", "format").agg(pl.col("file_id").n_unique()).filter(pl.col("file_id") > 1).drop("file_id")
    return {key: partial(enclosing, open_spans.get(key, [])) for key in several.iter_rows()}


def _delivered_again(spoken: pl.DataFrame) -> list[tuple[str, str, str]]:
    """Return (record, session, file) of records with the bytes of an earlier one that tell their session up to the same place:
    delivered twice, not said twice. A record that states one part and no place may be there twice for good reason."""
    keys = ["session_id", "format", "record_id"]
    ends = spoken.group_by(keys, maintain_order=True).agg(
        pl.len().alias("n"), pl.col("position").max().alias("end"), pl.col("file_id").first())
    ends = ends.with_columns(pl.col("session_id").fill_null("without an id"))
    ends = ends.filter((pl.col("end") > 0) & (pl.len().over("session_id", "format", "end") > 1))
    shapes = {row[:3]: row[3:] for row in ends.iter_rows()}
    again = {}
    for (session_id, log_format, record_id), (n, end, _) in shapes.items():
        for nth in itertools.count(1):
            other = nth_id(record_id, nth)
            shape = shapes.get((session_id, log_format, other))
            if shape is None:
                break
            if shape[1] == end and shape[0] >= n:
                again[other] = (other, session_id, shape[2])
    return list(again.values())


def _same(sameness: Sameness, names: dict[str, str], columns: Columns) -> list[Decision]:
    """Return a decision on each conversation that is another one, and on each that may be."""
    evidence: dict[str, list[str]] = {}
    doubts: dict[str, list[str]] = {}
    logs: dict[str, LoggedTalk] = {}
    for pairs_of, notes in ((sameness.joined, evidence), (sameness.undecided, doubts)):
        for pair in pairs_of:
            for one, two in ((pair.one, pair.two), (pair.two, pair.one)):
                logs[one.name] = one
                name = names.get(two.name, two.name)
                notes.setdefault(one.name, []).append(f"{pair.evidence} ({' of '.join(two.store[::-1])}: {name})")
    decisions = [Decision(
        stage="sessions", subject=name, kept=False, reason="same_conversation", file_id=columns["file_id"][logs[name].rows[0]],
        detail=f"{name} ({' of '.join(logs[name].store[::-1])}) is session {taken}, which is taken: "
        f"{'; '.join(evidence[name])}.",
    ) for name, taken in sorted(names.items())]
    return decisions + [Decision(
        stage="sessions", subject=name, kept=True, reason="maybe_same_conversation",
        detail=f"may be the same conversation as another session: {'; '.join(notes[:3])}"
        f"{f'; and {len(notes) - 3} more' if len(notes) > 3 else ''}; both are kept, on one split; an id that the logs share "
        "would decide it.", file_id=columns["file_id"][logs[name].rows[0]],
    ) for name, notes in sorted(doubts.items()) if name not in names]


def _alike(sameness: Sameness) -> dict[str, str]:
    """Name of the first of the sessions that may be one, for each of them."""
    joined = [[each.name for each in group] for group in sameness.groups]
    doubtful = [[pair.one.name, pair.two.name] for pair in sameness.undecided]
    in_doubt = {name for pair in doubtful for name in pair}
    tied = components({name for names in (*joined, *doubtful) for name in names}, [*joined, *doubtful])
    roots = {tied[name] for name in in_doubt}
    return {name: root for name, root in tied.items() if root in roots}


def _spoken(events: pl.DataFrame, gap_minutes: float) -> tuple[pl.DataFrame, list[tuple[str, str, str]]]:
    """Return events of conversations with a session each and a position each, and the records that were delivered again, which
    are left out; so are candidates that were not taken."""
    spoken = events.filter(pl.col("kind").is_in(_SPOKEN) & ~pl.col("lossy").fill_null("").str.contains('"candidate '))
    again = _delivered_again(spoken)
    if again:
        spoken = spoken.filter(~pl.col("record_id").is_in([record_id for record_id, _, _ in again]))
    named = spoken.filter(pl.col("session_id").is_not_null()).with_columns(pl.lit(False).alias("steps"))
    nameless = _in_order(routes.cut(spoken.filter(pl.col("session_id").is_null()), gap_minutes))
    both = pl.concat([named, nameless]).sort("happened_at", "record_id", "event_id", nulls_last=False)
    keys = ["session_id", "format", "file_id"]
    both = both.with_columns(pl.col("position").fill_null(pl.int_range(pl.len()).over(keys)))
    restarted = pl.col("position").n_unique().over(keys) < pl.len().over(keys)
    run = ["session_id", "format", "run_id"]
    in_runs = both.with_columns(
        pl.when("steps").then(pl.lit("")).when(restarted).then("record_id").otherwise("file_id").alias("run_id"),
        pl.col("happened_at").dt.epoch("us"),
    ).sort(pl.col("happened_at").min().over(run), pl.col("position").min().over(run), "run_id", "position", "event_id",
           nulls_last=False)
    return in_runs, again


def _in_order(nameless: pl.DataFrame) -> pl.DataFrame:
    """Order events without a session id. Where each file holds one step of a conversation, the steps by time are one run (at
    one time: instructions, messages, calls, results, then by id)."""
    group = ["session_id", "format"]
    side = pl.when(pl.col("kind") == "message").then("role").otherwise("kind").replace({"call": "assistant"})
    single = (side.n_unique().over("file_id") == 1) & (pl.col("record_id").n_unique().over("file_id") == 1)
    steps = single.all().over(group) & (pl.col("file_id").n_unique().over(group) > 1)
    marked = nameless.with_columns(steps.alias("steps"))
    spoken = pl.when(pl.col("role").is_in(["system", "developer"])).then(pl.lit("system")).otherwise("kind")
    rank = spoken.replace_strict(["system", *_SPOKEN], [0, 1, 2, 3], return_dtype=pl.Int64)
    ordered = marked.sort("happened_at", rank, "call_id", "record_id", "position", "event_id", nulls_last=False)
    return ordered.with_columns(
        pl.when("steps").then(pl.int_range(pl.len()).over(group)).otherwise("position").alias("position")).select(marked.columns)


def _choose(session_id: str, threads_by_format: list[tuple[str, list[Thread]]], columns: Columns, woven: Woven) -> None:
    """Take the richest format of a session, filled in from the others; its longest thread keeps the session's id."""
    ranked = sorted(threads_by_format, key=lambda each: _riches(each[1], each[0], columns), reverse=True)
    chosen, threads = ranked[0]
    rows = [row for thread in threads for row in thread.rows]
    others: list[Thread] = []
    for log_format, again in ranked[1:]:
        same = pairs(rows, [row for thread in again for row in thread.rows], columns)
        for other, row in same.items():
            take(row, other, columns)
        if same:
            alone = sum(columns["kind"][row] != "result" and row not in same for thread in again for row in thread.rows)
            beyond = f"; {alone} turns that {log_format} alone tells stay in the events" if alone else ""
            woven.decide(session_id, [Decision(
                stage="sessions", subject=f"{session_id}@{log_format}", kept=False, reason="duplicate_session",
                detail=f"session {session_id} is in the logs as {chosen} and as {log_format}; the richer one, {chosen}, is "
                f"taken, with the times and errors that the other adds{beyond}.")])
        else:
            others += again
    threads = sorted(threads, key=lambda each: _riches([each], "", columns), reverse=True)
    woven.conversations.append((session_id, threads[0].rows))
    for thread in [*threads[1:], *others]:
        name = f"{session_id}~{columns['event_id'][thread.rows[0]][:16]}"
        woven.conversations.append((name, thread.rows))
        woven.decide(session_id, [Decision(
            stage="sessions", subject=name, kept=True, reason="shared_session_id",
            detail=f"session id {session_id} stands for two conversations that have no common end; this one is kept as "
            f"{name}; give each its own id.", file_id=columns["file_id"][thread.rows[0]])])


def _riches(threads: list[Thread], log_format: str, columns: Columns) -> tuple[int, int, str, str]:
    """More turns, then more bytes of content, then the format's name, then the first event's id."""
    rows = [row for thread in threads for row in thread.rows]
    n_turns = sum(columns["kind"][row] != "result" for row in rows)
    n_bytes = sum(len((columns["content"][row] or "").encode()) for row in rows)
    return n_turns, n_bytes, log_format, columns["event_id"][rows[0]]


def _frame(record: type[Session] | type[Turn], rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Rows with times in microseconds as a frame of `record`; a session's day follows from its start."""
    schema = frame_schema(record)
    columns = {name: [row.get(name) for row in rows] for name in schema}
    table = pl.DataFrame(columns, schema={name: pl.Int64() if name in _INSTANTS else kind for name, kind in schema.items()})
    table = table.with_columns(
        pl.col(name).cast(pl.Datetime("us")).dt.replace_time_zone("UTC") for name in schema if name in _INSTANTS)
    return table.with_columns(routes.day_of("started_at").alias("day")) if record is Session else table


_Key = tuple[str, str]
"""Source and alias."""


def resolve_aliases(events: pl.DataFrame) -> tuple[pl.DataFrame, list[Decision]]:
    """Events with the session that links say in place of its alias; link events stay as they are."""
    names, decisions = names_by_alias(events)
    return (renamed_by_links(events, names), decisions) if names.height else (events, [])


def renamed_by_links(events: pl.DataFrame, names: pl.DataFrame) -> pl.DataFrame:
    """Put the session of `names_by_alias` in the place of its alias."""
    joined = events.join(names, on=["source", "session_id"], how="left", maintain_order="left")
    named = pl.when(pl.col("kind") == "link").then("session_id").otherwise(pl.coalesce("_session", "session_id"))
    return joined.with_columns(named.alias("session_id")).drop("_session")


def names_by_alias(events: pl.DataFrame) -> tuple[pl.DataFrame, list[Decision]]:
    """Return the session of each alias (columns source, session_id, _session), and decisions on links that contradict."""
    links = events.filter(
        (pl.col("kind") == "link") & pl.col("session_id").is_not_null() & pl.col("value").is_not_null()
        & (pl.col("session_id") != pl.col("value")))
    aliases: dict[_Key, str] = {}
    decisions: list[Decision] = []
    ordered = links.select("source", "value", "session_id", "event_id", "file_id").sort(pl.all())
    for source, alias, session, event_id, file_id in ordered.iter_rows():
        kept = aliases.setdefault((source, alias), session)   # of two, the first in the order of the alphabet
        if kept != session:
            decisions.append(Decision(
                stage="sessions", subject=event_id, kept=False, reason="conflicting_link", file_id=file_id,
                detail=f"{alias} is said to belong to session {session} and to session {kept}; {kept} is taken; fix the log "
                "that is wrong."))
    ends = _ends(aliases)
    return pl.DataFrame([(source, alias, session) for (source, alias), session in ends.items()], orient="row",
                        schema={"source": pl.String(), "session_id": pl.String(), "_session": pl.String()}), decisions


def _ends(aliases: dict[_Key, str]) -> dict[_Key, str]:
    """Where each chain of aliases ends; one that runs in a circle ends at the first of it in the order of the alphabet."""
    ends: dict[_Key, str] = {}
    for key in aliases:
        source, name = key
        trail: list[str] = []
        visited: set[str] = set()
        while (source, name) in aliases and (source, name) not in ends and name not in visited:
            trail.append(name)
            visited.add(name)
            name = aliases[source, name]
        if name in visited:
            name = min(trail[trail.index(name):])
        end = ends.get((source, name), name)
        ends.update({(source, alias): end for alias in trail})
    return ends


_KINDS = ("feedback", "outcome")


def opinions(events: pl.DataFrame, sessions: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Feedback and outcomes on the sessions there are, and decisions on those whose session no log holds (yet)."""
    rows = events.filter(pl.col("kind").is_in(_KINDS)).with_columns(
        pl.col("event_id").alias("feedback_id"), pl.col("name").fill_null(pl.col("kind")), pl.col("value").fill_null(""))
    given = _targeted(rows, events)
    matched = given.join(sessions, on="session_id", how="semi").select(list(frame_schema(Feedback)))
    subject = pl.coalesce(pl.format("session {}", "session_id"), pl.format("call or message {}", "call_id"),
                          pl.lit("a session that it does not name"))
    lost = _decided(given.join(sessions, on="session_id", how="anti"), "event_id", False, pl.lit("unknown_session"),
                    pl.format("{} on {}, which no log holds; it counts as soon as one does.", "kind", subject))
    return matched.sort("session_id", "happened_at", "feedback_id"), lost


def _targeted(rows: pl.DataFrame, events: pl.DataFrame) -> pl.DataFrame:
    """Opinions with the session of their target, where they name none and one session alone has that target."""
    if rows.filter(pl.col("session_id").is_null() & pl.col("call_id").is_not_null()).is_empty():
        return rows
    targets = events.filter(~pl.col("kind").is_in((*_KINDS, "link")) & pl.col("call_id").is_not_null()
                            & pl.col("session_id").is_not_null())
    sessions = targets.group_by("source", "call_id").agg(
        pl.col("session_id").min().alias("_session"), pl.col("session_id").n_unique().alias("_n")).filter(_n=1)
    return rows.join(sessions.drop("_n"), on=["source", "call_id"], how="left").with_columns(
        pl.coalesce("session_id", "_session").alias("session_id")).drop("_session")


def corrections(events: pl.DataFrame, sessions: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """(frame of `Correction` by time, frame of `Decision`)."""
    corrected = events.filter(pl.col("kind") == "correction").select(
        pl.col("event_id").alias("correction_id"), "happened_at", pl.col("name").alias("author"),
        pl.col("content").alias("why"), pl.col("tool").alias("kind"), pl.col("call_id").alias("subject"), "value", "file_id",
    ).sort("happened_at", "correction_id")
    later = pl.col("author").shift(-1).over("kind", "subject")
    is_there = (pl.col("kind") != "outcome") | pl.col("subject").is_in(sessions["session_id"].implode())
    judged = corrected.with_columns(later.alias("later"), is_there.alias("is_there"))
    judged = judged.with_columns((pl.col("later").is_null() & pl.col("is_there")).alias("stands"))
    corrected_name = pl.format("the {} {}", pl.col("kind").replace({"outcome": "outcome of session"}), "subject")
    replaced = pl.format("what {} said of {} gave way to a later word by {}.", "author", corrected_name, "later")
    lost = pl.format("{} corrected {}, which no log holds; it counts as soon as one does.", "author", corrected_name)
    rejected = _decided(judged.filter(~pl.col("stands")), "correction_id", False,
                        pl.when("is_there").then(pl.lit("corrected_again")).otherwise(pl.lit("unknown_session")),
                        pl.when("is_there").then(replaced).otherwise(lost))
    return judged.select(list(frame_schema(Correction))), rejected
