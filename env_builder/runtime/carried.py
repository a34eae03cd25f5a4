"""What earlier calls of the session gave and got, as `carried` rules read it (docs/behaviour.md).

In: a rule's sources, the arguments of a call, the session's calls before it. Out: source -> {"arguments", "answer"} of the
latest call that it means, or None if the session made no such call. A source is absent where that call's answer is unknown, or
where a call since then is not known to leave such values alone (`passes`).
Sees: the latest call of a tool, or the latest that shares a value with this call (`by`). Does not see: what only several calls
together tell, and what a session began with.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from .answers import parse, parsed
from .caching import cached
from .precedents import MOST_CALLS, PastCall, PastCalls

Path = tuple[Any, ...]
SCALARS = (str, int, float)
NAMING = "*"
"""Stands behind the tool of a call that names the value by which a source is selected."""


class Source(NamedTuple):
    """The latest call of a tool that worked."""

    tool: str
    by: tuple[str, Path] | None = None
    """(argument of this call, path of the same value in that call), None: any call of the tool."""


class Recall(NamedTuple):
    """What a session's calls tell of a source."""

    record: dict[str, Any] | None
    """Arguments and answer of the call; None: the session made no such call, or its answer is unknown."""
    is_known: bool
    between: tuple[str, ...]
    """Labels of the calls since then (or since the session began)."""


def given(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments that have a value."""
    return {name: value for name, value in arguments.items() if value is not None}


@cached(16384)
def record_of(call: PastCall) -> dict[str, Any]:
    """Return arguments and answer of a call; an answer that is no JSON is a text."""
    answer = None if call.content is None else parse(call.content)
    return {"arguments": parsed(call.key), "answer": call.content if answer is None else answer}


def value_at(record: Any, path: Path) -> Any:
    """Return the value at a path, None where it leads nowhere."""
    for step in path:
        if not (step in record if isinstance(record, dict) else isinstance(record, list) and isinstance(step, int)
                and step < len(record)):
            return None
        record = record[step]
    return record


def is_scalar(value: Any) -> bool:
    """Return whether it is a text or a number."""
    return isinstance(value, SCALARS) and not isinstance(value, bool)


def recall(source: Source, arguments: dict[str, Any], past: PastCalls) -> Recall:
    """Return what the session's calls tell of a source, when a call with these arguments is made."""
    wanted = arguments.get(source.by[0]) if source.by else None
    if source.by and not is_scalar(wanted):
        return Recall(None, False, ())
    between: list[str] = []
    for call in reversed(past):
        if call.failed:
            continue
        record = record_of(call)
        if call.tool == source.tool and (source.by is None or value_at(record, source.by[1]) == wanted):
            return Recall(record if call.content is not None else None, call.content is not None, tuple(between))
        between.append(call.tool + NAMING if wanted is not None and wanted in _named_in(call) else call.tool)
    return Recall(None, len(past) < MOST_CALLS, tuple(between))


@cached(16384)
def _named_in(call: PastCall) -> frozenset[Any]:
    return frozenset(_leaves(record_of(call)))


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _leaves(item)
    elif is_scalar(value):
        yield value


def recalled(sources: list[dict[str, Any]], arguments: dict[str, Any], past: PastCalls) -> dict[str, Any]:
    """Return the records of a rule's sources by their position, of those that are known."""
    records: dict[str, Any] = {}
    for place, one in enumerate(sources):
        by = (one["by"][0], tuple(one["by"][1])) if one["by"] else None
        recalled_call = recall(Source(one["tool"], by), arguments, past)
        if recalled_call.is_known and set(recalled_call.between) <= set(one["passes"]):
            records[str(place)] = recalled_call.record
    return records
