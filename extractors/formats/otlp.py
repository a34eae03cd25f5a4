"""OTLP/JSON: traces and log records with the contents of conversations, in every dialect of them.

Sees batches in camel or snake case, ids as hex or base64, and per span its dialect: GenAI conventions (span events of 1.26,
attributes of 1.37 and later, MCP), OpenInference, Traceloop, Vercel AI SDK; per log record: messages of 1.28 to 1.36, details
of an inference, evaluations. One file may mix all of these. Messages give the content, tool spans the times and the error.
Bodies of log records are read as structures or as JSON text. Does not see: protobuf, metrics, what an application's own records
mean; spans and records of anything else are kept as log events.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from extractors.formats.conversation import Generation
from extractors.formats.format import Block, Emit, Format, Head, LogRecord, LogRecords, Row, sample
from extractors.formats.history import Histories, PromptHistory, Shortened
from extractors.formats.instants import microseconds
from extractors.formats.otlp_parts import CHOICE, DETAILS, MESSAGES, body_of, choice_parts, input_message_parts
from extractors.formats.otlp_span import TraceSpan, hex_id, otlp_span, plain, raw_attributes
from extractors.formats.span_dialects import GENAI, SpanReading, judgement, read_span
from extractors.formats.span_gathering import SpanGatherer
from extractors.formats.values import dumped, list_under, loaded, written

_BATCHES = ("resourceSpans", "resource_spans", "resourceLogs", "resource_logs", "batches")
_SCOPES = ("scopeSpans", "scope_spans", "instrumentationLibrarySpans", "scopeLogs", "scope_logs")
_BARE = ("start_time_unix_nano", "startTimeUnixNano")
_SESSION = ("gen_ai.conversation.id", "session.id")


def claims(head: Head) -> bool:
    """One of the first objects is a batch of spans or log records."""
    return head.is_json and any(_is_batch(each) for each in head.objects)


def read_block(block: Block, emit: Emit) -> None:
    """Read the same, of lines whose texts need not be parsed where they repeat what came before."""
    shortened = Shortened()

    def records() -> Iterator[LogRecord]:
        for index, content in enumerate(block.contents):
            short = shortened.line(content)
            value = loaded(short) if short is not content else None
            if isinstance(value, dict) and not any(key in value for key in ("resourceLogs", "resource_logs")):
                yield LogRecord(block.record_ids[index], block.lines[index], value)
            elif (record := block.record(index)) is not None:
                yield record

    read(records(), emit, shortened)


def read(records: LogRecords, emit: Emit, shortened: Shortened | None = None) -> None:
    """All spans of the file first, since files are not ordered; then each conversation in the order of time."""
    gathering = SpanGatherer(emit, shortened=shortened)
    value_of = plain if shortened is None else shortened.value_of
    logs = Logs(emit, gathering)
    for record in records:
        light = gathering.record(record)
        with emit.guarded(light):
            for kind, each, service in _members(record.value, emit):
                with emit.guarded(light):
                    if kind == "log":
                        logs.add(light, each, service)
                    else:
                        gathering.add(otlp_span(light, each, service, value_of))
    logs.end()
    gathering.tell()


def _is_batch(value: Row) -> bool:
    if any(isinstance(value.get(key), list) for key in _BATCHES[:-1]):
        return True
    batches, data = value.get("batches"), value.get("data")
    if isinstance(batches, list) and batches and isinstance(batches[0], dict):
        return any(key in batches[0] for key in _SCOPES)
    return isinstance(data, list) and bool(data) and isinstance(data[0], dict) and any(key in data[0] for key in _BARE)


def _members(value: Any, emit: Emit) -> Iterator[tuple[str, Row, str | None]]:
    if not isinstance(value, dict):
        return
    for resource in (each for key in _BATCHES for each in value.get(key) or ()):
        raw = raw_attributes(resource.get("resource") or {})
        service = emit.envelope.service({key: plain(value) for key, value in raw.items()})
        for scope in (each for key in _SCOPES for each in resource.get(key) or ()):
            for key in ("spans", "logRecords", "log_records"):
                yield from (("span" if key == "spans" else "log", each, service) for each in scope.get(key) or ())
    yield from (("span", each, None) for each in list_under(value, "data"))


class Logs:
    """Collects what the log records of one file tell."""

    def __init__(self, emit: Emit, gathering: SpanGatherer) -> None:
        self._emit = emit
        self._gathering = gathering
        self._histories = Histories()
        self._generations: dict[tuple[str, str], Generation] = {}
        self._following: dict[tuple[Any, str, bytes], PromptHistory] = {}
        """Inputs by what they were before their last message, and that message: repeated histories are held once."""

    def add(self, record: LogRecord, log: Row, service: str | None) -> None:
        times = (log.get(key) for key in ("timeUnixNano", "time_unix_nano", "observedTimeUnixNano", "observed_time_unix_nano"))
        instant = next((instant_us for each in times if (instant_us := microseconds(each)) is not None), None)
        span = TraceSpan(   # the record's context
            record=record, trace_id=hex_id(log.get("traceId", log.get("trace_id"))),
            span_id=hex_id(log.get("spanId", log.get("span_id"))), parent_id="", name="", started_at=instant, ended_at=None,
            service=service, raw=raw_attributes(log), value_of=plain)
        name = log.get("eventName") or log.get("event_name") or span.attribute("event.name")
        self._gathering.session_of(record, span.trace_id, span.text(*_SESSION))
        key = (span.trace_id, span.span_id)
        if name in MESSAGES and span.span_id:
            self._ask(self._generation(span, key), span, name, log)
        elif name == CHOICE and span.span_id:
            generation = self._generation(span, key)
            index, parts = choice_parts(body_of(log))
            place = index if index is not None else len(generation.answers)
            generation.answers += [[] for _ in range(place + 1 - len(generation.answers))]
            generation.answers[place] = [*generation.answers[place], *({**part, "_record": record} for part in parts)]
            generation.ended_at = span.started_at
        elif name in DETAILS and (reading := self._read_details(span, log.get("body"))) is not None:
            for attribute, remainder in reading.torn:
                self._gathering.torn(record, f"{span.span_id}/{attribute}", span.trace_id, attribute, remainder)
            reading.spoken.identity = span.text("user.id", "enduser.id")
            self._gathering.hold(key, "", span.text(*_SESSION), reading)
        elif name == "gen_ai.evaluation.result":
            names = {"name": "name", "score": "score.value", "label": "score.label", "explanation": "explanation"}
            facts = {key: span.attribute(f"gen_ai.evaluation.{path}") for key, path in names.items()}
            facts["response_id"] = span.attribute("gen_ai.response.id")
            self._gathering.place(self._emit.event(
                record, "feedback", happened_at=span.started_at, service=service, session_id=span.text(*_SESSION),
                call_id=span.span_id or None, **judgement(facts)), span.trace_id)
        else:
            body, severity = body_of(log), log.get("severityText") or log.get("severityNumber")
            carried = {key: span.value_of(value) for key, value in span.raw.items()}
            carried |= {"body": body} if isinstance(body, (dict, list)) else {}
            carried |= {"severity": severity} if severity is not None else {}
            self._gathering.place(self._emit.event(
                record, "log", happened_at=span.started_at, service=service, session_id=span.text(*_SESSION),
                tool=written(name), content=written(body), arguments=dumped(carried) if carried else None,
                name=span.text("user.id", "enduser.id")), span.trace_id)

    def end(self) -> None:
        for key, generation in self._generations.items():
            generation.answers = [answer for answer in generation.answers if answer]
            self._gathering.hold(key, "", None, SpanReading(generation))

    def _generation(self, span: TraceSpan, key: tuple[str, str]) -> Generation:
        new = Generation(span.record, span.span_id, span.started_at, None, span.service)
        return self._generations.setdefault(key, new)

    def _ask(self, generation: Generation, span: TraceSpan, name: str, log: Row) -> None:
        self._gathering.spoke(span.record, span.trace_id)
        before = generation.prompt if isinstance(generation.prompt, PromptHistory) else None
        key = (id(before) if before is not None else span.trace_id, name, orjson.dumps(log.get("body")))
        if key not in self._following:
            parts = input_message_parts(name, body_of(log))
            self._following[key] = PromptHistory([{**part, "_record": span.record} for part in parts], before)
        generation.prompt = self._following[key]

    def _read_details(self, span: TraceSpan, body: Any) -> SpanReading | None:
        """Details of an inference: attributes, or the same in the body."""
        facts = plain(body) if isinstance(body, dict) else None
        if isinstance(facts, dict) and not any(key.startswith("gen_ai.") for key in span.raw):
            span.raw, span.value_of = facts, lambda value: value
        span.started_at, span.ended_at = None, span.started_at
        return read_span(span, self._histories, GENAI)


FORMAT = Format(name="otlp", history="spans", claims=claims, read=read, sample=sample("otlp.jsonl"), rank=20,
                read_block=read_block)
