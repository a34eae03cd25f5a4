"""Conversations of the editor Cursor: its store (`state.vscdb`, SQLite), and its transcripts (`agent-transcripts/*.jsonl`).

Of the store: conversations (`composerData:…`) with their messages (`bubbleId:…`) in the order of the conversation: texts,
thoughts, calls with results and whether they failed, token counts, times, the model. Of a transcript: texts and calls; it holds
no results, no ids and no times. What the editor wrote around a prompt (`<user_query>`) is a log event.
Does not see: the store's other keys (settings and credentials are never read), attached files, the system prompt.
"""

from __future__ import annotations

import re
from typing import Any

from extractors.formats.format import Emit, Format, Head, LogRecord, LogRecords, Row, sample
from extractors.formats.instants import microseconds
from extractors.formats.provider_parts import anthropic_parts
from extractors.formats.transcript import Transcript, nameless, written
from extractors.formats.values import dumped, first_of, object_of, objects_in, parsed_json, text_of, word_of

_STORE = "cursorDiskKV"
_CONVERSATION, _MESSAGE = "composerData:", "bubbleId:"
_ROLES = {"1": "user", "2": "assistant"}
_FAILED, _WORKED = ("error", "cancelled"), ("completed", "success")
_OTHERS = frozenset({"type", "content", "uuid", "sessionId", "session_id", "request", "response"})
"""Keys that tell another envelope around a message."""
_QUERY = re.compile(r"\s*<user_query>\s*(.*?)\s*</user_query>\s*", re.DOTALL)


def claims(head: Head) -> bool:
    """Return whether a database has the store's table, or the first lines are those of a transcript."""
    if head.layout == "database":
        return isinstance(head.document, dict) and _STORE in head.document
    return head.layout == "lines" and bool(head.objects) and _is_line(head.first)


def _is_line(value: Row) -> bool:
    return _OTHERS.isdisjoint(value) and isinstance(value.get("role"), str) and isinstance(
        object_of(value.get("message")).get("content"), (str, list))


def read(records: LogRecords, emit: Emit) -> None:
    """Each conversation of a store is a session, and so is a transcript."""
    transcript: Transcript | None = None
    for record in records:
        value = record.value
        with emit.guarded(record):
            if isinstance(value, dict) and isinstance(value.get(_STORE), list):
                _store(record, value[_STORE], emit)
                continue
            if not isinstance(value, dict) or not value:
                emit.reject(record, "no_line", "the record is no line of a transcript; leave it out or repair it")
                continue
            if transcript is None:
                transcript = Transcript(emit, record, nameless(record), service=emit.envelope.service(None))
            transcript.record = record
            _line(transcript, value)


def _line(transcript: Transcript, value: Row) -> None:
    message, at = value.get("message"), microseconds(value.get("timestamp"))
    if not isinstance(message, dict) or value.get("role") not in ("user", "assistant", "system", "tool"):
        transcript.log(value, tool=str(value.get("type", "line")), happened_at=at)
        return
    for part in anthropic_parts({**message, "role": value["role"]}):
        content = part.get("content")
        is_prompt = part["kind"] == "message" and part["role"] == "user" and isinstance(content, str)
        query = _QUERY.search(content) if content is not None and is_prompt else None
        if query is not None and content is not None:
            around = f"{content[:query.start()]}{content[query.end():]}".strip()
            if around:
                transcript.log(around, tool="context", happened_at=at)
            part = {**part, "content": query[1]}
        transcript.add(part, happened_at=at)


def _store(record: LogRecord, rows: list[Row], emit: Emit) -> None:
    """Tell the conversations of a store; a message that no conversation lists is a log event."""
    values = {str(row.get("key")): _loaded(row.get("value")) for row in rows}
    taken: set[str] = set()
    for key in sorted(values):
        conversation = values[key]
        if not key.startswith(_CONVERSATION) or not isinstance(conversation, dict):
            continue
        with emit.guarded(record):
            name = key.removeprefix(_CONVERSATION)
            transcript = Transcript(emit, record, name, f"{name}/", service=emit.envelope.service(None),
                                    model=word_of(object_of(conversation.get("modelConfig")).get("modelName")))
            for listed in (*objects_in(conversation.get("fullConversationHeadersOnly")),
                           *objects_in(conversation.get("conversation"))):
                place = f"{_MESSAGE}{name}:{listed.get('bubbleId')}"
                taken.add(place)
                stored = values.get(place)
                _bubble(transcript, {**listed, **stored} if isinstance(stored, dict) else listed)
            if not transcript.n_events:
                transcript.log(conversation.get("name") or "", tool="empty conversation")
    for key in sorted(values.keys() - taken):
        if key.startswith(_MESSAGE) and isinstance(values[key], dict):
            emit.event(record, "log", place=key, tool="message without a conversation", content=dumped(values[key]),
                       session_id=key.split(":")[1])
    if not any(key.startswith((_CONVERSATION, _MESSAGE)) for key in values):
        emit.event(record, "log", tool="store without conversations")   # rejected, its bytes would be kept, and its credentials


def _loaded(value: Any) -> Any:
    return parsed_json(value) if isinstance(value, (str, bytes)) else None


def _bubble(transcript: Transcript, bubble: Row) -> None:
    """Tell a message of the store: its thoughts, its text, the call that it stands for and the result."""
    role, at, n_before = _ROLES.get(str(bubble.get("type"))), microseconds(bubble.get("createdAt")), transcript.n_events
    counts = object_of(bubble.get("tokenCount"))
    usage = {ours: counts[name] for ours, name in (("input_tokens", "inputTokens"), ("output_tokens", "outputTokens"))
             if isinstance(counts.get(name), int) and counts[name] > 0}
    shared: Row = {"happened_at": at, **({"usage": usage} if usage else {})}
    transcript.reasoning(word_of(object_of(bubble.get("thinking")).get("text")), happened_at=at)
    if role is not None and bubble.get("text"):
        transcript.message(role, written(bubble["text"]), **shared)
    call = object_of(bubble.get("toolFormerData"))
    if call.get("name") or call.get("tool") is not None:
        call_id, tool = text_of(call.get("toolCallId")), text_of(call.get("name") or call.get("tool"))
        given, status = first_of(call, ("rawArgs", "params")), call.get("status")
        transcript.call(tool, given, call_id, **({} if bubble.get("text") else shared))
        failed = status in _FAILED or bool(call.get("error"))
        result = first_of(call, ("result", "error"))
        if result is not None or failed:
            transcript.result(written(result), call_id, tool=tool, happened_at=at,
                              is_error=True if failed else False if status in _WORKED else None)
    if transcript.n_events == n_before:
        transcript.log(bubble, tool="message without text", happened_at=at)


FORMAT = Format(name="cursor", claims=claims, read=read, sample=sample("cursor.jsonl"), apart=False, rank=26)
