"""OpenHands conversations, V1 (software-agent-sdk): `base_state.json` and a file an event, packed together; or events as lines.

Sees the system prompt and its tools, messages, thoughts, actions as calls, observations as results with their error flag, agent
errors and rejections by the user as failed results. Condensations, pauses, changes of state and unknown kinds are log events.
Members of an archive are told in the order of their numbered names, lines in their own. Times carry no zone: they are taken as
UTC. Does not see: the conversation of an event that lies in a file of its own, since no event names it; nor token counts,
which the events do not hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from extractors.formats.format import Emit, Format, Head, LogRecord, Row
from extractors.formats.instants import microseconds
from extractors.formats.samples import sample
from extractors.formats.tool_list import declare_all
from extractors.formats.transcript import Transcript, nameless

_EVENT_FILE = re.compile(r"(.*/)?event-(\d+)-[^/]*\.json")
_STATE = re.compile(r"(.*/)?base_state\.json")
_FAILED = {"AgentErrorEvent": "error", "UserRejectObservation": "rejection_reason"}


def claims(head: Head) -> bool:
    """The first objects are events by their kind, or a conversation's state; an archive holds numbered event files."""
    if head.layout == "archive" and isinstance(head.document, dict):
        return any(_EVENT_FILE.fullmatch(name) for name in head.document)
    return head.layout in ("lines", "document") and bool(head.objects) and (
        all(map(_is_event, head.objects)) or _is_state(head.first))


def _is_event(value: Row) -> bool:
    return "source" in value and "timestamp" in value and (
        str(value.get("kind")).endswith("Event") or value.get("kind") in ("UserRejectObservation", "Condensation"))


def _is_state(value: Row) -> bool:
    return {"id", "execution_status", "agent"} <= value.keys()


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """All records of a file are one conversation, and so is each folder of an archive; a file of one event names none."""
    held = list(records)
    if not held:
        return
    if _is_archive(held[0].value):
        _archive(held[0], emit)
        return
    alone = len(held) == 1 and isinstance(held[0].value, dict)
    told = Transcript(emit, held[0], None if alone else nameless(held[0]), service=emit.envelope.service(None))
    for record in held:
        told.record = record
        with emit.guarded(record):
            events = record.value if isinstance(record.value, list) else [record.value]
            for event in events:
                _event(told, event, emit)
            if not events:
                emit.reject(record, "no_events", "the list holds no events; leave it out")


def _is_archive(value: Any) -> bool:
    return isinstance(value, dict) and bool(value) and all(isinstance(each, bytes) for each in value.values())


def _archive(record: LogRecord, emit: Emit) -> None:
    """The conversations of an archive: event files of one folder in order, with the state in the folder above."""
    folders: dict[str, list[tuple[int, str]]] = {}
    for name in record.value:
        if (found := _EVENT_FILE.fullmatch(name)) is not None:
            folders.setdefault(found[1] or "", []).append((int(found[2]), name))
    for number, (folder, names) in enumerate(sorted(folders.items())):
        with emit.guarded(record):
            above = re.sub(r"[^/]*/$", "", folder)
            states = [_parsed(held) for name, held in record.value.items()
                      if (found := _STATE.fullmatch(name)) and (found[1] or "") in (folder, above)]
            stated = next((each["id"] for each in states if isinstance(each, dict) and each.get("id")), None)
            told = Transcript(emit, record, str(stated) if stated else nameless(record, f"/{number}"), f"{number}/",
                              service=emit.envelope.service(None))
            for _, name in sorted(names):
                _event(told, _parsed(record.value[name]), emit)
            for state in states:
                told.log(state)
    for name in sorted(record.value):
        if not _EVENT_FILE.fullmatch(name) and not _STATE.fullmatch(name):
            emit.event(record, "log", place=name, content=record.value[name].decode("utf-8", "replace"))


def _parsed(held: bytes) -> Any:
    try:
        return orjson.loads(held)
    except orjson.JSONDecodeError:
        return held.decode("utf-8", "replace")


def _event(told: Transcript, event: Any, emit: Emit) -> None:
    if not isinstance(event, dict):
        told.log(event)
        return
    kind = str(event.get("kind"))
    shared: Row = {"happened_at": microseconds(event.get("timestamp"))}
    if kind == "SystemPromptEvent":
        prompt = event.get("system_prompt")
        told.message("system", [*_blocks(prompt), *_blocks(event.get("dynamic_context"))], **shared)
        declare_all(event.get("tools"), emit, emit.envelope.service(None))
    elif kind == "MessageEvent" and isinstance(event.get("llm_message"), dict):
        _message(told, event, event["llm_message"], shared)
    elif kind == "ActionEvent":
        _action(told, event, shared)
    elif kind == "ObservationEvent" and isinstance(event.get("observation"), dict):
        _observation(told, event, event["observation"], shared)
    elif kind in _FAILED:
        told.result(event.get(_FAILED[kind]), event.get("tool_call_id"), tool=event.get("tool_name"), is_error=True, **shared)
    else:
        told.log(event, **shared)


def _message(told: Transcript, event: Row, message: Row, shared: Row) -> None:
    told.reasoning(message.get("reasoning_content"), **shared)
    told.message(message.get("role"), [*_blocks(message.get("content")), *_blocks(event.get("extended_content"))], **shared)


def _action(told: Transcript, event: Row, shared: Row) -> None:
    told.reasoning(event.get("reasoning_content"), **shared)
    if event.get("thought"):
        told.message("assistant", event["thought"], **shared)
    call = event["tool_call"] if isinstance(event.get("tool_call"), dict) else {}
    action = event["action"] if isinstance(event.get("action"), dict) else {}
    given = call.get("arguments")
    if given is None:
        given = action["data"] if isinstance(action.get("data"), dict) else {
            key: value for key, value in action.items() if key != "kind"}
    told.call(event.get("tool_name") or call.get("name"), given, event.get("tool_call_id") or call.get("id"), **shared)


def _observation(told: Transcript, event: Row, observation: Row, shared: Row) -> None:
    content = observation.get("content")
    if content is None:
        content = {key: value for key, value in observation.items() if key not in ("kind", "is_error", "tool_name")}
    flag = observation.get("is_error")
    told.result(content, event.get("tool_call_id"), tool=event.get("tool_name"),
                is_error=flag if isinstance(flag, bool) else None, **shared)


def _blocks(value: Any) -> Iterator[Any]:
    """Parts of text, however they are held."""
    if isinstance(value, list):
        yield from value
    elif value is not None:
        yield value


FORMAT = Format(name="openhands_v1", history="once", claims=claims, read=read, sample=sample("openhands_v1.jsonl"), whole=True,
                rank=30)
