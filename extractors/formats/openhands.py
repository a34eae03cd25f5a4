"""OpenHands trajectories, V0: a list of events with `action` or `observation`, or one event a line.

Sees messages, thoughts, every other action as a call (its name and arguments as the model gave them, where the answer is
logged), observations by their cause as results (kind `error`: an error; an exit code other than 0: inferred), declared tools,
token counts of logged answers. Changes of the agent's state and whatever else is neither said nor done are log events. Times
carry no zone: they are taken as UTC. Does not see: which conversation an event belongs to that lies in a file of its own; such
events are joined by time.
"""

from __future__ import annotations

from typing import Any

from extractors.formats.format import Emit, Format, Head, LogRecords, Row, sample
from extractors.formats.instants import microseconds
from extractors.formats.sampling import tokens
from extractors.formats.tool_list import declare_all
from extractors.formats.transcript import Transcript, tell_events
from extractors.formats.values import object_of

_LOGGED = ("change_agent_state", "recall", "null", "condensation", "condensation_request", "loop_recovery", "start", "pause",
           "resume", "stop")
_SOURCES = {"agent": "assistant", "user": "user"}
_NOT_GIVEN = ("thought", "hidden", "confirmation_state", "blocking", "is_static", "security_risk", "keep_prompt", "impl_source")


def claims(head: Head) -> bool:
    """Return whether the first objects have a source, and an action or an observation with what belongs to it."""
    return head.is_json and bool(head.objects) and all(map(_is_event, head.objects))


def _is_event(value: Row) -> bool:
    return "source" in value and "timestamp" in value and (
        (isinstance(value.get("action"), str) and isinstance(value.get("args"), dict))
        or (isinstance(value.get("observation"), str) and "content" in value))


def read(records: LogRecords, emit: Emit) -> None:
    """All records of a file are one conversation; a file of one event alone names none."""
    calls: dict[Any, str | None] = {}
    tell_events(records, emit, lambda transcript, event: _event(transcript, event, calls, emit))


def _event(transcript: Transcript, event: Any, calls: dict[Any, str | None], emit: Emit) -> None:
    shared: Row = {"happened_at": microseconds(event.get("timestamp"))}
    if isinstance(event.get("action"), str):
        args = object_of(event.get("args"))
        action, role = event["action"], _SOURCES.get(str(event.get("source")), event.get("source"))
        if action == "system":
            transcript.message("system", args.get("content"), **shared)
            declare_all(args.get("tools"), emit, emit.envelope.service(None))
        elif action == "message":
            transcript.message(role, args.get("content") or event.get("message"), **shared, **_usage(event, calls))
        elif action in _LOGGED:
            transcript.log(event, **shared)
        else:
            once = _usage(event, calls)
            if args.get("thought") and action != "think":
                transcript.message(role, args["thought"], **shared, **once)
                once = {}
            tool, arguments, call_id = _called(event, action, args)
            calls[event.get("id")] = call_id
            transcript.call(tool, arguments, call_id, requestor=role, **shared, **once)
    elif event.get("cause") in calls and event.get("observation") not in (None, *_LOGGED):
        code = object_of(object_of(event.get("extras")).get("metadata")).get("exit_code")
        failed, inferred = event["observation"] == "error", isinstance(code, int) and code > 0
        transcript.result(event.get("content"), calls[event["cause"]], is_error=failed or inferred,
                          lossy=["is_error inferred"] if inferred and not failed else [], **shared)
    else:
        transcript.log(event, **shared)


def _called(event: Row, action: str, args: Row) -> tuple[Any, Any, str]:
    """Tool, arguments and id of a call: as the model gave them where its answer is logged, else as the action holds them."""
    meta = object_of(event.get("tool_call_metadata"))
    call_id = str(meta.get("tool_call_id") or f"event {event.get('id')}")
    for choice in object_of(meta.get("model_response")).get("choices") or ():
        for call in object_of(object_of(choice).get("message")).get("tool_calls") or ():
            if object_of(call).get("id") == meta.get("tool_call_id"):
                function = object_of(call.get("function"))
                return function.get("name"), function.get("arguments"), call_id
    if action == "call_tool_mcp":
        return args.get("name"), args.get("arguments"), call_id
    kept = _NOT_GIVEN if action != "think" else _NOT_GIVEN[1:]
    return meta.get("function_name") or action, {key: each for key, each in args.items() if key not in kept}, call_id


def _usage(event: Row, calls: dict[Any, str | None]) -> Row:
    """Token counts of the answer, once for all actions that it holds."""
    response = object_of(object_of(event.get("tool_call_metadata")).get("model_response"))
    usage_key = f"usage {response.get('id')}"
    if usage_key in calls or not (counted := tokens(response.get("usage"))):
        return {}
    calls[usage_key] = None
    return {"usage": counted, "model": response.get("model")}


FORMAT = Format(name="openhands", history="once", claims=claims, read=read, sample=sample("openhands.json"), whole=True,
                rank=30)
