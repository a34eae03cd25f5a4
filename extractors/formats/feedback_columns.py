"""Which column of somebody's table of feedback says what: session, target, question, answer, comment, time.

In: a row. Out: `Said`. Names count by their words, without case or punctuation (`Conversation ID`, `conversationId`).
A row is long (a column names what was asked, another holds the answer) or wide (a column for each thing that was asked).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import orjson

from extractors.formats.format import Row
from extractors.formats.instants import microseconds

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
_MEASURES = frozenset((
    "csat", "nps", "ces", "dsat", "rating", "ratings", "rated", "stars", "star", "score", "thumb", "thumbs", "satisfied",
    "satisfaction", "helpful", "helpfulness", "resolved", "solved", "verdict", "sentiment", "feedback", "vote", "voted",
    "reaction", "liked", "disliked", "upvote", "downvote", "quality", "correct", "accepted"))
_RESULTS = frozenset(("status", "outcome", "success", "successful", "resolution", "reopened", "escalated", "refund", "refunded",
                      "chargeback", "dispute", "label", "grade", "complaint"))
_NO_MEASURE = frozenset(("id", "at", "time", "date", "timestamp", "by", "url", "count", "scale", "max", "min", "type", "name",
                         "source", "reason", "comment", "text", "user", "method"))
_INSTANT = frozenset(("at", "on", "ts", "time", "date", "timestamp", "datetime", "created"))
_SERVICES = frozenset(("service", "service_name", "app", "application"))
_OUTCOMES = frozenset(("refund", "refunded", "chargeback", "dispute"))
_PROSE_WORDS = 4
_NAME_WORDS = 3


@dataclass(slots=True)
class Said:
    """What one row says."""

    session: str | None = None
    target: str | None = None
    happened_at: int | None = None
    answers: list[tuple[str, str]] = field(default_factory=list)
    """What was asked, and the answer as written."""
    comment: str | None = None
    rest: list[str] = field(default_factory=list)
    """Columns that none of these takes, with what they hold."""


def said(row: Row) -> Said:
    """What `row` says."""
    columns = {words(name): name for name, value in row.items() if value not in (None, "", [], {})}
    found, used = Said(), set[str]()

    def take(names: tuple[str, ...]) -> str | None:
        name = next((columns[each] for each in names if each in columns and columns[each] not in used), None)
        used.update((name,) if name is not None else ())
        return name

    session, trace = take(SESSIONS), take(_TRACES)
    found.session = text(row[session]) if session else f"trace:{text(row[trace])}" if trace else None
    found.answers = _long(row, columns, used) or _wide(row, columns, used)
    comment, target = take(_COMMENTS) or _prose(row, columns, used), take(_TARGETS)
    found.comment, found.target = (text(row[name]) if name else None for name in (comment, target))
    times = (name for each, name in columns.items() if name not in used and each.rpartition("_")[2] in _INSTANT)
    time = next((name for name in times if microseconds(row[name]) is not None), None)
    found.happened_at = microseconds(row[time]) if time else None
    used.update((time,) if time else ())
    found.rest = [f"{name} {text(value)}" for name, value in row.items()
                  if name not in used and value not in (None, "", [], {}) and words(name) not in _SERVICES]
    return found


def speaks(row: Row) -> bool:
    """Whether a row names a session and holds an answer that nothing but feedback would be called."""
    columns = {words(name): name for name in row}
    if not any(name in columns for name in (*SESSIONS, *_TRACES)):
        return False
    if _pair(columns) is not None:
        return True
    return any(_is_measure(name, _MEASURES) and not isinstance(row[columns[name]], (dict, list)) for name in columns)


def is_outcome(name: str) -> bool:
    """Whether an answer to `name` is what became of the session, not what somebody thought of it."""
    found = words(name).split("_")
    return len(found) <= _NAME_WORDS and (found[-1] in ("status", "outcome") or not _OUTCOMES.isdisjoint(found))


@lru_cache(4096)
def words(name: str) -> str:
    """A column's name as lower-case words with `_` between them."""
    return re.sub(r"[\W_]+", "_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()).strip("_")


def text(value: Any) -> str:
    """A value as it is written: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _pair(columns: dict[str, str]) -> tuple[str, str] | None:
    """Columns of the question and of the answer."""
    for names, values in ((_NAMES, _VALUES), (_VAGUE_NAMES, _PLAIN_VALUES)):
        question = next((columns[name] for name in names if name in columns), None)
        answer = next((columns[name] for name in values if name in columns), None)
        if question is not None and answer is not None:
            return question, answer
    return None


def _long(row: Row, columns: dict[str, str], used: set[str]) -> list[tuple[str, str]]:
    pair = _pair(columns)
    if pair is None:
        return []
    used.update(pair)
    return [(text(row[pair[0]]), text(row[pair[1]]))]


def _wide(row: Row, columns: dict[str, str], used: set[str]) -> list[tuple[str, str]]:
    if any(words(name) in _NAMES for name in row) and any(words(name) in _VALUES for name in row):
        return []   # a long row without an answer
    names = [name for each, name in columns.items() if _is_measure(each, _MEASURES | _RESULTS) and name not in used
             and not isinstance(row[name], (dict, list)) and not _is_prose(each, row[name])]
    used.update(names)
    return [(name, text(row[name])) for name in names]


def _is_measure(name: str, known: frozenset[str]) -> bool:
    parts = name.split("_")
    return not known.isdisjoint(parts) and _NO_MEASURE.isdisjoint(parts)


def _is_prose(name: str, value: Any) -> bool:
    return "feedback" in name and isinstance(value, str) and len(value.split()) >= _PROSE_WORDS


def _prose(row: Row, columns: dict[str, str], used: set[str]) -> str | None:
    name = next((name for each, name in columns.items() if name not in used and _is_prose(each, row[name])), None)
    used.update((name,) if name is not None else ())
    return name
