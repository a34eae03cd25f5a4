"""Ratings in the record of a conversation: feedback on the session that the record is of.

In: a record (or its metadata) and its session. Out: a feedback event for each rating, an outcome event for what became of the
case. Sees: fields that are named as ratings are (`thumbs`, `csat_score`, `user_rating`, `resolved` …), objects and lists of
ratings by name (`scores`, `feedback`, `feedback_stats` with their averages …), all of them as JSON text too, and the status of
a ticket or a case. What is repeated for a session counts once a file. Does not see: ratings deeper inside, the scale of one.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any

from extractors.formats.feedback import is_measure, is_outcome, parse_row, words
from extractors.formats.format import Emit, LogRecord, Row
from extractors.formats.values import object_of, objects_in, opened, written

_HOLDERS = frozenset({"feedback", "feedbacks", "feedback_stats", "user_feedback", "rating", "ratings", "score", "scores",
                      "evaluations", "evals", "survey", "csat", "annotations"})
"""Fields that hold ratings by name."""
_AROUND = ("metadata", "extra", "custom", "properties")
_VALUES = ("avg", "value", "score", "rating", "answer", "label", "string_value", "stringValue", "thumbs", "result")
_CASES = frozenset({"ticket", "case", "issue", "conversation", "session", "chat", "resolution", "contact"})
_RESULTS = frozenset({"outcome", "resolution"})
_COMMENTS = ("comment", "comments", "feedback_text", "verbatim")
_SETTINGS = frozenset({"quality"})
"""Names that a rating and a setting of a model share."""
Rating = tuple[str, str, str | None]
"""Name, answer as written, and comment."""


def rate(emit: Emit, record: LogRecord, value: Any, session_id: str | None, **fields: Any) -> None:
    """Emit what a record says of how good its session was; `fields` are columns of the events."""
    if session_id is None:
        return
    for name, answer, comment in ratings_of(value):
        if emit.is_new_rating((session_id, name, answer)):
            emit.event(record, "outcome" if is_outcome(name) else "feedback", place=f"rating/{name}", session_id=session_id,
                       name=name, value=answer, content=comment, **fields)


def ratings_of(value: Any) -> Iterator[Rating]:
    """Yield the ratings of a record, then those of the objects around it (`metadata` …)."""
    record = object_of(value)
    for place in (record, *(opened(record[key]) for key in _AROUND if key in record)):
        names = [key for key in place if isinstance(key, str) and _may_rate(key)] if isinstance(place, dict) else []
        if not names:
            continue
        comment = next((each for key, each in place.items() if isinstance(each, str) and each and isinstance(key, str)
                        and (words(key) in _COMMENTS or words(key).endswith("_comment"))), None)
        for key in names:
            if place[key] not in (None, "", [], {}):
                yield from _field(key, opened(place[key]), comment)


@lru_cache(4096)
def _may_rate(key: str) -> bool:
    """Return whether a field of that name can hold ratings."""
    name = words(key)
    return name in _HOLDERS or is_measure(name) or name in _RESULTS or is_outcome(key)


def _field(key: str, value: Any, comment: str | None) -> Iterator[Rating]:
    name = words(key)
    parts = name.split("_")
    if isinstance(value, dict):
        if name in _HOLDERS:
            yield from _in_object(value)
    elif isinstance(value, list):
        if name in _HOLDERS:
            yield from _in_list(value)
    elif (is_measure(name) and _SETTINGS.isdisjoint(parts)) or name in _RESULTS or (
            is_outcome(key) and not _CASES.isdisjoint(parts[:-1])):
        yield key, written(value) or "", comment


def _in_object(ratings: Row) -> Iterator[Rating]:
    """Yield the ratings of an object: one by itself, or one under each name."""
    answers = parse_row(ratings).answers
    if "key" in ratings or "name" in ratings:
        yield from ((name, answer, _comment(ratings)) for name, answer in answers)
        return
    for name, value in ratings.items():
        answer = _answer(value) if isinstance(value, dict) else value
        if isinstance(name, str) and answer not in (None, "", [], {}) and not isinstance(answer, (dict, list)) and (
                words(name) not in _COMMENTS):
            yield name, written(answer) or "", _comment(value) or _comment(ratings)


def _in_list(ratings: list[Any]) -> Iterator[Rating]:
    for each in objects_in(ratings):
        yield from ((name, answer, _comment(each)) for name, answer in parse_row(each).answers)


def _answer(stated: Row) -> Any:
    """Return the answer in an object; of counts by answer, the only one that was given."""
    answer = next((stated[key] for key in _VALUES if stated.get(key) not in (None, "") and not isinstance(
        stated[key], (dict, list))), None)
    given = [key for key, count in object_of(stated.get("values")).items() if count]
    return given[0] if answer is None and len(given) == 1 else answer


def _comment(stated: Any) -> str | None:
    return next((written(stated[key]) for key in _COMMENTS if isinstance(stated, dict) and isinstance(stated.get(key), str)
                 and stated[key]), None)
