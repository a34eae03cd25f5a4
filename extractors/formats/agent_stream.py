"""What command lines of coding agents print as they work (`--output-format stream-json`): Cursor's and Claude Code's.

Sees prompts, answers with their calls, results with their error flag, Cursor's own calls (`tool_call`: started, completed),
and how the run ended (an outcome). The first line, which lists the tools by name alone, is a log event; so are fragments of an
answer (`stream_event`), since the whole follows. Does not see: the system prompt, times.
"""

from __future__ import annotations

from typing import Any

import orjson

from extractors.formats.format import Emit, Format, Head, LogRecords, Row, sample
from extractors.formats.provider_parts import anthropic_parts
from extractors.formats.sampling import tokens
from extractors.formats.transcript import Transcript, name_of, written
from extractors.formats.values import object_of, text_of

_TYPES = ("system", "user", "assistant", "tool_call", "result", "stream_event", "thinking")
_MESSAGES = ("user", "assistant")


def claims(head: Head) -> bool:
    """Return whether the first lines have a type and a session, and one is a message, a call or the start of a run."""
    return head.layout == "lines" and bool(head.objects) and all(
        each.get("type") in _TYPES and isinstance(each.get("session_id"), str) for each in head.objects) and any(
        isinstance(each.get("message"), dict) or "tool_call" in each or each.get("subtype") == "init" for each in head.objects)


def read(records: LogRecords, emit: Emit) -> None:
    """One session for each that the lines name; what a call's agent did is a session of its own."""
    transcripts: dict[tuple[str, str | None], Transcript] = {}
    answers: dict[tuple[str, str], Row] = {}
    models: dict[str, str | None] = {}
    for record in records:
        value = record.value
        if not isinstance(value, dict) or not isinstance(value.get("session_id"), str):
            emit.reject(record, "no_line", "the record is no line of a run with a session_id; leave it out or repair it")
            continue
        with emit.guarded(record):
            session_id, parent = value["session_id"], text_of(value.get("parent_tool_use_id"))
            models.setdefault(session_id, text_of(value.get("model")))
            key = session_id, parent
            if key not in transcripts:
                name = session_id if parent is None else f"{session_id}~{parent}"
                transcripts[key] = Transcript(emit, record, name, "" if parent is None else f"{parent}/",
                                              service=emit.envelope.service(value), model=models[session_id])
            transcripts[key].record = record
            _line(transcripts[key], value, answers)


def _line(transcript: Transcript, value: Row, answers: dict[tuple[str, str], Row]) -> None:
    """Tell one line; `answers`: the first event of each answer so far, which has the counts of its last line."""
    kind, message = value.get("type"), value.get("message")
    if kind in _MESSAGES and isinstance(message, dict):
        model = {"model": message["model"]} if isinstance(message.get("model"), str) else {}
        rows = [transcript.add(part, **model) for part in anthropic_parts({**message, "role": message.get("role") or kind})]
        usage = tokens(message.get("usage")) if kind == "assistant" else None
        if usage is not None:
            first = answers.setdefault((value["session_id"], str(message.get("id", id(rows[0])))), rows[0])
            first["usage"] = orjson.dumps(usage, option=orjson.OPT_SORT_KEYS).decode()
    elif kind == "tool_call" and isinstance(value.get("tool_call"), dict):
        _call(transcript, value)
    elif kind == "result" and text_of(value.get("subtype")):
        transcript.outcome("run", value.get("subtype"), value.get("result"))
    else:
        transcript.log(value, tool=" ".join(filter(None, (str(kind), text_of(value.get("subtype"))))))


def _call(transcript: Transcript, value: Row) -> None:
    """Tell a call when it starts and its result when it completes: `{"readToolCall": {"args", "result"}}`."""
    name, call = next(iter(value["tool_call"].items()), (None, None))
    inner, call_id = object_of(call), name_of(value.get("call_id"))
    tool = text_of(inner.get("name")) if name == "function" else str(name).removesuffix("ToolCall") if name else None
    if value.get("subtype") == "started":
        transcript.call(tool, inner.get("args", inner.get("arguments")), call_id)
    elif value.get("subtype") == "completed":
        result = inner.get("result")
        content, failed = _outcome_of(result)
        transcript.result(written(content), call_id, tool=tool, is_error=failed)
    else:
        transcript.log(value, tool=f"tool_call {value.get('subtype')}")


def _outcome_of(result: Any) -> tuple[Any, bool | None]:
    """Return what a result holds, and whether it is a failure: Cursor writes one of `success`, `error`, `rejected` …"""
    if isinstance(result, dict) and len(result) == 1:
        (word, content), = result.items()
        return content, word != "success"
    return result, None


FORMAT = Format(name="agent_stream", claims=claims, read=read, sample=sample("agent_stream.jsonl"), apart=False, rank=26)
