"""SWE-agent trajectories (`.traj`, 0.x and 1.x): one document is one run.

Sees the history without its demonstrations, thoughts, tool calls by id; an action that is text alone (0.x) is a call of
`action`, and the observation after it its result. Where there is no history the steps tell. Durations come from the steps,
token counts are the run's sums. Exit status and submission are outcomes.
Does not see: times, there are none; what a step's `query` repeats; the state of the shell.
"""

from __future__ import annotations

from extractors.formats.chat import parts
from extractors.formats.format import Emit, Format, Head, LogRecord, RejectedRecord, Row, each_record, sample
from extractors.formats.sampling import sampling
from extractors.formats.transcript import Transcript
from extractors.formats.values import loaded, object_of


def claims(head: Head) -> bool:
    """Return whether the document has a trajectory, a history and info."""
    return head.is_json and {"trajectory", "history", "info"} <= head.first.keys()


@each_record
def read(record: LogRecord, emit: Emit) -> None:
    """One run a record."""
    value = record.value
    if not isinstance(value, dict) or not (isinstance(value.get("history"), list) or isinstance(value.get("trajectory"), list)):
        raise RejectedRecord("no_history", "the record holds neither a history nor a trajectory; leave it out or repair it")
    transcript = Transcript.of(emit, record, value, emit.envelope.service(value) or value.get("environment"))
    steps = [step for step in value.get("trajectory") or () if isinstance(step, dict)]
    history = [each for each in value.get("history") or () if isinstance(each, dict) and not each.get("is_demo")
               and each.get("message_type") != "demonstration"]
    info = object_of(value.get("info"))
    sums = object_of(info.get("model_stats"))
    named = {"input_tokens": sums.get("tokens_sent"), "output_tokens": sums.get("tokens_received")}
    usage = {name: count for name, count in named.items() if isinstance(count, int)}
    drawn = sampling(object_of(object_of(loaded(value.get("replay_config"))).get("agent")).get("model"))
    waiting, messages = False, [*history]
    for step in steps if not history else ():
        spoken = {key: step.get(key) for key in ("thought", "action")}
        messages += [{"role": "assistant", "content": step.get("response"), **spoken},
                     *([{"role": "user", "content": step.get("observation")}] if step.get("action") else ())]
    n_answers = sum(each.get("role") == "assistant" for each in messages)
    ahead = iter(steps if n_answers == len(steps) else ())   # each answer took a step
    for message in messages:
        is_answer = message.get("role") == "assistant"
        step = next(ahead, {}) if is_answer else {}
        fields: Row = {"usage": drawn} if is_answer and drawn else {}
        first = {"usage": {**usage, **drawn}, "lossy": ["usage of the whole run"]} if is_answer and usage else fields
        usage = {} if is_answer else usage
        waiting = _message(transcript, message, step, waiting, first, fields)
    transcript.outcome("exit_status", info.get("exit_status"))
    transcript.outcome("submission", info.get("submission"))
    if not history and not steps:
        transcript.log(value)


def _message(transcript: Transcript, message: Row, step: Row, waiting: bool, fields: Row, then: Row) -> bool:
    """Emit one message, the first part with `fields`, others with `then`; whether an action as text waits for its result."""
    for block in message.get("thinking_blocks") or ():
        transcript.reasoning(block.get("thinking") if isinstance(block, dict) else None)
    duration = step.get("execution_time")
    latency = duration * 1000 if isinstance(duration, (int, float)) else None
    if message.get("role") == "assistant" and message.get("action") and not message.get("tool_calls"):
        text = message.get("thought") or message.get("content")
        if text:
            transcript.message("assistant", text, **fields)
            fields = then
        transcript.call("action", {"command": message["action"]}, latency_ms=latency,
                  **{**fields, "lossy": [*fields.get("lossy", ()), "the tool's name is not logged"]})
        return True
    if waiting and message.get("role") == "user":
        transcript.result(message.get("content"))
        return False
    ids = message.get("tool_call_ids")
    answered = {"tool_call_id": ids[0]} if isinstance(ids, list) and ids else {}
    for part in parts({**answered, **message}):
        transcript.add(part, **(fields if part["kind"] != "call" else {**fields, "latency_ms": latency}))
        fields = then
    return False


FORMAT = Format(name="swe_agent", claims=claims, read=read, sample=sample("swe_agent.json"), whole=True, rank=30)
