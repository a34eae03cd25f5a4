"""What a column must look like to be one of our fields, beside its name.

In: a column. Out: whether it may be that field, or points for it.
"""

from __future__ import annotations

import re

from extractors.column_names import WORDS
from extractors.formats.mapped_words import kind_of
from extractors.shapes import Column

_TOOL_WORDS = {"tool", "function", "call", "called", "invoke", "invoked", "action", "skill", "plugin", "api"}


def is_work(word: str) -> bool:
    """Whether a word says that a record tells of a tool."""
    return kind_of(word, {}) in ("call", "result") or (kind_of(word, {}) is None and _speaks_of_tools(word))


def role_free(column: Column) -> bool:
    """Whether the values are no words for roles."""
    return column.role_share < 0.5


def session_shape(column: Column) -> float:
    """Points of a column as the id of sessions."""
    points = 1.0 if column.words[-1:] and column.words[-1] in ("id", "ref", "key", "no", "number", "uuid", "code") else 0.0
    if column.is_outer:   # what holds a list of messages alone is named by its id
        return points + 1.2 + (2.0 if points and len(column.words) == 1 and column.path.count(".") == 1 else 0.0)
    if len(column.values) < 4:
        return points
    if not column.repeats:
        return points - 3.0
    return points + (1.0 if len(column.counts) > 1 else 0.0)


def says_end(column: Column) -> bool:
    """Whether the name speaks of an end."""
    return bool(set(column.words) & set(WORDS["ended"]))


def is_short(value: object) -> bool:
    """Whether a value is as short as a name or an id."""
    return isinstance(value, int) or (isinstance(value, str) and len(value) <= 60 and len(value.split()) <= 3)


def tells_tools(column: Column) -> bool:
    """Whether the words speak of tools, if in no way that is known."""
    return any(map(_speaks_of_tools, column.counts))


def _speaks_of_tools(word: str) -> bool:
    return bool(set(re.split(r"[^a-z]+", word.lower())) & _TOOL_WORDS)


def could_be_result(column: Column) -> bool:
    """Whether the values could be what tools answered."""
    return not column.is_time and not column.is_status and not column.is_flag and role_free(column) and not column.is_methods


def is_call_id(column: Column, rows: set[int]) -> bool:
    """Whether the values are ids of calls: on rows of tools, each at most on a few rows."""
    counts = [column.counts[str(column.held[row])] for row in rows & set(column.held) if str(column.held[row]) in column.counts]
    return bool(counts) and max(counts) <= 2 and len(set(column.held) & rows) >= 0.5 * len(rows) * (1 if counts else 0)


def call_id_shape(column: Column) -> float:
    """Points of a column as the id of calls."""
    return 1.0 if {"call", "tool", "invocation"} & {*column.words, *column.outer_words} else 0.0


def said(column: Column) -> float:
    """Points of a column as what was said: words a value."""
    return min(column.mean_words / 4, 1.5) if column.mean_words >= 1.5 else -1.0


def says_duration(column: Column) -> bool:
    """Whether the name speaks of a duration."""
    words = {*column.words}
    return bool(words & set(WORDS["latency"])) and words != {"time"} and not words & {"tokens", "token"}


def in_seconds(column: Column) -> bool:
    """Whether a duration is in seconds, by its name, else by its size."""
    words = set(column.words)
    if words & {"ms", "millis", "milliseconds"}:
        return False
    if words & {"s", "sec", "secs", "seconds"}:
        return True
    return column.mean < 100 and column.share(lambda each: "." in str(each)) > 0.5
