"""Agent Trajectory Interchange Format (ATIF 1.0 to 1.8): one document, or a line, is one trajectory.

Sees steps of system, user and agent, their reasoning, tool calls and observations, the tools that the agent declares, token
counts, and sub-agent trajectories, each a conversation of its own. An error flag is not in the specification; `is_error` under
`extra` is taken where it stands. Steps that were copied from an earlier segment say so in `lossy`.
Does not see: token ids, log probabilities and sums over the trajectory.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from extractors.formats.format import Emit, Format, Head, LogRecord, Row
from extractors.formats.instants import microseconds
from extractors.formats.samples import sample
from extractors.formats.sampling import drawn, sampling
from extractors.formats.tool_list import declare_all
from extractors.formats.transcript import Transcript, nameless
from extractors.formats.usage import tokens

_ROLES = {"agent": "assistant"}


def claims(head: Head) -> bool:
    """The first object states an ATIF version."""
    return head.layout in ("lines", "document") and str(head.first.get("schema_version")).startswith("ATIF-")


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """One trajectory a record."""
    for record in records:
        if not isinstance(record.value, dict) or not isinstance(record.value.get("steps"), list) or not record.value["steps"]:
            emit.reject(record, "no_steps", "the record holds no list of steps; leave it out or repair it")
            continue
        with emit.guarded(record):
            _trajectory(record, record.value, emit, "", None)


def _trajectory(record: LogRecord, value: Row, emit: Emit, place: str, parent: str | None) -> None:
    """One trajectory and its sub-agents'; a sub-agent that shares its parent's session gets a name of its own."""
    stated = emit.envelope.session_id(value) or value.get("trajectory_id")
    if parent is not None and stated in (None, parent):
        stated = f"{parent}/{value.get('trajectory_id') or place.rstrip('/')}"
    session_id = str(stated) if stated is not None else nameless(record, place)
    agent = value["agent"] if isinstance(value.get("agent"), dict) else {}
    service = emit.envelope.service(value) or agent.get("name")
    told = Transcript(emit, record, session_id, place, service=service, name=emit.envelope.identity(value))
    for step in value.get("steps") or ():
        _step(told, step, agent.get("model_name"), _set(value, agent))
    if value.get("notes"):
        told.log(value["notes"])
    declare_all(agent.get("tool_definitions"), emit, service)
    for number, inner in enumerate(value.get("subagent_trajectories") or ()):
        _trajectory(record, inner, emit, f"{place}{number}/", session_id)


def _set(value: Row, agent: Row) -> tuple[Any, ...]:
    """Where an agent says what its model was asked with: for ATIF has no field for it, in `extra`."""
    extra = value["extra"] if isinstance(value.get("extra"), dict) else {}
    return (agent.get("extra"), *(each.get("sampling") for each in extra.values() if isinstance(each, dict)), extra)


def _step(told: Transcript, step: Row, model: Any, stated: tuple[Any, ...]) -> None:
    source, before = step.get("source"), told.n_events
    role = _ROLES.get(str(source), source)
    lossy = ["copied context"] if step.get("is_copied_context") else None
    shared: Row = {"happened_at": microseconds(step.get("timestamp")), "lossy": lossy}
    metrics = step["metrics"] if isinstance(step.get("metrics"), dict) else {}
    own = drawn(metrics.get("prompt_token_ids"), metrics.get("completion_token_ids"), metrics.get("logprobs"))
    counts = tokens(metrics) or {}
    chosen = sampling(step, metrics.get("extra"), step.get("extra"), *stated) if role == "assistant" else {}
    once: Row = {"usage": {**counts, **own, **chosen} or None}
    if role == "assistant":
        shared["model"] = step.get("model_name") or model
    if step.get("reasoning_content"):
        told.reasoning(step["reasoning_content"], **shared, usage=counts or None)
        once = {"usage": {**own, **chosen} or None}   # a thought is no turn: the tokens go with what was said or done
    calls = step.get("tool_calls") or ()
    if step.get("message") or not (calls or step.get("observation")):
        told.message(role, step.get("message"), **shared, **once)
        once = {"usage": chosen or None}
    for call in calls:
        told.call(call.get("function_name"), call.get("arguments"), call.get("tool_call_id"), **shared, **once)
        once = {"usage": chosen or None}
    if isinstance(observation := step.get("observation"), dict):
        for result in observation.get("results") or ():
            _result(told, result, lossy or [])
    if told.n_events == before:
        told.log(step, **shared)


def _result(told: Transcript, result: Row, lossy: list[str]) -> None:
    extra = result["extra"] if isinstance(result.get("extra"), dict) else {}
    flag = extra.get("is_error")
    if result.get("subagent_trajectory_ref") and result.get("content") is None:
        lossy = [*lossy, "answered by a sub-agent"]
    told.result(result.get("content"), result.get("source_call_id"), lossy=lossy,
                is_error=flag if isinstance(flag, bool) else None)


FORMAT = Format(name="atif", claims=claims, read=read, sample=sample("atif.json"), whole=True, rank=30)
