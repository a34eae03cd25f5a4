"""Amazon Bedrock's log of model invocations: a request and its answer a record, as CloudWatch and S3 hold them.

In: records of `schemaType: ModelInvocationLog` with the bodies `input.inputBodyJson` and `output.outputBodyJson`. Out: what the
format of the provider gives; requests of Converse are read as Anthropic's, whose meaning they share. The session comes from
`requestMetadata` where the client states one.
Does not see: bodies over 100 KB, which the log keeps elsewhere (`inputBodyS3Path`): such a record is rejected; who called
(`identity` names a role).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from extractors.formats import anthropic_messages, openai_completions
from extractors.formats.format import Emit, Format, Head, LogRecord, LogRecords, Row, sample
from extractors.formats.framework_messages import converse_message
from extractors.formats.values import object_of, objects_in, opened, written

_KIND = "ModelInvocationLog"
_TOKENS = {"input_tokens": "inputTokenCount", "output_tokens": "outputTokenCount"}
Read = Callable[[LogRecords, Emit], None]


def claims(head: Head) -> bool:
    """Return whether the first record says that it logs an invocation."""
    return head.is_json and head.first.get("schemaType") == _KIND


def read(records: LogRecords, emit: Emit) -> None:
    """Read each provider's records as its own format does, in file order."""
    rows: dict[Read, list[LogRecord]] = {}
    for record in records:
        exchange = _exchange(record.value)
        if exchange is None:
            emit.reject(record, "no_body", "the record holds no body of a request; the log keeps large ones elsewhere, in S3")
            continue
        is_anthropic = anthropic_messages.FORMAT.claims(Head("lines", [exchange]))
        read_rows = anthropic_messages.FORMAT.read if is_anthropic else openai_completions.read
        rows.setdefault(read_rows, []).append(replace(record, value=exchange))
    for read_rows, of_provider in rows.items():
        read_rows(of_provider, emit)


def _exchange(value: Any) -> Row | None:
    """Return a record with a request and a response; None without a request."""
    given, answered = (object_of(object_of(value).get(side)) for side in ("input", "output"))
    request, response = opened(given.get("inputBodyJson")), opened(answered.get("outputBodyJson"))
    if not isinstance(request, dict) or not request:
        return None
    usage = {ours: count for (ours, name), side in zip(_TOKENS.items(), (given, answered), strict=True)
             if isinstance(count := side.get(name), int)}
    if _is_converse(request):
        request, response = _converse_request(request), _converse_answer(object_of(response), usage)
    exchange = {"timestamp": value.get("timestamp"), "metadata": object_of(value.get("requestMetadata")),
                "request": {"model": value.get("modelId"), **request}, "response": response}
    return {name: each for name, each in exchange.items() if each not in (None, {})}


def _is_converse(request: Row) -> bool:
    """Return whether contents are of blocks without a type, as Converse and Nova have them."""
    blocks = [each for message in objects_in(request.get("messages")) for each in objects_in(message.get("content"))]
    return bool(blocks) and all("type" not in each for each in blocks)


def _converse_request(request: Row) -> Row:
    """Return a request of Converse as Anthropic writes it."""
    system = "\n".join(written(each.get("text")) or "" for each in objects_in(request.get("system")))
    tools = [object_of(each.get("toolSpec")) for each in objects_in(object_of(request.get("toolConfig")).get("tools"))]
    declared = [{"name": each.get("name"), "description": each.get("description"),
                 "input_schema": object_of(each.get("inputSchema")).get("json")} for each in tools if each]
    shown = {"system": system, "messages": [converse_message(each) for each in objects_in(request.get("messages"))],
             "tools": declared, "max_tokens": object_of(request.get("inferenceConfig")).get("maxTokens")}
    return {name: each for name, each in shown.items() if each}


def _converse_answer(response: Row, usage: Row) -> Row:
    """Return an answer of Converse as Anthropic writes it."""
    message = converse_message(object_of(object_of(response.get("output")).get("message")))
    return {"type": "message", "role": "assistant", "content": message["content"], "stop_reason": response.get("stopReason"),
            "usage": usage}


FORMAT = Format(name="bedrock_log", claims=claims, read=read, sample=sample("bedrock_log.jsonl"), apart=False, rank=24)
