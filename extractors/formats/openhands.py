"""OpenHands trajectories, V0: a list of events with `action` or `observation`, or one event a line.

Sees messages, thoughts, every other action as a call (its name and arguments as the model gave them, where the answer is
logged), observations by their cause as results (kind `error`: an error; an exit code other than 0: inferred), declared tools,
token counts of logged answers. Changes of the agent's state and whatever else is neither said nor done are log events. Times
carry no zone: they are taken as UTC. Does not see: which conversation an event belongs to that lies in a file of its own; such
events are joined by time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from extractors.formats.format import Emit, Format, Head, LogRecord, Row
from extractors.formats.instants import microseconds
from extractors.formats.samples import sample
from extractors.formats.tool_list import declare_all
from extractors.formats.transcript import Transcript, nameless
from extractors.formats.usage import tokens

_LOGGED = ("change_agent_state", "recall", "null", "condensation", "condensation_request", "loop_recovery", "start", "pause",
           "resume", "stop")
_SOURCES = {"agent": "assistant", "user": "user"}
_NOT_GIVEN = ("thought", "hidden", "confirmation_state", "blocking", "is_static", "security_risk", "keep_prompt", "impl_source")


def claims(head: Head) -> bool:
    """The first objects have a source, and an action or an observation with what belongs to it."""
    return head.layout in ("lines", "document") and bool(head.objects) and all(map(_is_event, head.objects))


def _is_event(value: Row) -> bool:
    return "source" in value and "timestamp" in value and (
        (isinstance(value.get("action"), str) and isinstance(value.get("args"), dict))
        or (isinstance(value.get("observation"), str) and "content" in value))


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """All records of a file are one conversation; a file of one event alone names none."""
    held = list(records)
    if not held:
        return
    alone = len(held) == 1 and isinstance(held[0].value, dict)
    told = Transcript(emit, held[0], None if alone else nameless(held[0]), service=emit.envelope.service(None))
    calls: dict[Any, str | None] = {}
    for record in held:
        told.record = record
        with emit.guarded(record):
            events = record.value if isinstance(record.value, list) else [record.value]
            for event in events:
                _event(told, event, calls, emit)
            if not events:
                emit.reject(record, "no_events", "the list holds no events; leave it out")


def _event(told: Transcript, event: Any, calls: dict[Any, str | None], emit: Emit) -> None:
    shared: Row = {"happened_at": microseconds(event.get("timestamp"))}
    if isinstance(event.get("action"), str):
        _action(told, event, event["args"] if isinstance(event.get("args"), dict) else {}, calls, shared, emit)
    elif event.get("cause") in calls and event.get("observation") not in (None, *_LOGGED):
        _observation(told, event, calls[event["cause"]], shared)
    else:
        told.log(event, **shared)


def _action(told: Transcript, event: Row, args: Row, calls: dict[Any, str | None], shared: Row, emit: Emit) -> None:
    action, role = event["action"], _SOURCES.get(str(event.get("source")), event.get("source"))
    if action == "system":
        told.message("system", args.get("content"), **shared)
        declare_all(args.get("tools"), emit, emit.envelope.service(None))
    elif action == "message":
        told.message(role, args.get("content") or event.get("message"), **shared, **_usage(event, calls))
    elif action in _LOGGED:
        told.log(event, **shared)
    else:
        once = _usage(event, calls)
        if args.get("thought") and action != "think":
            told.message(role, args["thought"], **shared, **once)
            once = {}
        tool, arguments, call_id = _called(event, action, args)
        calls[event.get("id")] = call_id
        told.call(tool, arguments, call_id, requestor=role, **shared, **once)


def _called(event: Row, action: str, args: Row) -> tuple[Any, Any, str]:
    """Tool, arguments and id of a call: as the model gave them where its answer is logged, else as the action holds them."""
    meta = _dict(event.get("tool_call_metadata"))
    call_id = str(meta.get("tool_call_id") or f"event {event.get('id')}")
    for choice in _dict(meta.get("model_response")).get("choices") or ():
        for call in _dict(_dict(choice).get("message")).get("tool_calls") or ():
            if _dict(call).get("id") == meta.get("tool_call_id"):
                function = _dict(call.get("function"))
                return function.get("name"), function.get("arguments"), call_id
    if action == "call_tool_mcp":
        return args.get("name"), args.get("arguments"), call_id
    kept = _NOT_GIVEN if action != "think" else _NOT_GIVEN[1:]
    return meta.get("function_name") or action, {key: each for key, each in args.items() if key not in kept}, call_id


def _usage(event: Row, calls: dict[Any, str | None]) -> Row:
    """Token counts of the answer, once for all actions that it holds."""
    response = _dict(_dict(event.get("tool_call_metadata")).get("model_response"))
    seen = f"usage {response.get('id')}"
    if seen in calls or not (counted := tokens(response.get("usage"))):
        return {}
    calls[seen] = None
    return {"usage": counted, "model": response.get("model")}


def _observation(told: Transcript, event: Row, call_id: str | None, shared: Row) -> None:
    extras = _dict(event.get("extras"))
    code = _dict(extras.get("metadata")).get("exit_code")
    lossy: list[str] = []
    is_error = event["observation"] == "error"
    if not is_error and isinstance(code, int) and code > 0:
        is_error, lossy = True, ["is_error inferred"]
    told.result(event.get("content"), call_id, is_error=is_error, lossy=lossy, **shared)


def _dict(value: Any) -> Row:
    return value if isinstance(value, dict) else {}


FORMAT = Format(name="openhands", history="once", claims=claims, read=read, sample=sample("openhands.json"), whole=True,
                rank=30)
