"""Chat completions that OpenAI's server stored: lists of completions (without what was asked), and pages of one's messages.

`{"object": "list", "data": [{"object": "chat.completion", …}]}` tells answers, times, counts and metadata; a page of messages
(`data` of items with a role and an id made of the completion's) tells what was asked. The two are joined by the completion's
id: the list links it to the session that the metadata names. Also reads completions a line. A completion whose messages no
file holds says that its input was not captured. Does not see pages that the server has and no file holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from extractors.formats.chat import parts
from extractors.formats.exchange import finish
from extractors.formats.format import Emit, Format, Head, LogRecord, Row
from extractors.formats.instants import microseconds
from extractors.formats.openai_sessions import session_name
from extractors.formats.samples import sample
from extractors.formats.sampling import laid, of_completion, sampling
from extractors.formats.usage import tokens

_OF_COMPLETION = re.compile(r"(?P<completion>.+)-(?P<place>\d+)\Z")


def claims(head: Head) -> bool:
    """The first object is a completion, lists completions, or lists messages."""
    first = head.first
    return head.layout in ("lines", "document") and (
        _is_completion(first) or any(_is_completion(each) for each in _data(first)[:1]) or _is_page(first))


def _is_completion(value: Any) -> bool:
    return isinstance(value, dict) and value.get("object") == "chat.completion" and isinstance(value.get("choices"), list)


def _is_page(value: Row) -> bool:
    found = _data(value)
    return bool(found) and all(
        isinstance(each, dict) and isinstance(each.get("role"), str) and "type" not in each and "object" not in each
        and isinstance(each.get("id"), str) for each in found)


def _data(value: Any) -> list[Any]:
    found = value.get("data") if isinstance(value, dict) and value.get("object") == "list" else None
    return found if isinstance(found, list) else []


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """Answers of each session in order of time, and the messages of each page."""
    answers: list[tuple[int, LogRecord, str, Row]] = []
    positions: dict[str, int] = {}
    for record in records:
        found = [record.value] if _is_completion(record.value) else _data(record.value)
        completions = [each for each in found if _is_completion(each)]
        others = [each for each in found if not _is_completion(each)]
        for number, completion in enumerate(completions):
            created = microseconds(completion.get("created")) or 0
            answers.append((created, record, str(number), completion))
        with emit.guarded(record):
            if others:
                _page(record, others, positions, emit)
            elif not completions:
                emit.reject(record, "no_data", "the record lists neither completions nor messages; leave it out or repair it")
    for _, record, place, completion in sorted(answers, key=lambda each: each[0]):
        with emit.guarded(record):
            _completion(record, place, completion, positions, emit)


def _completion(record: LogRecord, place: str, completion: Row, positions: dict[str, int], emit: Emit) -> None:
    """The candidates of one answer, and the link from its id to its session."""
    envelope = emit.envelope
    alias = f"trace:{completion.get('id')}"
    session_id = envelope.session_id(completion) or alias
    if session_id != alias:
        emit.event(record, "link", place=f"{place}.link", session_id=session_id, value=alias)
    fixed: Row = {"session_id": session_id, "service": envelope.service(completion), "name": envelope.identity(completion),
                  "model": completion.get("model"), "happened_at": microseconds(completion.get("created"))}
    usage = {**(tokens(completion.get("usage")) or {}), **of_completion(completion), **sampling(completion)}
    start = positions.get(session_id, 0)
    for index, choice in enumerate(completion["choices"]):
        notes = ["input not captured", *([f"candidate {index}"] if index else ()), *finish(choice.get("finish_reason"))]
        position = start
        said = list(parts(choice.get("message")))
        for i, (part, own) in enumerate(zip(said, laid(usage, [part["kind"] for part in said]), strict=True)):
            counted = {"usage": own} if index == 0 and own else {}
            emit.event(record, place=f"{place}.{index}.{i}", position=position, **{
                **fixed, **counted, **part, "lossy": [*part["lossy"], *notes]})
            position += part["kind"] != "reasoning"
        if index == 0:
            positions[session_id] = position
    if not completion["choices"]:
        emit.reject(record, "no_answer", "a completion holds no choices; nothing is known of its answer")


def _page(record: LogRecord, messages: list[Any], positions: dict[str, int], emit: Emit) -> None:
    """What one completion was asked; a page that goes on after another is of the same."""
    named = [_OF_COMPLETION.match(str(each.get("id"))) if isinstance(each, dict) else None for each in messages]
    first = named[0]
    session_id = f"trace:{first['completion']}" if first is not None else session_name(record, {}, emit)
    session_id = emit.envelope.session_id(record.value) or session_id
    if all(each is not None for each in named):
        pairs = sorted(zip(named, messages, strict=True), key=lambda pair: int(pair[0]["place"]) if pair[0] else 0)
        messages = [message for _, message in pairs]
    position = positions.get(session_id, 0)
    for i, part in enumerate(part for message in messages for part in parts(_whole(message))):
        emit.event(record, place=f"m{i}", position=position, session_id=session_id,
                   service=emit.envelope.service(record.value), **part)
        position += part["kind"] != "reasoning"
    positions[session_id] = position


def _whole(message: Any) -> Any:
    """A message with its content, which stands under `content_parts` where it is no mere text."""
    if isinstance(message, dict) and message.get("content") is None and isinstance(message.get("content_parts"), list):
        return {**message, "content": message["content_parts"]}
    return message


FORMAT = Format(name="openai_stored", history="answers", claims=claims, read=read, sample=sample("openai_stored.json"), rank=30)
