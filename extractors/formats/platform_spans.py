"""A span of a tracing platform, whatever the platform calls it: the fields that all of them know.

`extractors.formats.platform_story` makes conversations of them. Sees which of two tellings of a span is the later one, and
which session a trace belongs to where any of its spans says it. Does not see what the payloads say.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import orjson

from extractors.formats.format import Emit, LogRecord, Row

Key = tuple[str, str]


@dataclass(slots=True)
class PlatformSpan:
    """A span as every platform knows it."""

    record: LogRecord
    trace_id: str
    span_id: str
    kind: Literal["model", "tool", "other"]
    name: str | None = None
    parent_id: str | None = None
    session_id: str | None = None
    identity: str | None = None
    service: str | None = None
    started_at: int | None = None
    ended_at: int | None = None
    asked: Any = None
    """What went in, as logged."""
    answered: Any = None
    """What came out, as logged; None: not captured."""
    tools: Any = None
    """Tools that a model's request declares, where they stand outside what went in."""
    call_id: str | None = None
    model: str | None = None
    usage: Row | None = None
    is_error: bool | None = None
    problem: str | None = None
    """What the platform says went wrong."""
    updated_at: int | None = None
    label: str | None = None
    """What the platform calls this kind of span."""
    said: str | None = None
    """The line that a span logged, where it is no part of a conversation."""
    attributes: Row = field(default_factory=dict)
    """What else is worth keeping of a span that tells no part of a conversation."""

    @property
    def key(self) -> Key:
        return (self.trace_id, self.span_id)

    @property
    def parent(self) -> Key:
        return (self.trace_id, self.parent_id or "")

    @property
    def order(self) -> tuple[int, int, str]:
        return (self.started_at or 0, -(self.ended_at or 0), self.span_id)


def alias(trace_id: str) -> str:
    """Name of the session of a trace that does not state it."""
    return f"trace:{trace_id}"


def link(emit: Emit, record: LogRecord, session_id: str, trace_id: str, seen: set[Key]) -> None:
    """Say once a file which session a trace belongs to."""
    if trace_id and (session_id, trace_id) not in seen and session_id != alias(trace_id):
        seen.add((session_id, trace_id))
        emit.event(record, "link", place=f"link/{trace_id}", session_id=session_id, value=alias(trace_id))


def latest(spans: Iterable[PlatformSpan], emit: Emit) -> list[PlatformSpan]:
    """Each span once, as it was updated last."""
    found: dict[Key, PlatformSpan] = {}
    for span in spans:
        known = found.get(span.key)
        if known is None or (span.updated_at or 0) >= (known.updated_at or 0):
            found[span.key], span = span, known or span
        if known is not None:
            emit.reject(span.record, "replaced_span", "the span came again, and as updated later it is taken; nothing to mend")
    return list(found.values())


def by_session(spans: list[PlatformSpan]) -> dict[str, list[PlatformSpan]]:
    """Spans by session: as stated, else as the rest of their trace states it, else the alias of the trace."""
    stated: dict[str, dict[str, None]] = {}
    for span in sorted(spans, key=lambda each: each.order):
        if span.session_id:
            stated.setdefault(span.trace_id, {})[span.session_id] = None
    found: dict[str, list[PlatformSpan]] = {}
    for span in spans:
        own = stated.get(span.trace_id, {})
        name = span.session_id or (next(iter(own)) if own else alias(span.trace_id))
        found.setdefault(name, []).append(span)
    return found


def texts(facts: Row) -> str:
    """JSON object of the facts that say something."""
    return orjson.dumps({key: value for key, value in facts.items() if value not in (None, "", [], {})}).decode()
