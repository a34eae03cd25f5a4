"""What the dialects of spans share: what a span may tell, the notes on it, and how its facts are carried over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from extractors.formats.conversation import NOT_CAPTURED, Execution, Generation
from extractors.formats.format import Row
from extractors.formats.history import Histories, History
from extractors.formats.otlp_span import Span
from extractors.formats.sampling import parameters_of, sampling


@dataclass(slots=True)
class Told:
    """What one span tells."""

    spoken: Generation | Execution
    sums_up: bool = False
    """Of a generation: it covers several answers that have spans of their own, and counts only where they are not logged."""
    tools: Any = None
    """Tools that the request declared, as logged."""
    torn: list[tuple[str, str]] = field(default_factory=list)
    """Attributes that were cut off, with what is left of them."""


_PARAMETERS = ("llm.invocation_parameters",)
"""Attributes that hold parameters as an object."""

Dialect = Callable[[Span, Histories], Told | None]
"""What a span tells in a dialect, None where it tells nothing of a conversation."""


def not_captured(name: str) -> list[Row]:
    """The answer of which there is no content: no part of the conversation, but its time and its tokens stay."""
    return [{"kind": "log", "role": "assistant", "content": None, "tool": name, "lossy": [NOT_CAPTURED]}]


def generation(span: Span, asked: list[Row] | History, answers: list[list[Row]], model: str | None, usage: Row) -> Generation:
    """An answer with the facts of its span; where the span says that it was answered, but not what, an empty message."""
    counts = {name: count for name, value in usage.items() if (count := _count(value)) is not None}
    if counts and not any(answers):
        answers = [not_captured(span.name)]
    return Generation(span.record, span.span_id, span.started_at, span.ended_at, span.service, None, asked=asked,
                      answers=answers, model=model, usage={**counts, **sampling_of(span)} or None)


def sampling_of(span: Span) -> Row:
    """The sampling parameters that a span's attributes state."""
    stated = {key: span.value_of(value) for key, value in parameters_of(span.raw).items()}
    written = [span.structured(key) for key in _PARAMETERS if key in span.raw]
    return sampling(stated, *written)


def execution(span: Span, tool: str | None, call_id: str | None, arguments: Any, result: str | None) -> Execution:
    """A run of a tool with the facts of its span; what the status says stays where there is no result."""
    notes = [f"status message: {span.message}"] if result is None and span.message else []
    return Execution(span.record, span.span_id, span.started_at, span.ended_at, span.service, None, tool=tool,
                     call_id=call_id, arguments=arguments, result=result, is_error=span.failed, notes=notes)


def _count(value: Any) -> int | None:
    """A number of tokens; a table may hold it as text, or with a decimal point."""
    if isinstance(value, str) and value[:1].isdecimal():
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e15:
        return int(value)
    return None
