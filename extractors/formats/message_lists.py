"""Messages to a model alone, without a request around them: Anthropic's, Gemini's, OpenAI's; and answers alone.

In: one document that is a list of messages, or such a list a line; messages a line, where their contents tell whose they are
(blocks of tools, parts); answers a line (`type: message` of Anthropic, `candidates` of Gemini), bare or as results of a batch
(`custom_id`, `key`; OpenAI's too). Out: one session a list (a file of messages is one), or a session for each answer, whose
input counts as not captured. A batch's request that failed is a log event.
Does not see: times (such lists state none); which answers belong to one conversation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from extractors.formats import chat, gemini
from extractors.formats.chat import emit_parts
from extractors.formats.envelope import SESSION
from extractors.formats.exchange import finish
from extractors.formats.format import Emit, Format, Head, LogRecord, LogRecords, Row, sample
from extractors.formats.framework_messages import dialect_of
from extractors.formats.instants import microseconds
from extractors.formats.provider_parts import anthropic_parts, responses_parts
from extractors.formats.sampling import of_completion, tokens
from extractors.formats.transcript import nameless
from extractors.formats.values import dumped, object_of, objects_in, text_of

_ROLES = ("system", "developer", "user", "assistant", "tool", "function", "model")
_BLOCKS = ("tool_use", "server_tool_use", "mcp_tool_use", "thinking", "redacted_thinking")
_ITEMS = ("function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output")
_NOT_CAPTURED = "input not captured"


def parts_of(messages: Iterable[Any]) -> Callable[[Any], Iterable[Row]]:
    """Return the function that reads each of these messages: by the first one whose content tells whose they are."""
    messages = [*messages]
    for message in objects_in(messages):
        if isinstance(message.get("parts"), list):
            return gemini.parts
        if message.get("type") in _ITEMS:
            return responses_parts
        if any(_is_block(block) for block in objects_in(message.get("content"))):
            return anthropic_parts
    dialect = dialect_of(messages)
    return dialect.read if dialect is not None else chat.parts


def _is_block(block: Row) -> bool:
    kind = block.get("type")
    return kind in _BLOCKS or (isinstance(kind, str) and kind.endswith("tool_result"))


def claims(head: Head) -> bool:
    """Return whether a document is a list of messages, or the first objects are typed messages or answers alone."""
    if not head.is_json or not head.objects:
        return False
    answers = [_answer(each) is not None for each in head.objects]
    if any(answers) and all(is_answer or _batch_name(each) for is_answer, each in zip(answers, head.objects, strict=True)):
        return True
    messages = head.document if isinstance(head.document, list) else head.objects
    if head.document is None and parts_of(messages) is chat.parts:   # lines with a role and a text: any envelope has them
        return False
    return all(map(_is_message, messages)) and any(each.get("role") == "user" for each in messages)


def _is_message(value: Any) -> bool:
    if not isinstance(value, dict) or any(name in value for name in SESSION):
        return False
    if value.get("type") in _ITEMS:
        return True
    contents = [value.get(name) for name in ("parts", "content", "tool_calls")]
    return value.get("role") in _ROLES and value.get("type", "message") == "message" and any(
        isinstance(each, (str, list)) for each in contents)


def read(records: LogRecords, emit: Emit) -> None:
    """All messages of a file are one session; each answer alone is one, too."""
    messages: list[LogRecord] = []
    for record in records:
        with emit.guarded(record):
            if isinstance(record.value, list) and record.value:   # a list a line: a conversation each
                fixed: Row = {"session_id": nameless(record), "service": emit.envelope.service(None)}
                parts = parts_of(record.value)
                emit_parts(emit, record, [part for each in record.value for part in parts(each)], 0, None, fixed)
            elif not isinstance(record.value, dict):
                emit.reject(record, "no_message", "the record is no message with a role; leave it out or repair it")
            elif (answer := _answer(record.value)) is not None:
                _tell_answer(record, answer, emit)
            elif record.value.get("custom_id") is not None or record.value.get("key") is not None:
                emit.event(record, "log", tool="batch result", content=dumped(record.value),
                           session_id=_batch_name(record.value))
            else:
                messages.append(record)
    read_part, position = parts_of(record.value for record in messages), 0
    for record in messages:
        with emit.guarded(record):
            fixed = {"session_id": nameless(messages[0]), "service": emit.envelope.service(record.value),
                     "happened_at": emit.envelope.time(record.value)}
            position = emit_parts(emit, record, read_part(record.value), position, None, fixed)


def _answer(value: Any) -> Row | None:
    """Return the answer that a record is or holds, None where it is none."""
    if not isinstance(value, dict) or not {"request", "messages", "contents"}.isdisjoint(value):
        return None
    result = object_of(value.get("result"))
    response = object_of(value.get("response"))
    body = object_of(response.get("body"))
    if _batch_name(value) and objects_in(body.get("choices")):
        return body
    for each in (value, object_of(result.get("message")), response):
        if each.get("type") == "message" and isinstance(each.get("content"), list) and (
                "stop_reason" in each or "usage" in each):
            return each
        if each.get("candidates") and len(objects_in(each["candidates"])) == len(each["candidates"]) and all(
                "content" in candidate or "finishReason" in candidate for candidate in each["candidates"]):
            return each
    return None


def _batch_name(value: Row) -> str | None:
    return text_of(value.get("custom_id") or value.get("key"))


def _tell_answer(record: LogRecord, answer: Row, emit: Emit) -> None:
    name = _batch_name(record.value) or emit.envelope.session_id(record.value)
    stated = answer.get("id") or answer.get("responseId")
    fixed: Row = {
        "session_id": name or (f"trace:{stated}" if stated else nameless(record)),
        "service": emit.envelope.service(record.value), "name": emit.envelope.identity(record.value),
        "model": text_of(answer.get("model") or answer.get("modelVersion")),
        "happened_at": microseconds(answer.get("createTime", answer.get("created"))) or emit.envelope.time(record.value)}
    usage = {**(tokens(answer.get("usage") or answer.get("usageMetadata")) or {}), **of_completion(answer)}
    for index, (parts, reason) in enumerate(_candidates(answer)):
        notes = [_NOT_CAPTURED, *finish(reason), *([f"candidate {index}"] if index else ())]
        emit_parts(emit, record, parts, 0, f"{index}.", fixed, notes, usage if index == 0 else None)


def _candidates(answer: Row) -> Iterator[tuple[Iterable[Row], Any]]:
    """Yield the parts of each candidate of an answer, and why it ended."""
    for choice in objects_in(answer.get("choices")):
        yield chat.parts(choice.get("message")), choice.get("finish_reason")
    for candidate in objects_in(answer.get("candidates")):
        yield gemini.parts({**object_of(candidate.get("content")), "role": "model"}), candidate.get("finishReason")
    if isinstance(answer.get("content"), list):
        yield anthropic_parts({"role": "assistant", "content": answer["content"]}), answer.get("stop_reason")


FORMAT = Format(name="message_lists", claims=claims, read=read, sample=sample("message_lists.json"), apart=False, rank=45)
