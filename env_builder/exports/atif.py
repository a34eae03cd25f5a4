"""Episodes as trajectories in the Agent Trajectory Interchange Format (ATIF v1.8), one a line.

Steps are the messages in order; a call is a step of the agent with its observation, joined with the words just before it.
Times, token ids and log-probabilities stand where the log has them.
What ATIF has no field for stands in `extra.traceroom`: task, family, split, environment digest, reward and where it is from;
of a step how it was drawn. Left out, with a verdict: episodes with arguments that are no JSON object. A call that nobody
answered has no observation.

ATIF's validators: `extra="forbid"`, step ids from 1, calls and metrics on the agent's steps alone.
"""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from env_builder.exports.conversations import Episode, conversations, functions
from env_builder.exports.exporter import Source
from env_builder.exports.lines import Left, Row, form
from env_builder.runtime.trajectory import OWN, VERSION

_METRICS = {"prompt_token_ids": "prompt_token_ids", "completion_token_ids": "completion_token_ids",
            "logprobs": "behaviour_logprobs"}
_SOURCES = {"assistant": "agent", "user": "user"}


def _rows(source: Source, side: str, missed: Left) -> Iterator[Row]:
    tools = functions(source.tools)
    for episode in conversations(source, (side,)):
        if episode.left in ("unreadable_arguments", "no_action"):
            missed.append((episode.about["session_id"], episode.left))
            continue
        yield _trajectory(episode, tools, source)


def _trajectory(episode: Episode, tools: list[Row], source: Source) -> Row:
    about = episode.about
    steps = list(_steps(episode))
    own = {name: about[name] for name in ("task_id", "family_id", "split", "goal", "label_source", "weight")}
    return {
        "schema_version": VERSION, "session_id": about["session_id"], "trajectory_id": about["session_id"],
        "agent": {"name": episode.policy or "unknown", "version": "unknown", "tool_definitions": tools,
                  **({"model_name": episode.policy} if episode.policy else {})},
        "steps": [{"step_id": place, **step} for place, step in enumerate(steps, 1)],
        "final_metrics": {"total_steps": len(steps)},
        "extra": {OWN: {**own, "environment": source.environment, "content_digest": source.content_digest,
                        "reward": about["final"]}}}


def _steps(episode: Episode) -> Iterator[Row]:
    answers = {message["tool_call_id"]: message["content"] for message in episode.messages if message["role"] == "tool"}
    for message, known in zip(episode.messages, episode.known, strict=True):
        if message["role"] == "tool":
            continue
        step: Row = {"source": _SOURCES.get(message["role"], "system"), "message": message["content"] or "", **_drawn(known)}
        for call in message.get("tool_calls", ()):
            step["tool_calls"] = [{"tool_call_id": call["id"], "function_name": call["function"]["name"],
                                   "arguments": _object(call["function"]["arguments"])}]
            if call["id"] in answers:
                step["observation"] = {"results": [{"source_call_id": call["id"], "content": answers[call["id"]]}]}
        yield step


def _drawn(known: Row) -> Row:
    """When and how a message was written, in ATIF's fields."""
    metrics = {told: known[name] for told, name in _METRICS.items() if name in known}
    return {**({"timestamp": known["happened_at"].isoformat()} if "happened_at" in known else {}),
            **({"metrics": metrics} if metrics else {}),
            **({"extra": {OWN: {"sampling": orjson.loads(known["sampling"])}}} if "sampling" in known else {})}


def _object(text: str) -> orjson.Fragment:
    """The arguments as logged, to the last digit, on one line."""
    return orjson.Fragment(text.replace("\n", " ").replace("\r", " "))


EXPORTER = form("atif", _rows)
