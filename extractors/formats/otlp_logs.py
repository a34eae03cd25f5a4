"""OTLP log records: messages of the GenAI conventions 1.28 to 1.36, details of an inference (1.37 and later), evaluations.

In: log records of one file. Out: to a `Gathering`, the generations that they tell; events for evaluations, and for all other
records. Sees the event's name as a field or as an attribute, bodies as structures or as JSON text.
Does not see: what an application's own records mean; they are log events with what they carry.
"""

from __future__ import annotations

from typing import Any

import orjson

from extractors.formats.conversation import Generation
from extractors.formats.format import Emit, LogRecord, Row
from extractors.formats.history import Histories, History
from extractors.formats.instants import microseconds
from extractors.formats.openinference import judgement
from extractors.formats.otlp_dialect import Told
from extractors.formats.otlp_genai import genai
from extractors.formats.otlp_messages import CHOICE, DETAILS, MESSAGES, body_of, choice_told, message_told
from extractors.formats.otlp_span import Span, hex_id, plain, raw_attributes, written
from extractors.formats.span_gathering import Gathering

_EVALUATION = "gen_ai.evaluation.result"
_SESSION = ("gen_ai.conversation.id", "session.id")


class Logs:
    """Collects what the log records of one file tell."""

    def __init__(self, emit: Emit, gathering: Gathering) -> None:
        self._emit = emit
        self._gathering = gathering
        self._histories = Histories()
        self._generations: dict[tuple[str, str], Generation] = {}
        self._following: dict[tuple[Any, str, bytes], History] = {}
        """Inputs by what they were before their last message, and that message: repeated histories are held once."""

    def add(self, record: LogRecord, log: Row, service: str | None) -> None:
        """Take in a log record."""
        span = _as_span(record, log, service)
        name = log.get("eventName") or log.get("event_name") or span.attribute("event.name")
        self._gathering.session_of(record, span.trace_id, span.text(*_SESSION))
        key = (span.trace_id, span.span_id)
        if name in MESSAGES and span.span_id:
            self._ask(self._generation(span, key), span, name, log)
        elif name == CHOICE and span.span_id:
            self._choose(self._generation(span, key), span, body_of(log))
        elif name in DETAILS and (told := self._told(span, log.get("body"))) is not None:
            for attribute, left in told.torn:
                self._gathering.torn(record, f"{span.span_id}/{attribute}", span.trace_id, attribute, left)
            told.spoken.identity = span.text("user.id", "enduser.id")
            self._gathering.hold(key, "", span.text(*_SESSION), told)
        elif name == _EVALUATION:
            self._judge(span)
        else:
            self._say(span, log, name)

    def end(self) -> None:
        """Hand over the generations that messages told."""
        for key, generation in self._generations.items():
            generation.answers = [answer for answer in generation.answers if answer]
            self._gathering.hold(key, "", None, Told(generation))

    def _generation(self, span: Span, key: tuple[str, str]) -> Generation:
        found = self._generations.get(key)
        if found is None:
            found = self._generations[key] = Generation(span.record, span.span_id, span.started_at, None, span.service)
        return found

    def _ask(self, generation: Generation, span: Span, name: str, log: Row) -> None:
        """One more message of the input."""
        self._gathering.spoke(span.record, span.trace_id)
        before = generation.asked if isinstance(generation.asked, History) else None
        key = (id(before) if before is not None else span.trace_id, name, orjson.dumps(log.get("body")))
        if key not in self._following:
            parts = message_told(name, body_of(log))
            self._following[key] = History([{**part, "_record": span.record} for part in parts], before)
        generation.asked = self._following[key]

    def _choose(self, generation: Generation, span: Span, body: Any) -> None:
        """A candidate answer."""
        index, parts = choice_told(body)
        for part in parts:
            part["_record"] = span.record
        place = index if index is not None else len(generation.answers)
        generation.answers += [[] for _ in range(place + 1 - len(generation.answers))]
        generation.answers[place] = generation.answers[place] + parts
        generation.ended_at = span.started_at

    def _told(self, span: Span, body: Any) -> Told | None:
        """Details of an inference: attributes, or the same in the body."""
        facts = plain(body) if isinstance(body, dict) else None
        if isinstance(facts, dict) and not any(key.startswith("gen_ai.") for key in span.raw):
            span.raw, span.value_of = facts, lambda value: value
        span.started_at, span.ended_at = None, span.started_at
        return genai(span, self._histories)

    def _judge(self, span: Span) -> None:
        """An evaluation: on the span that it is logged in."""
        names = {"name": "name", "score": "score.value", "label": "score.label", "explanation": "explanation"}
        facts = {key: span.attribute(f"gen_ai.evaluation.{path}") for key, path in names.items()}
        facts["response_id"] = span.attribute("gen_ai.response.id")
        row = self._emit.event(span.record, "feedback", happened_at=span.started_at, service=span.service,
                               session_id=span.text(*_SESSION), call_id=span.span_id or None, **judgement(facts))
        if row["session_id"] is None:
            self._gathering.later(row, span.trace_id)

    def _say(self, span: Span, log: Row, name: Any) -> None:
        """Any other record."""
        body = body_of(log)
        carried = {key: span.value_of(value) for key, value in span.raw.items()}
        if isinstance(body, (dict, list)):
            carried["body"] = body
        severity = log.get("severityText") or log.get("severityNumber")
        if severity is not None:
            carried["severity"] = severity
        row = self._emit.event(
            span.record, "log", happened_at=span.started_at, service=span.service, session_id=span.text(*_SESSION),
            tool=written(name), content=written(body), arguments=orjson.dumps(carried).decode() if carried else None,
            name=span.text("user.id", "enduser.id"))
        if row["session_id"] is None and span.trace_id:
            self._gathering.later(row, span.trace_id)


def _as_span(record: LogRecord, log: Row, service: str | None) -> Span:
    """The record's context as a span's."""
    times = (log.get(key) for key in ("timeUnixNano", "time_unix_nano", "observedTimeUnixNano", "observed_time_unix_nano"))
    instant = next((found for each in times if (found := microseconds(each)) is not None), None)
    return Span(record=record, trace_id=hex_id(log.get("traceId", log.get("trace_id"))),
                span_id=hex_id(log.get("spanId", log.get("span_id"))), parent_id="", name="", started_at=instant, ended_at=None,
                service=service, raw=raw_attributes(log), value_of=plain)
