"""Streams of single answers as they came over the wire (`text/event-stream`): OpenAI chat, OpenAI Responses, Anthropic.

The fragments of an answer become its parts. What was asked is not in a stream: each answer is of the session that a link of
another file says its id is of (`trace:` and the id), and its parts say that the input was not captured.
"""

from __future__ import annotations

from typing import Any

from extractors.formats import streams
from extractors.formats.chat import emit_parts
from extractors.formats.chat import parts as chat_parts
from extractors.formats.exchange import finish
from extractors.formats.format import Emit, Format, Head, LogRecord, RejectedRecord, Row, each_record, sample
from extractors.formats.instants import microseconds
from extractors.formats.provider_parts import anthropic_parts, responses_parts
from extractors.formats.sampling import of_completion, of_items, sampling, tokens
from extractors.formats.values import dumped, list_under

_FIELDS = ("data:", "event:", "id:", "retry:", ":")


def claims(head: Head) -> bool:
    """Its first lines are fields of server-sent events, and their data is of one of the APIs."""
    if head.layout not in ("text", "table") or not head.text or not head.text[0].startswith(_FIELDS):
        return False
    events = streams.stream_events("\n\n".join(line for line in head.text if line.startswith("data:")))
    return streams.is_chat(events) or streams.is_anthropic(events) or streams.is_responses(events)


@each_record
def read(record: LogRecord, emit: Emit) -> None:
    """Read the answers of each stream."""
    events = streams.stream_events(record.value)
    if not events:
        raise RejectedRecord("no_events", "the text holds no server-sent events with data; leave it out or repair it")
    for number, each in enumerate(streams.answers(events)):
        _answer(record, number, each, emit)


def _answer(record: LogRecord, number: int, events: list[Row], emit: Emit) -> None:
    """Emit the parts of one answer; data of no known kind becomes a log event, whole."""
    answer, candidates = _parts(events)
    unknown = [each for each in events if not candidates or each.get("type") in ("error", "unreadable")]
    session_id = f"trace:{answer['id']}" if isinstance(answer.get("id"), str) else f"~{record.record_id[:16]}.{number}"
    for i, each in enumerate(unknown):
        emit.event(record, "log", place=f"{number}.log{i}", session_id=session_id, tool=f"event {each.get('type')}",
                   content=dumped(each))
    model = answer.get("model")
    usage = {**(tokens(answer.get("usage")) or {}), **of_completion(answer),
             **of_items(answer.get("output")), **sampling(answer)}
    fixed = {"session_id": session_id, "model": model if isinstance(model, str) else None,
             "happened_at": microseconds(answer.get("created", answer.get("created_at")))}
    for index, (parts, reason) in enumerate(candidates):
        notes = ["input not captured", *finish(reason), *([f"candidate {index}"] if index else ())]
        emit_parts(emit, record, parts, 0, f"{number}.{index}.", fixed, notes, usage if index == 0 else None)


def _parts(events: list[Row]) -> tuple[Row, list[tuple[list[Row], Any]]]:
    """Return the answer that the events make, and of each candidate its parts and why it ended."""
    if streams.is_anthropic(events):
        answer = streams.anthropic_message(events)
        return answer, [(anthropic_parts(answer), answer.get("stop_reason"))]
    if streams.is_chat(events):
        answer = streams.chat_completion(events)
        return answer, [(list(chat_parts(each["message"])), each["finish_reason"]) for each in answer["choices"]]
    if streams.is_responses(events):
        answer = streams.response_object(events)
        parts = [part for item in list_under(answer, "output") for part in responses_parts(item)]
        return answer, [(parts, answer.get("status"))] if parts else []
    return {}, []


FORMAT = Format(name="model_streams", claims=claims, read=read, sample=sample("model_streams.sse"), whole=True, rank=20)
