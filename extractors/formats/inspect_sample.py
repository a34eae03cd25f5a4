"""One sample of an Inspect log as a conversation: its messages, with what its events know of them.

In: a sample, whole. Out: events of a transcript.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from extractors.formats.chat import parts
from extractors.formats.format import Emit, Row
from extractors.formats.instants import microseconds
from extractors.formats.sampling import laid, of_completion, sampling
from extractors.formats.tool_list import declare_all
from extractors.formats.transcript import Transcript
from extractors.formats.usage import tokens

_ATTACHED = "attachment://"
_TOLD_ELSEWHERE = ("model", "tool", "state", "store", "sample_init", "span_begin", "span_end", "step", "score", "subtask")


@dataclass(slots=True)
class Run:
    """What the samples of a log share."""

    emit: Emit
    service: Any
    model: Any
    settings: tuple[Any, ...] = ()
    """What its models were asked with where an event does not say otherwise."""
    declared: set[bytes] = field(default_factory=set)


@dataclass(slots=True)
class _Known:
    """What the events of a sample know: of answers by message id, of tools' runs by call id, and when models were asked."""

    answers: dict[Any, Row] = field(default_factory=dict)
    runs: dict[Any, list[Row]] = field(default_factory=dict)


def tell(told: Transcript, sample: Row, run: Run) -> None:
    """Tell one sample."""
    sample = {**sample, **_attached({key: sample.get(key) for key in ("messages", "events")}, sample.get("attachments") or {})}
    events = [each for each in sample["events"] or () if isinstance(each, dict)]
    known = _known(events, run)
    messages = sample["messages"] or ()
    asked_at = _asked_at(messages, known)
    for message, instant in zip(messages, asked_at, strict=True):
        _message(told, message, instant, known, run)
    for event in events:
        if event.get("event") not in _TOLD_ELSEWHERE:
            told.log(event, happened_at=microseconds(event.get("timestamp")))
    _end(told, sample)


def _known(events: list[Row], run: Run) -> _Known:
    known = _Known()
    for event in events:
        if event.get("event") == "tool":
            known.runs.setdefault(event.get("id"), []).append(event)
        elif event.get("event") == "model":
            output = event["output"] if isinstance(event.get("output"), dict) else {}
            for choice in output.get("choices") or ():
                known.answers.setdefault(choice["message"].get("id"), event)
            listed = orjson.dumps(event.get("tools"))
            if listed not in run.declared:
                run.declared.add(listed)
                declare_all(event.get("tools"), run.emit, run.service)
    return known


def _asked_at(messages: Any, known: _Known) -> list[int | None]:
    """For each message the instant at which a model was asked with it: the start of the next answer."""
    found: list[int | None] = []
    instant = None
    for message in reversed(messages):
        if message.get("role") == "assistant" and (event := known.answers.get(message.get("id"))):
            instant = microseconds(event.get("timestamp"))
        found.append(instant)
    return found[::-1]


def _message(told: Transcript, message: Row, asked_at: int | None, known: _Known, run: Run) -> None:
    role = message.get("role")
    if role == "assistant":
        event = known.answers.get(message.get("id")) or {}
        output = event["output"] if isinstance(event.get("output"), dict) else {}
        fields: Row = {"happened_at": microseconds(event.get("completed")) or asked_at,
                       "model": message.get("model") or run.model}
        usage = {**(tokens(output.get("usage")) or {}), **of_completion(output), **sampling(event.get("config"), *run.settings)}
    else:
        fields, usage = {"happened_at": asked_at if role != "tool" else None}, {}
    said = list(_parts(message))
    for part, own in zip(said, laid(usage, [part["kind"] for part in said]), strict=True):
        fields["usage"] = own
        if part["kind"] == "call":
            event = next(iter(known.runs.get(part["call_id"]) or ()), {})
            ran = {"happened_at": microseconds(event.get("timestamp")), "latency_ms": _latency(event)}
            told.add(part, **{**fields, **{key: value for key, value in ran.items() if value is not None}})
        elif part["kind"] == "result":
            waiting = known.runs.get(part["call_id"])
            event = waiting.pop(0) if waiting else {}
            told.add({"is_error": False, **{key: value for key, value in part.items() if value is not None}},
                     happened_at=microseconds(event.get("completed")))
        else:
            told.add(part, **fields)


def _latency(event: Row) -> float | None:
    started, ended = microseconds(event.get("timestamp")), microseconds(event.get("completed"))
    return None if started is None or ended is None else (ended - started) / 1000


def _parts(message: Row) -> Iterator[Row]:
    """Parts of a message; reasoning and tools that the provider ran stand among the parts of its content."""
    content = message.get("content")
    if isinstance(content, list):
        blocks = [each for each in content if isinstance(each, dict)]
        for block in blocks:
            if block.get("type") == "reasoning":
                hidden = ["redacted"] if block.get("redacted") else []
                said = block.get("summary") if hidden else block.get("reasoning")
                yield {"kind": "reasoning", "role": "assistant", "content": said or None, "lossy": hidden}
            elif block.get("type") == "tool_use":
                yield from _ran_by_provider(block)
        own = ("reasoning", "tool_use")
        said = [each for each in content if not isinstance(each, dict) or each.get("type") not in own]
        message = {**message, "content": said}
    if message.get("role") == "tool":
        message = {**message, "name": message.get("function")}
    if "text" in message and content is None:
        message = {**message, "content": message["text"]}
    yield from parts(message)


def _ran_by_provider(block: Row) -> Iterator[Row]:
    shared: Row = {"call_id": block.get("id"), "tool": block.get("name"), "lossy": ["run by the provider"]}
    given, answer = block.get("arguments"), block.get("result")
    yield {"kind": "call", "role": "assistant", "requestor": "assistant", **shared,
           "arguments": given if isinstance(given, str) else orjson.dumps(given or {}).decode()}
    if answer is not None or block.get("error"):
        yield {"kind": "result", **shared, "is_error": bool(block.get("error")),
               "content": answer if isinstance(answer, str) else orjson.dumps(answer or block.get("error")).decode()}


def _end(told: Transcript, sample: Row) -> None:
    ended = microseconds(sample.get("completed_at"))
    for name, score in (sample["scores"] if isinstance(sample.get("scores"), dict) else {}).items():
        graded = score if isinstance(score, dict) else {"value": score}
        told.outcome(name, graded.get("value"), graded.get("explanation") or graded.get("answer"), happened_at=ended)
    for name in ("error", "limit"):
        stated = sample.get(name)
        if stated:
            what = stated.get("message") or stated.get("type") if isinstance(stated, dict) else None
            told.outcome(name, what or stated, happened_at=ended)
    if sample.get("target") or not told.n_events:
        told.log({key: sample.get(key) for key in ("id", "epoch", "target")})


def _attached(value: Any, attachments: Row) -> Any:
    """The value with attachments in place of what names them."""
    if isinstance(value, str):
        return attachments.get(value.removeprefix(_ATTACHED), value) if value.startswith(_ATTACHED) else value
    if not attachments:
        return value
    if isinstance(value, list):
        return [_attached(each, attachments) for each in value]
    return {key: _attached(each, attachments) for key, each in value.items()} if isinstance(value, dict) else value
