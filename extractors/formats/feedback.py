"""Feedback and outcomes in any table: CSV, Parquet, JSON lines or a JSON list, one row for an opinion on a session.

Sees the session under many names (a ticket's, a conversation's, a trace's id), long rows (a column for the question, one for
the answer) and wide ones (a column for each: `CSAT`, `Resolved?` …), the comment, the answer or call that it is on. Names count
by their words, without case or punctuation (`Conversation ID`, `conversationId`). The answer is kept as written: no scale, no
direction is read into it; an empty one was not given. Columns that say something else are kept in `lossy`.
Does not see: sessions that only a person's id or a window of time would tell.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from extractors.formats.format import Emit, Format, Head, LogRecord, Row, each_record, sample
from extractors.formats.instants import microseconds
from extractors.formats.values import dumped

_LISTS = ("feedback", "feedbacks", "ratings", "scores", "responses", "results", "data", "items", "rows")
_OTHERS = frozenset((
    "messages", "request", "role", "tool_calls", "spans", "traj", "trajectory", "simulations", "samples", "level", "logger",
    "severity", "hostname", "@timestamp", "method", "path", "req", "res", "jsonrpc", "specversion", "op", "change", "action",
    "messageId", "originalTimestamp", "feedback_source", "annotator_kind", "assessment_name", "data_type", "dataType",
    "run_type", "observation_id", "observationId", "dotted_order", "op_name", "attributes", "payload", "parentUuid", "tool",
    "arguments", "logName", "logEvents", "object", "satisfaction_rating", "conversation_rating", "conversation_parts",
    "concept:name"))
"""Keys of records that are something else."""


def claims(head: Head) -> bool:
    """Rows with a session and an answer; and nothing in them of a conversation or of another log."""
    first = next(_rows(head.first), {})
    return head.layout in ("lines", "document", "table") and _OTHERS.isdisjoint(first) and (
        speaks(first) or _are_cases([next(_rows(each), {}) for each in head.objects]))


def _are_cases(rows: list[Row]) -> bool:
    """Whether the rows are tickets, cases or sessions with a status in words each: what became of them."""
    columns = {words(name): name for name in rows[0]} if rows else {}
    named = [column for name, column in columns.items() if name.rpartition("_")[2] in _STATES]
    if columns.keys().isdisjoint(SESSIONS) or not columns.keys().isdisjoint(_EVENTS) or not named:
        return False
    stated = [row.get(named[0]) for row in rows if row.get(named[0]) not in (None, "")]
    return bool(stated) and all(isinstance(each, str) and not each[:1].isdigit() and len(each.split()) <= _NAME_WORDS
                                for each in stated)


@each_record
def read(record: LogRecord, emit: Emit) -> None:
    """Read an event for each answer of a row."""
    rows = list(_rows(record.value))
    if not rows:
        emit.reject(record, "incomplete_feedback", "the record is no row with names; repair or drop it")
    for row in rows:
        with emit.guarded(record):
            _answers(record, row, emit)


def _answers(record: LogRecord, row: Row, emit: Emit) -> None:
    parsed = parse_row(row)
    session_id = emit.envelope.mapped("session_id", row) or parsed.session or emit.envelope.session_id(row)
    answers = parsed.answers or ([("comment", parsed.comment)] if parsed.comment is not None else [])
    if session_id is None or not answers:
        emit.reject(record, "incomplete_feedback", "the row lacks a session, a name or a value; complete or drop it")
        return
    stated, service = emit.envelope.time(row), emit.envelope.service(row)
    for number, (name, answer) in enumerate(answers):
        emit.event(record, "outcome" if is_outcome(name) else "feedback", session_id=str(session_id), service=service,
                   happened_at=stated if stated is not None else parsed.happened_at, call_id=parsed.target, name=name,
                   value=answer, content=None if number else parsed.comment, lossy=parsed.rest)


def _rows(value: Any) -> Iterator[Row]:
    """Yield the row that a record is, or the rows of the one list that it holds."""
    if not isinstance(value, dict):
        return
    for name in _LISTS:
        inner = value.get(name)
        if isinstance(inner, list) and inner and all(isinstance(each, dict) for each in inner):
            yield from inner
            return
    yield value


SESSIONS = ("session_id", "session", "conversation_id", "conversation", "thread_id", "chat_id", "dialog_id", "dialogue_id",
            "interaction_id", "ticket_id", "ticket", "ticket_no", "case_id", "case", "issue_id", "call_sid")
_TRACES = ("trace_id", "trace")
_TARGETS = ("response_id", "message_id", "completion_id", "generation_id", "tool_call_id", "call_id", "span_id", "run_id",
            "turn_id", "ref", "reference")
_NAMES = ("kind", "question", "name", "key", "metric", "label_name", "measure", "criterion", "dimension", "signal",
          "feedback_type", "rating_type", "score_name", "metric_name", "feedback_name")
_VAGUE_NAMES = ("type", "event", "category", "survey")
_VALUES = ("value", "answer", "score", "rating", "label", "value_minor", "response", "result", "string_value", "grade",
           "choice", "selection", "vote", "verdict", "reaction")
_PLAIN_VALUES = ("value", "answer", "score", "label", "value_minor", "response", "result", "string_value")
_COMMENTS = ("comment", "explanation", "remark", "comments", "feedback_text", "free_text", "verbatim", "review", "reason",
             "rationale", "justification", "notes", "note", "details", "text", "message", "body")
MEASURES = frozenset((
    "csat", "nps", "ces", "dsat", "rating", "ratings", "rated", "stars", "star", "score", "thumb", "thumbs", "satisfied",
    "satisfaction", "helpful", "helpfulness", "resolved", "solved", "verdict", "sentiment", "feedback", "vote", "voted",
    "reaction", "liked", "disliked", "upvote", "downvote", "quality", "correct", "accepted"))
_RESULTS = frozenset(("status", "outcome", "success", "successful", "resolution", "reopened", "escalated", "refund", "refunded",
                      "chargeback", "dispute", "label", "grade", "complaint"))
_NO_MEASURE = frozenset(("id", "at", "time", "date", "timestamp", "by", "url", "count", "scale", "max", "min", "type", "name",
                         "source", "reason", "comment", "text", "user", "method"))
_INSTANT = frozenset(("at", "on", "ts", "time", "date", "timestamp", "datetime", "created"))
_SERVICES = frozenset(("service", "service_name", "app", "application"))
_STATES = ("status", "outcome", "resolution")
_EVENTS = frozenset(("event", "event_name", "event_type", "activity", "action", "transition", "operation", "concept_name"))
"""Columns of rows that are one step of a case each."""
_OUTCOMES = frozenset(("refund", "refunded", "chargeback", "dispute"))
_PROSE_WORDS = 4
_NAME_WORDS = 3


@dataclass(slots=True)
class FeedbackRow:
    """What one row says."""

    session: str | None = None
    target: str | None = None
    happened_at: int | None = None
    answers: list[tuple[str, str]] = field(default_factory=list)
    """What was asked, and the answer as written."""
    comment: str | None = None
    rest: list[str] = field(default_factory=list)
    """Columns that none of these takes, with what they hold."""


def parse_row(row: Row) -> FeedbackRow:
    """Return what `row` says."""
    columns = {words(name): name for name, value in row.items() if value not in (None, "", [], {})}
    parsed, used = FeedbackRow(), set[str]()

    def take(names: Iterable[str]) -> str | None:
        name = next((columns[each] for each in names if each in columns and columns[each] not in used), None)
        used.update((name,) if name is not None else ())
        return name

    def is_prose(column: str) -> bool:
        value = row[columns[column]]
        return "feedback" in column and isinstance(value, str) and len(value.split()) >= _PROSE_WORDS

    session, trace = take(SESSIONS), take(_TRACES)
    parsed.session = _text(row[session]) if session else f"trace:{_text(row[trace])}" if trace else None
    if (pair := _pair(columns)) is not None:
        used.update(pair)
        parsed.answers = [(_text(row[pair[0]]), _text(row[pair[1]]))]
    elif {*map(words, row)}.isdisjoint(_NAMES) or {*map(words, row)}.isdisjoint(_VALUES):   # else a long row without an answer
        wide = [name for each, name in columns.items() if _is_measure(each, MEASURES | _RESULTS) and name not in used
                and not isinstance(row[name], (dict, list)) and not is_prose(each)]
        used.update(wide)
        parsed.answers = [(name, _text(row[name])) for name in wide]
    comment, target = take(_COMMENTS) or take(filter(is_prose, columns)), take(_TARGETS)
    parsed.comment, parsed.target = (_text(row[name]) if name else None for name in (comment, target))
    time = take(each for each, name in columns.items()
                if each.rpartition("_")[2] in _INSTANT and name not in used and microseconds(row[name]) is not None)
    parsed.happened_at = microseconds(row[time]) if time else None
    parsed.rest = [f"{name} {_text(value)}" for name, value in row.items()
                   if name not in used and value not in (None, "", [], {}) and words(name) not in _SERVICES]
    return parsed


def speaks(row: Row) -> bool:
    """Whether a row names a session and holds an answer that nothing but feedback would be called."""
    columns = {words(name): name for name in row}
    return not columns.keys().isdisjoint((*SESSIONS, *_TRACES)) and (_pair(columns) is not None or any(
        _is_measure(name, MEASURES) and not isinstance(row[columns[name]], (dict, list)) for name in columns))


def is_outcome(name: str) -> bool:
    """Whether an answer to `name` is what became of the session, not an opinion on it."""
    parts = words(name).split("_")
    return len(parts) <= _NAME_WORDS and (parts[-1] in _STATES or not _OUTCOMES.isdisjoint(parts))


@lru_cache(4096)
def words(name: str) -> str:
    """Return a column's name as lower-case words with `_` between them."""
    return re.sub(r"[\W_]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()).strip("_")


def _pair(columns: dict[str, str]) -> tuple[str, str] | None:
    for names, values in ((_NAMES, _VALUES), (_VAGUE_NAMES, _PLAIN_VALUES)):
        question = next((columns[name] for name in names if name in columns), None)
        answer = next((columns[name] for name in values if name in columns), None)
        if question is not None and answer is not None:
            return question, answer
    return None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else dumped(value)


def is_measure(name: str) -> bool:
    """Return whether a field of that name (in `words`) holds an opinion."""
    return _is_measure(name, MEASURES)


def _is_measure(name: str, measures: frozenset[str]) -> bool:
    parts = name.split("_")
    return not measures.isdisjoint(parts) and _NO_MEASURE.isdisjoint(parts)


FORMAT = Format(name="feedback", claims=claims, read=read, sample=sample("feedback.jsonl"), rank=45)
