"""Episodes as trajectories in the Agent Trajectory Interchange Format (ATIF v1.8), one a line.

Steps are the messages in order; a call is a step of the agent with its observation, joined with the words just before it.
Times, token ids and log-probabilities stand where the log has them.
What ATIF has no field for stands in `extra.traceroom`: task, family, split, environment digest, reward and where it is from;
of a step how it was drawn. Left out, with a decision: episodes with arguments that are no JSON object. A call that nobody
answered has no observation.

ATIF's validators: `extra="forbid"`, step ids from 1, calls and metrics on the agent's steps alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from env_builder.exports.conversations import LoggedConversation, Rejections, Row, conversations, form, functions
from env_builder.exports.exporter import DatasetSource
from env_builder.runtime.trajectory import OWN, VERSION

_METRICS = {"prompt_token_ids": "prompt_token_ids", "completion_token_ids": "completion_token_ids",
            "logprobs": "behaviour_logprobs"}
_SOURCES = {"assistant": "agent", "user": "user"}


def _rows(source: DatasetSource, split: str, missed: Rejections) -> Iterator[Row]:
    tools = functions(source.tools)
    for episode in conversations(source, (split,)):
        about = episode.about
        if episode.reject_reason in ("unreadable_arguments", "no_action"):
            missed.append((about["session_id"], episode.reject_reason))
            continue
        steps = [{"step_id": n, **step} for n, step in enumerate(_steps(episode), 1)]
        own = {name: about[name] for name in ("task_id", "family_id", "split", "goal", "label_source", "weight")}
        yield {
            "schema_version": VERSION, "session_id": about["session_id"], "trajectory_id": about["session_id"],
            "agent": {"name": episode.policy or "unknown", "version": "unknown", "tool_definitions": tools,
                      **({"model_name": episode.policy} if episode.policy else {})},
            "steps": steps, "final_metrics": {"total_steps": len(steps)},
            "extra": {OWN: {**own, "environment": source.environment, "content_digest": source.content_digest,
                            "reward": about["final"]}}}


def _steps(episode: LoggedConversation) -> Iterator[Row]:
    answers = {message["tool_call_id"]: message["content"] for message in episode.messages if message["role"] == "tool"}
    for message, details in zip(episode.messages, episode.details, strict=True):
        if message["role"] == "tool":
            continue
        step: Row = {"source": _SOURCES.get(message["role"], "system"), "message": message["content"] or ""}
        if "happened_at" in details:
            step["timestamp"] = details["happened_at"].isoformat()
        if metrics := {field: details[name] for field, name in _METRICS.items() if name in details}:
            step["metrics"] = metrics
        if "sampling" in details:
            step["extra"] = {OWN: {"sampling": orjson.loads(details["sampling"])}}
        for call in message.get("tool_calls", ()):
            arguments = call["function"]["arguments"].replace("\n", " ").replace("\r", " ")  # as logged, to the last digit
            step["tool_calls"] = [{"tool_call_id": call["id"], "function_name": call["function"]["name"],
                                   "arguments": orjson.Fragment(arguments)}]
            if call["id"] in answers:
                step["observation"] = {"results": [{"source_call_id": call["id"], "content": answers[call["id"]]}]}
        yield step


EXPORTER = form("atif", _rows)
