"""OTLP/JSON traces with GenAI attributes, semantic conventions 1.37 and later.

Sees `gen_ai.input.messages`, `gen_ai.output.messages` and `gen_ai.system_instructions` (structured or JSON text) of model
spans and `execute_tool` spans. Messages give the content, tool spans the times and the error; a call that only a tool span
tells of is taken from there. A span that comes twice (a batch sent again) counts once. Spans may repeat the whole history,
or bring only what is new.
Does not see: contents in span events (1.26) or log records (1.28 to 1.36), spans of other conventions; they are rejects.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from extractors.formats.format import Emit, Format, Head, LogRecord, Row
from extractors.formats.otlp_conversation import Conversation
from extractors.formats.otlp_span import Span, resource_attributes, trace_of
from extractors.formats.samples import sample
from extractors.formats.tool_list import declare_all


def claims(head: Head) -> bool:
    """The first object is a batch of spans."""
    return head.layout in ("lines", "document") and ("resourceSpans" in head.first or "resource_spans" in head.first)


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """All spans of the file first, since files are not ordered; then each conversation in the order of time."""
    spans: dict[tuple[str, str], Span] = {}
    for record in records:
        n_before = len(spans)
        with emit.guarded(record):
            for span in _spans(record, emit):
                if span.key in spans:
                    emit.reject(record, "duplicate_span", "the span came before (a batch sent again); nothing to mend")
                elif not span.speaks():
                    emit.reject(record, "other_span",
                                f"span {span.name!r} carries no GenAI content of version 1.37 or later")
                else:
                    spans[span.key] = span
        if len(spans) == n_before:
            emit.reject(record, "no_new_span", "the record brings no span that tells of a conversation")
    for session_id, members in sorted(_conversations(spans.values()).items()):
        with emit.guarded(*{span.record.record_id: span.record for span in members}.values()):
            Conversation(session_id, emit).tell(sorted(members, key=lambda span: span.order))
    _declare(spans.values(), emit)


def _spans(record: LogRecord, emit: Emit) -> Iterator[Span]:
    batch = record.value if isinstance(record.value, dict) else {}
    for resource in batch.get("resourceSpans") or batch.get("resource_spans") or ():
        facts = resource_attributes(resource)
        service = emit.envelope.service(facts)
        for scope in resource.get("scopeSpans") or resource.get("scope_spans") or ():
            for span in scope.get("spans") or ():
                yield Span(record, span, service)


def _conversations(spans: Iterable[Span]) -> dict[str, list[Span]]:
    """Spans by session: as stated, else as the rest of their trace states it, else the trace itself (`~` and its id)."""
    members = list(spans)
    stated: dict[str, set[str]] = {}
    for span in members:
        if span.session_id is not None:
            stated.setdefault(span.key[0], set()).add(span.session_id)
    found: dict[str, list[Span]] = {}
    for span in members:
        trace = stated.get(span.key[0], set())
        name = span.session_id or (next(iter(trace)) if len(trace) == 1 else trace_of(span))
        found.setdefault(name, []).append(span)
    return found


def _declare(spans: Iterable[Span], emit: Emit) -> None:
    """Tools that requests declare, each different list of a service once."""
    seen: dict[str | None, list[Any]] = {}
    for span in spans:
        tools: list[Row] | None = span.structured("gen_ai.tool.definitions")
        if tools and tools not in seen.setdefault(span.service, []):
            seen[span.service].append(tools)
            declare_all(tools, emit, span.service)


FORMAT = Format(name="otlp", claims=claims, read=read, sample=sample("otlp.jsonl"), rank=20)
