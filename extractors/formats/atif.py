"""Agent Trajectory Interchange Format (ATIF 1.0 to 1.8): one document, or a line, is one trajectory.

Sees steps of system, user and agent, their reasoning, tool calls and observations, the tools that the agent declares, token
counts, and sub-agent trajectories, each a conversation of its own. An error flag is not in the specification; `is_error` under
`extra` is taken where it stands. Steps that were copied from an earlier segment say so in `lossy`.
Does not see: token ids, log probabilities and sums over the trajectory.
"""

from __future__ import annotations

from typing import Any

from extractors.formats.format import Emit, Format, Head, LogRecord, RejectedRecord, Row, each_record, sample
from extractors.formats.instants import microseconds
from extractors.formats.sampling import drawn, sampling, tokens
from extractors.formats.tool_list import declare_all
from extractors.formats.transcript import Transcript, nameless
from extractors.formats.values import list_under, object_of


def claims(head: Head) -> bool:
    """Return whether the first object states an ATIF version."""
    return head.is_json and str(head.first.get("schema_version")).startswith("ATIF-")


@each_record
def read(record: LogRecord, emit: Emit) -> None:
    """One trajectory a record."""
    if not list_under(record.value, "steps"):
        raise RejectedRecord("no_steps", "the record holds no list of steps; leave it out or repair it")
    _trajectory(record, record.value, emit, "", None)


def _trajectory(record: LogRecord, value: Row, emit: Emit, place: str, parent: str | None) -> None:
    """One trajectory and its sub-agents'; a sub-agent that shares its parent's session gets a name of its own."""
    name = emit.envelope.session_id(value) or value.get("trajectory_id")
    if parent is not None and name in (None, parent):
        name = f"{parent}/{value.get('trajectory_id') or place.rstrip('/')}"
    session_id = str(name) if name is not None else nameless(record, place)
    agent, extra = object_of(value.get("agent")), object_of(value.get("extra"))
    # where an agent says what its model was asked with: ATIF has no field for it
    stated = (agent.get("extra"), *(each.get("sampling") for each in extra.values() if isinstance(each, dict)), extra)
    service = emit.envelope.service(value) or agent.get("name")
    transcript = Transcript(emit, record, session_id, place, service=service, name=emit.envelope.identity(value))
    for step in value.get("steps") or ():
        _step(transcript, step, agent.get("model_name"), stated)
    if value.get("notes"):
        transcript.log(value["notes"])
    declare_all(agent.get("tool_definitions"), emit, service)
    for number, inner in enumerate(value.get("subagent_trajectories") or ()):
        _trajectory(record, inner, emit, f"{place}{number}/", session_id)


def _step(transcript: Transcript, step: Row, model: Any, stated: tuple[Any, ...]) -> None:
    source, before = step.get("source"), transcript.n_events
    role = "assistant" if source == "agent" else source
    lossy = ["copied context"] if step.get("is_copied_context") else None
    shared: Row = {"happened_at": microseconds(step.get("timestamp")), "lossy": lossy}
    metrics = object_of(step.get("metrics"))
    own = drawn(metrics.get("prompt_token_ids"), metrics.get("completion_token_ids"), metrics.get("logprobs"))
    counts = tokens(metrics) or {}
    chosen = sampling(step, metrics.get("extra"), step.get("extra"), *stated) if role == "assistant" else {}
    once: Row = {"usage": {**counts, **own, **chosen} or None}
    if role == "assistant":
        shared["model"] = step.get("model_name") or model
    if step.get("reasoning_content"):
        transcript.reasoning(step["reasoning_content"], **shared, usage=counts or None)
        once = {"usage": {**own, **chosen} or None}   # a thought is no turn: the tokens go with what was said or done
    calls = step.get("tool_calls") or ()
    if step.get("message") or not (calls or step.get("observation")):
        transcript.message(role, step.get("message"), **shared, **once)
        once = {"usage": chosen or None}
    for call in calls:
        transcript.call(call.get("function_name"), call.get("arguments"), call.get("tool_call_id"), **shared, **once)
        once = {"usage": chosen or None}
    if isinstance(observation := step.get("observation"), dict):
        for result in observation.get("results") or ():
            is_elsewhere = result.get("subagent_trajectory_ref") and result.get("content") is None
            flag = object_of(result.get("extra")).get("is_error")
            transcript.result(result.get("content"), result.get("source_call_id"),
                              is_error=flag if isinstance(flag, bool) else None, lossy=[
                                  *(lossy or ()), *(["answered by a sub-agent"] if is_elsewhere else ())])
    if transcript.n_events == before:
        transcript.log(step, **shared)


FORMAT = Format(name="atif", claims=claims, read=read, sample=sample("atif.json"), whole=True, rank=30)
