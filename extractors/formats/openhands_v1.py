"""OpenHands conversations, V1 (software-agent-sdk): `base_state.json` and a file an event, packed together; or events as lines,
or as pages of the agent server (`items`).

Sees the system prompt and its tools, messages, thoughts, actions as calls, observations as results with their error flag, agent
errors and rejections by the user as failed results. Condensations, pauses, changes of state and unknown kinds are log events.
Members of an archive are told in the order of their numbered names, lines in their own. Times carry no zone: they are taken as
UTC. Does not see: the conversation of an event that lies in a file of its own, since no event names it; nor token counts,
which the events do not hold.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from extractors.formats.format import Emit, Format, Head, LogRecords, Row, sample
from extractors.formats.instants import microseconds
from extractors.formats.tool_list import declare_all
from extractors.formats.transcript import Transcript, nameless, tell_events
from extractors.formats.values import as_list, object_of, objects_in, parsed_json

_EVENT_FILE = re.compile(r"(.*/)?event-(\d+)-[^/]*\.json")
_STATE = re.compile(r"(.*/)?base_state\.json")
_FAILED = {"AgentErrorEvent": "error", "UserRejectObservation": "rejection_reason"}


def claims(head: Head) -> bool:
    """Return whether the first objects are events by their kind, or a state; an archive holds numbered event files."""
    if head.layout == "archive" and isinstance(head.document, dict):
        return any(_EVENT_FILE.fullmatch(name) for name in head.document)
    objects = objects_in(head.first.get("items")) or head.objects   # a page of the agent server
    return head.is_json and bool(objects) and (
        all(map(_is_event, objects)) or {"id", "execution_status", "agent"} <= head.first.keys())


def _is_event(value: Row) -> bool:
    return "source" in value and "timestamp" in value and (
        str(value.get("kind")).endswith("Event") or value.get("kind") in ("UserRejectObservation", "Condensation"))


def read(records: LogRecords, emit: Emit) -> None:
    """All records of a file are one conversation, and so is each folder of an archive; a file of one event names none."""
    every = list(records)
    first = every[0].value if every else None
    if isinstance(first, dict) and first and all(isinstance(each, bytes) for each in first.values()):
        record = every[0]
        folders: dict[str, list[tuple[int, str]]] = {}
        for name in record.value:
            if (match := _EVENT_FILE.fullmatch(name)) is not None:
                folders.setdefault(match[1] or "", []).append((int(match[2]), name))
        for number, (folder, names) in enumerate(sorted(folders.items())):
            with emit.guarded(record):
                above = re.sub(r"[^/]*/$", "", folder)
                states = [_parsed(content) for name, content in record.value.items()
                          if (match := _STATE.fullmatch(name)) and (match[1] or "") in (folder, above)]
                stated = next((each["id"] for each in states if isinstance(each, dict) and each.get("id")), None)
                transcript = Transcript(emit, record, str(stated) if stated else nameless(record, f"/{number}"), f"{number}/",
                                  service=emit.envelope.service(None))
                for _, name in sorted(names):
                    _event(transcript, _parsed(record.value[name]), emit)
                for state in states:
                    transcript.log(state)
        for name in sorted(record.value):
            if not _EVENT_FILE.fullmatch(name) and not _STATE.fullmatch(name):
                emit.event(record, "log", place=name, content=record.value[name].decode("utf-8", "replace"))
    else:
        every = [replace(each, value=each.value["items"]) if isinstance(each.value, dict) and isinstance(
            each.value.get("items"), list) else each for each in every]
        tell_events(every, emit, lambda transcript, event: _event(transcript, event, emit))


def _parsed(content: bytes) -> Any:
    return parsed_json(content, content.decode("utf-8", "replace"))


def _event(transcript: Transcript, event: Any, emit: Emit) -> None:
    if not isinstance(event, dict):
        transcript.log(event)
        return
    kind = str(event.get("kind"))
    shared: Row = {"happened_at": microseconds(event.get("timestamp"))}
    if kind == "SystemPromptEvent":
        prompt = [*as_list(event.get("system_prompt")), *as_list(event.get("dynamic_context"))]
        transcript.message("system", prompt, **shared)
        declare_all(event.get("tools"), emit, emit.envelope.service(None))
    elif kind == "MessageEvent" and isinstance(message := event.get("llm_message"), dict):
        transcript.reasoning(message.get("reasoning_content"), **shared)
        blocks = [*as_list(message.get("content")), *as_list(event.get("extended_content"))]
        transcript.message(message.get("role"), blocks, **shared)
    elif kind == "ActionEvent":
        transcript.reasoning(event.get("reasoning_content"), **shared)
        if event.get("thought"):
            transcript.message("assistant", event["thought"], **shared)
        call, action = object_of(event.get("tool_call")), object_of(event.get("action"))
        given = call.get("arguments")
        if given is None:
            given = action["data"] if isinstance(action.get("data"), dict) else {
                key: value for key, value in action.items() if key != "kind"}
        tool, call_id = event.get("tool_name") or call.get("name"), event.get("tool_call_id") or call.get("id")
        transcript.call(tool, given, call_id, **shared)
    elif kind == "ObservationEvent" and isinstance(observation := event.get("observation"), dict):
        content, flag = observation.get("content"), observation.get("is_error")
        if content is None:
            content = {key: value for key, value in observation.items() if key not in ("kind", "is_error", "tool_name")}
        transcript.result(content, event.get("tool_call_id"), tool=event.get("tool_name"),
                          is_error=flag if isinstance(flag, bool) else None, **shared)
    elif kind in _FAILED:
        transcript.result(event.get(_FAILED[kind]), event.get("tool_call_id"), tool=event.get("tool_name"), is_error=True,
                          **shared)
    else:
        transcript.log(event, **shared)


FORMAT = Format(name="openhands_v1", history="once", claims=claims, read=read, sample=sample("openhands_v1.jsonl"), whole=True,
                rank=30)
