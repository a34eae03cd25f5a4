"""SWE-agent trajectories (`.traj`, 0.x and 1.x): one document is one run.

Sees the history without its demonstrations, thoughts, tool calls by id; an action that is text alone (0.x) is a call of
`action`, and the observation after it its result. Where there is no history the steps tell. Durations come from the steps,
token counts are the run's sums. Exit status and submission are outcomes.
Does not see: times, there are none; what a step's `query` repeats; the state of the shell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from extractors.formats.chat import parts
from extractors.formats.format import Emit, Format, Head, LogRecord, Row
from extractors.formats.otlp_span import loaded
from extractors.formats.samples import sample
from extractors.formats.sampling import sampling
from extractors.formats.transcript import Transcript, nameless

_TEXT_ACTION = "action"


def claims(head: Head) -> bool:
    """The document has a trajectory, a history and info."""
    return head.layout in ("lines", "document") and {"trajectory", "history", "info"} <= head.first.keys()


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """One run a record."""
    for record in records:
        value = record.value
        if not isinstance(value, dict) or not (isinstance(value.get("history"), list) or
                                               isinstance(value.get("trajectory"), list)):
            emit.reject(record, "no_history", "the record holds neither a history nor a trajectory; leave it out or repair it")
            continue
        with emit.guarded(record):
            _run(record, value, emit)


def _run(record: LogRecord, value: Row, emit: Emit) -> None:
    told = Transcript(emit, record, emit.envelope.session_id(value) or nameless(record),
                      service=emit.envelope.service(value) or value.get("environment"), name=emit.envelope.identity(value))
    steps = [step for step in value.get("trajectory") or () if isinstance(step, dict)]
    history = [each for each in value.get("history") or () if isinstance(each, dict) and not each.get("is_demo")
               and each.get("message_type") != "demonstration"]
    info = value["info"] if isinstance(value.get("info"), dict) else {}
    usage = _sums(info)
    waiting, drawn = False, _drawn(value)
    for message, step in _with_steps(history or list(_as_history(steps)), steps):
        is_answer = message.get("role") == "assistant"
        fields: Row = {"usage": drawn} if is_answer and drawn else {}
        first = {"usage": {**usage, **drawn}, "lossy": ["usage of the whole run"]} if is_answer and usage else fields
        usage = None if is_answer else usage
        waiting = _message(told, message, step, waiting, first, fields)
    told.outcome("exit_status", info.get("exit_status"))
    told.outcome("submission", info.get("submission"))
    if not history and not steps:
        told.log(value)


def _message(told: Transcript, message: Row, step: Row, waiting: bool, fields: Row, then: Row) -> bool:
    """Events of one message, the first with `fields`, the others with `then`; whether an action written as text still waits
    for its observation.
    """
    for block in message.get("thinking_blocks") or ():
        told.reasoning(block.get("thinking") if isinstance(block, dict) else None)
    duration = step.get("execution_time")
    latency = duration * 1000 if isinstance(duration, (int, float)) else None
    if message.get("role") == "assistant" and message.get("action") and not message.get("tool_calls"):
        said = message.get("thought") or message.get("content")
        if said:
            told.message("assistant", said, **fields)
            fields = then
        told.call(_TEXT_ACTION, {"command": message["action"]}, latency_ms=latency,
                  **{**fields, "lossy": [*fields.get("lossy", ()), "the tool's name is not logged"]})
        return True
    if waiting and message.get("role") == "user":
        told.result(message.get("content"))
        return False
    ids = message.get("tool_call_ids")
    answered = {"tool_call_id": ids[0]} if isinstance(ids, list) and ids else {}
    for part in parts({**answered, **message}):
        told.add(part, **(fields if part["kind"] != "call" else {**fields, "latency_ms": latency}))
        fields = then
    return False


def _with_steps(history: list[Row], steps: list[Row]) -> Iterator[tuple[Row, Row]]:
    """Each message with the step that it took, where there are as many answers as steps."""
    n_answers = sum(each.get("role") == "assistant" for each in history)
    ahead = iter(steps if n_answers == len(steps) else ())
    for message in history:
        yield message, (next(ahead, {}) if message.get("role") == "assistant" else {})


def _as_history(steps: list[Row]) -> Iterator[Row]:
    for step in steps:
        yield {"role": "assistant", "content": step.get("response"), "thought": step.get("thought"),
               "action": step.get("action")}
        if step.get("action"):
            yield {"role": "user", "content": step.get("observation")}


def _drawn(value: Row) -> Row:
    """The parameters of the model that the run was configured with (its configuration as JSON text)."""
    configured = loaded(value.get("replay_config"))
    for name in ("agent", "model"):
        configured = configured.get(name) if isinstance(configured, dict) else None
    return sampling(configured)


def _sums(info: Row) -> dict[str, Any] | None:
    sums = info["model_stats"] if isinstance(info.get("model_stats"), dict) else {}
    named = {"input_tokens": sums.get("tokens_sent"), "output_tokens": sums.get("tokens_received")}
    return {name: count for name, count in named.items() if isinstance(count, int)} or None


FORMAT = Format(name="swe_agent", claims=claims, read=read, sample=sample("swe_agent.json"), whole=True, rank=30)
