"""Logs of Inspect: `.eval` archives (whole or chunked samples, finished or not) and `.json`; each sample is a conversation.

Sees messages with reasoning, tool calls, results and their errors, times, durations and token counts from the model and tool
events, attachments put back in their place, declared tools; scores, errors and limits are outcomes. Others are log events.
A sample is named by its uuid, since its id comes again in every epoch and every log of its dataset.
Does not see: inputs of single model calls (the messages hold them), states and stores, summaries, candidates not taken.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from extractors.formats.chat import parts, thought_part
from extractors.formats.conversation import milliseconds
from extractors.formats.format import Emit, Format, Head, LogRecord, RejectedRecord, Row, each_record, sample
from extractors.formats.instants import microseconds
from extractors.formats.sampling import laid, of_completion, sampling, tokens
from extractors.formats.tool_list import declare_all
from extractors.formats.transcript import Transcript, nameless
from extractors.formats.values import dumped, list_under, object_of

_WHOLE = re.compile(r"samples/([^/]+)\.json")
_CHUNK = re.compile(r"samples/([^/]+)/(sample|messages/\d+|events/\d+|attachments/[^/]+)\.json")
_NUMBER = re.compile(r"\d+")
_ATTACHED = "attachment://"
_TOLD_ELSEWHERE = ("model", "tool", "state", "store", "sample_init", "span_begin", "span_end", "step", "score", "subtask")


def claims(head: Head) -> bool:
    """Return whether it is an archive with a header or a journal, or a document with a version, a status and an evaluation."""
    if head.layout == "archive":
        names = head.document if isinstance(head.document, dict) else {}
        return any(name.startswith("_journal/") for name in names) or (
            "header.json" in names and any(name.startswith("samples/") for name in names))
    return head.is_json and {"version", "status", "eval"} <= head.first.keys()


@each_record
def read(record: LogRecord, emit: Emit) -> None:
    """Read the samples of a log."""
    value = record.value
    is_archive = isinstance(value, dict) and any(isinstance(each, bytes) for each in value.values())
    damaged: list[str] = []
    log = _unpacked(value, damaged) if is_archive else value
    for name in damaged:
        emit.reject(record, "damaged_member", f"{name} in the archive is no JSON; copy the log again")
    if not isinstance(log, dict) or not isinstance(log.get("eval"), dict):
        raise RejectedRecord("no_evaluation", "the record does not say what was evaluated; copy the log again")
    evaluated = log["eval"]
    task = evaluated.get("task") if isinstance(evaluated.get("task"), str) else None
    run = InspectRun(emit, emit.envelope.service(log) or task, evaluated.get("model"),
                     (object_of(log.get("plan")).get("config"), evaluated.get("model_generate_config")))
    samples = list_under(log, "samples")
    for number, each in enumerate(samples):
        with emit.guarded(record):
            name = each.get("uuid") or "/".join(str(part) for part in (
                evaluated.get("eval_id") or nameless(record), each.get("id"), each.get("epoch")))
            tell(Transcript(emit, record, str(name), f"{number}/", service=run.service, name=emit.envelope.identity(each)),
                 each, run)
    if not samples:
        Transcript(emit, record, None, service=run.service).log({key: log[key] for key in log if key != "samples"})


def _unpacked(members: Row, damaged: list[str]) -> Row:
    """Put an archive together, by its header or its journal's start; `damaged` takes the names of members that are no JSON."""
    header = next((_parsed(members, name, damaged) for name in ("header.json", "_journal/start.json") if name in members), None)
    samples: list[Any] = []
    chunked: dict[str, dict[str, Any]] = {}
    for name in sorted(members, key=lambda name: (_NUMBER.sub("", name), [int(each) for each in _NUMBER.findall(name)])):
        if _WHOLE.fullmatch(name):
            parsed = _parsed(members, name, damaged)
            samples += [parsed] if parsed is not None else []
        elif (match := _CHUNK.fullmatch(name)) is not None:
            chunked.setdefault(match[1], {})[match[2]] = _parsed(members, name, damaged)
    return {**object_of(header), "samples": [*samples, *map(_whole, chunked.values())]}


def _whole(chunks: dict[str, Any]) -> Row:
    """Return a chunked sample as one: messages, events and attachments put together in order of their numbers."""
    whole: Row = dict(object_of(chunks.get("sample")))
    for kind in ("messages", "events"):
        parts = [chunks[name] for name in chunks if name.startswith(f"{kind}/")]
        if parts:
            whole[kind] = [each for part in parts for each in (part if isinstance(part, list) else [part])]
    attached = dict(object_of(whole.get("attachments")))
    for name in (each for each in chunks if each.startswith("attachments/")):
        stem, content = name.removeprefix("attachments/"), chunks[name]
        if isinstance(content, list):
            content = {str(i): each for i, each in enumerate(content, start=int(stem) if stem.isdecimal() else 0)}
        attached.update(content if isinstance(content, dict) else {stem: content})
    return {**whole, "attachments": attached}


def _parsed(members: Row, name: str, damaged: list[str]) -> Any:
    """Value of a member, None where it is no JSON; NaN and infinities, which Inspect writes, are null."""
    try:
        return orjson.loads(members[name])
    except orjson.JSONDecodeError:
        try:
            return json.loads(members[name], parse_constant=lambda constant: None)
        except (ValueError, RecursionError):
            damaged.append(name)
            return None


@dataclass(slots=True)
class InspectRun:
    """What the samples of a log share."""

    emit: Emit
    service: Any
    model: Any
    settings: tuple[Any, ...] = ()
    """What its models were asked with where an event does not say otherwise."""
    declared: set[bytes] = field(default_factory=set)


def tell(transcript: Transcript, sample: Row, run: InspectRun) -> None:
    """Tell one sample: its messages, with what its events know of them."""
    sample = {**sample, **_attached({key: sample.get(key) for key in ("messages", "events")}, sample.get("attachments") or {})}
    events = [each for each in sample["events"] or () if isinstance(each, dict)]
    answers: dict[Any, Row] = {}   # models' events by the id of the message that they answered with
    runs: dict[Any, list[Row]] = {}   # of tools, by call id
    for event in events:
        if event.get("event") == "tool":
            runs.setdefault(event.get("id"), []).append(event)
        elif event.get("event") == "model":
            for choice in object_of(event.get("output")).get("choices") or ():
                answers.setdefault(choice["message"].get("id"), event)
            declared = orjson.dumps(event.get("tools"))
            if declared not in run.declared:
                run.declared.add(declared)
                declare_all(event.get("tools"), run.emit, run.service)
    messages = sample["messages"] or ()
    instants: list[int | None] = []   # when a model was asked with each message: the start of the next answer
    instant = None
    for message in reversed(messages):
        model_event = answers.get(message.get("id")) if message.get("role") == "assistant" else None
        instant = microseconds(model_event.get("timestamp")) if model_event else instant
        instants.append(instant)
    for message, asked_at in zip(messages, reversed(instants), strict=True):
        model_event = answers.get(message.get("id")) if message.get("role") == "assistant" else None
        _message(transcript, message, asked_at, model_event or {}, runs, run)
    for event in events:
        if event.get("event") not in _TOLD_ELSEWHERE:
            transcript.log(event, happened_at=microseconds(event.get("timestamp")))
    ended = microseconds(sample.get("completed_at"))
    for name, score in object_of(sample.get("scores")).items():
        graded = score if isinstance(score, dict) else {"value": score}
        transcript.outcome(name, graded.get("value"), graded.get("explanation") or graded.get("answer"), happened_at=ended)
    for name in ("error", "limit"):
        stated = sample.get(name)
        if stated:
            what = stated.get("message") or stated.get("type") if isinstance(stated, dict) else None
            transcript.outcome(name, what or stated, happened_at=ended)
    if sample.get("target") or not transcript.n_events:
        transcript.log({key: sample.get(key) for key in ("id", "epoch", "target")})


def _message(transcript: Transcript, message: Row, asked_at: int | None, model_event: Row, runs: dict[Any, list[Row]],
             run: InspectRun) -> None:
    """Emit one message; `model_event`: the model's event that it is the answer of."""
    if message.get("role") == "assistant":
        output = object_of(model_event.get("output"))
        fields: Row = {"happened_at": microseconds(model_event.get("completed")) or asked_at,
                       "model": message.get("model") or run.model}
        usage = {**(tokens(output.get("usage")) or {}), **of_completion(output),
                 **sampling(model_event.get("config"), *run.settings)}
    else:
        fields, usage = {"happened_at": asked_at if message.get("role") != "tool" else None}, {}
    rows = list(_parts(message))
    for part, own in zip(rows, laid(usage, [part["kind"] for part in rows]), strict=True):
        if part["kind"] == "call":
            event: Row = next(iter(runs.get(part["call_id"]) or ()), {})
            started = microseconds(event.get("timestamp"))
            latency = milliseconds(started, microseconds(event.get("completed")))
            transcript.add(part, **{**fields, **({"happened_at": started} if started is not None else {})}, usage=own,
                           latency_ms=latency)
        elif part["kind"] == "result":
            waiting = runs.get(part["call_id"])
            event = waiting.pop(0) if waiting else {}
            transcript.add({"is_error": False, **{key: value for key, value in part.items() if value is not None}},
                           happened_at=microseconds(event.get("completed")))
        else:
            transcript.add(part, **fields, usage=own)


def _parts(message: Row) -> Iterator[Row]:
    """Parts of a message; reasoning and tools that the provider ran stand among the parts of its content."""
    content = message.get("content")
    if isinstance(content, list):
        for block in (each for each in content if isinstance(each, dict)):
            if block.get("type") == "reasoning":
                hidden = ["redacted"] if block.get("redacted") else []
                yield thought_part("assistant", block.get("summary" if hidden else "reasoning") or None, hidden)
            elif block.get("type") == "tool_use":
                shared: Row = {"call_id": block.get("id"), "tool": block.get("name"), "lossy": ["run by the provider"]}
                given, answer = block.get("arguments"), block.get("result")
                yield {"kind": "call", "role": "assistant", "requestor": "assistant", **shared,
                       "arguments": given if isinstance(given, str) else dumped(given or {})}
                if answer is not None or block.get("error"):
                    shown = answer if isinstance(answer, str) else dumped(answer or block.get("error"))
                    yield {"kind": "result", **shared, "is_error": bool(block.get("error")), "content": shown}
        own = ("reasoning", "tool_use")
        message = {**message, "content": [each for each in content if object_of(each).get("type") not in own]}
    if message.get("role") == "tool":
        message = {**message, "name": message.get("function")}
    if "text" in message and content is None:
        message = {**message, "content": message["text"]}
    yield from parts(message)


def _attached(value: Any, attachments: Row) -> Any:
    if isinstance(value, str):
        return attachments.get(value.removeprefix(_ATTACHED), value) if value.startswith(_ATTACHED) else value
    if not attachments:
        return value
    if isinstance(value, list):
        return [_attached(each, attachments) for each in value]
    return {key: _attached(each, attachments) for key, each in value.items()} if isinstance(value, dict) else value


FORMAT = Format(name="inspect", claims=claims, read=read, sample=sample("inspect.json"), whole=True, rank=30)
