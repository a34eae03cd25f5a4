"""Chat completions that OpenAI's server stored: lists of completions (without what was asked), and pages of one's messages.

`{"object": "list", "data": [{"object": "chat.completion", …}]}` tells answers, times, counts and metadata; a page of messages
(`data` of items with a role and an id made of the completion's) tells what was asked. The two are joined by the completion's
id: the list links it to the session that the metadata names. Also reads completions a line. A completion whose messages no
file holds says that its input was not captured. Does not see pages that the server has and no file holds.
"""

from __future__ import annotations

import re
from typing import Any

from extractors.formats.chat import emit_parts, parts
from extractors.formats.exchange import finish
from extractors.formats.format import Emit, Format, Head, LogRecord, LogRecords, Row, sample
from extractors.formats.instants import microseconds
from extractors.formats.openai_sessions import session_fields, session_name
from extractors.formats.sampling import of_completion, sampling, tokens
from extractors.formats.values import list_under

_OF_COMPLETION = re.compile(r"(?P<completion>.+)-(?P<place>\d+)\Z")


def claims(head: Head) -> bool:
    """Return whether the first object is a completion, lists completions, or lists messages."""
    first = head.first
    return head.is_json and (_is_completion(first) or any(_is_completion(each) for each in _data(first)[:1]) or _is_page(first))


def _is_completion(value: Any) -> bool:
    return isinstance(value, dict) and value.get("object") == "chat.completion" and isinstance(value.get("choices"), list)


def _is_page(value: Row) -> bool:
    data = _data(value)
    return bool(data) and all(
        isinstance(each, dict) and isinstance(each.get("role"), str) and "type" not in each and "object" not in each
        and isinstance(each.get("id"), str) for each in data)


def _data(value: Any) -> list[Any]:
    return list_under(value, "data") if isinstance(value, dict) and value.get("object") == "list" else []


def read(records: LogRecords, emit: Emit) -> None:
    """Answers of each session in order of time, and the messages of each page."""
    answers: list[tuple[int, LogRecord, str, Row]] = []
    positions: dict[str, int] = {}
    for record in records:
        values = [record.value] if _is_completion(record.value) else _data(record.value)
        completions = [each for each in values if _is_completion(each)]
        messages = [each for each in values if not _is_completion(each)]   # of a page: what one completion was asked
        for number, completion in enumerate(completions):
            created = microseconds(completion.get("created")) or 0
            answers.append((created, record, str(number), completion))
        with emit.guarded(record):
            if messages:
                named = [_OF_COMPLETION.match(str(each.get("id"))) if isinstance(each, dict) else None for each in messages]
                first = named[0]
                session_id = f"trace:{first['completion']}" if first is not None else session_name(record, {}, emit)
                session_id = emit.envelope.session_id(record.value) or session_id
                if all(each is not None for each in named):
                    pairs = sorted(zip(named, messages, strict=True), key=lambda pair: int(pair[0]["place"]) if pair[0] else 0)
                    messages = [message for _, message in pairs]
                fixed = {"session_id": session_id, "service": emit.envelope.service(record.value)}
                for i, each in enumerate(messages):   # content that is no mere text stands under another name
                    if isinstance(each, dict) and each.get("content") is None and isinstance(each.get("content_parts"), list):
                        messages[i] = {**each, "content": each["content_parts"]}
                rows = (part for message in messages for part in parts(message))
                positions[session_id] = emit_parts(emit, record, rows, positions.get(session_id, 0), "m", fixed)
            elif not completions:
                emit.reject(record, "no_data", "the record lists neither completions nor messages; leave it out or repair it")
    for _, record, place, completion in sorted(answers, key=lambda each: each[0]):
        with emit.guarded(record):
            _completion(record, place, completion, positions, emit)


def _completion(record: LogRecord, place: str, completion: Row, positions: dict[str, int], emit: Emit) -> None:
    """Emit the candidates of one answer, and the link from its id to its session."""
    envelope = emit.envelope
    alias = f"trace:{completion.get('id')}"
    session_id = envelope.session_id(completion) or alias
    if session_id != alias:
        emit.event(record, "link", place=f"{place}.link", session_id=session_id, value=alias)
    fixed: Row = {**session_fields(completion, session_id, emit), "model": completion.get("model"),
                  "happened_at": microseconds(completion.get("created"))}
    usage = {**(tokens(completion.get("usage")) or {}), **of_completion(completion), **sampling(completion)}
    start = positions.get(session_id, 0)
    for index, choice in enumerate(completion["choices"]):
        notes = ["input not captured", *([f"candidate {index}"] if index else ()), *finish(choice.get("finish_reason"))]
        end = emit_parts(emit, record, parts(choice.get("message")), start, f"{place}.{index}.", fixed, notes,
                         usage if index == 0 else None)
        if index == 0:
            positions[session_id] = end
    if not completion["choices"]:
        emit.reject(record, "no_answer", "a completion holds no choices; nothing is known of its answer")


FORMAT = Format(name="openai_stored", history="answers", claims=claims, read=read, sample=sample("openai_stored.json"), rank=30)
