"""Results of tau-bench: a list (or lines) of runs with their reward; each is a conversation of its own.

Sees the OpenAI messages of `traj`, results that begin with `Error:` as errors (marked as inferred), the reward and its parts as
outcomes. `###STOP###` is no message. Does not see: the instruction of the user's simulator and the expected actions, which
are no behaviour; further tool calls of a message, which these agents drop.
"""

from __future__ import annotations

from extractors.formats.format import Emit, Format, Head, LogRecord, RejectedRecord, each_record, sample
from extractors.formats.transcript import Transcript, tell_message
from extractors.formats.values import object_of


def claims(head: Head) -> bool:
    """Return whether the first object is a run: a task, a reward and a trajectory."""
    return head.is_json and {"task_id", "reward", "traj"} <= head.first.keys()


@each_record
def read(record: LogRecord, emit: Emit) -> None:
    """One run a record."""
    value = record.value
    if not isinstance(value, dict) or not isinstance(value.get("traj"), list) or not (value["traj"] or "reward" in value):
        raise RejectedRecord("no_trajectory", "the record holds no list `traj` of messages; leave it out or repair it")
    transcript = Transcript.of(emit, record, value, emit.envelope.service(value))
    for message in value["traj"]:
        tell_message(transcript, message)
    transcript.outcome("reward", value.get("reward"))
    graded = object_of(object_of(value.get("info")).get("reward_info"))
    for name, score in object_of(graded.get("info")).items():
        if name.startswith("r_"):
            transcript.outcome(name, score)
    if not value["traj"] and value.get("reward") is None:
        transcript.log(value)


FORMAT = Format(name="tau_bench", claims=claims, read=read, sample=sample("tau_bench.json"), rank=30)
