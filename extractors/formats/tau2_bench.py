"""Results of tau2-bench (and its successors): one document with tasks and simulations; each simulation is a conversation.

Sees messages of user, assistant and tools (several in one message too), who requested a call, error flags, token counts, the
policy as system prompt, declared tools; reward, its parts and the reason of the end are outcomes. The canned greeting and
markers like `###STOP###` are log events, no messages. Times carry no zone: they are taken as UTC.
Does not see: ticks of voice runs, the instruction of the user's simulator, criteria of tasks.
"""

from __future__ import annotations

from typing import Any

from extractors.formats.format import Emit, Format, Head, LogRecord, RejectedRecord, Row, each_record, sample
from extractors.formats.instants import microseconds
from extractors.formats.sampling import sampling, tokens
from extractors.formats.tool_list import declare_all
from extractors.formats.transcript import Transcript, greeting, tell_message
from extractors.formats.values import list_under, object_of


def claims(head: Head) -> bool:
    """Return whether the document holds simulations, and tasks or info; or it is one simulation of a folder of them."""
    first = head.first
    return head.is_json and (("simulations" in first and bool({"tasks", "info"} & first.keys())) or _is_simulation(first))


def _is_simulation(value: Row) -> bool:
    return {"task_id", "termination_reason", "messages"} <= value.keys()


@each_record
def read(record: LogRecord, emit: Emit) -> None:
    """Read the simulations of a record."""
    value = record.value
    if isinstance(value, dict) and _is_simulation(value):
        value = {"simulations": [value]}
    if not list_under(value, "simulations"):
        raise RejectedRecord("no_simulations", "the record holds no list of simulations; leave it out or repair it")
    for number, simulation in enumerate(value["simulations"]):
        with emit.guarded(record):
            _simulation(record, value, simulation, f"{number}/", emit)


def _simulation(record: LogRecord, value: Row, simulation: Row, place: str, emit: Emit) -> None:
    info = object_of(value.get("info"))
    environment = object_of(info.get("environment_info"))
    service = emit.envelope.service(value) or environment.get("domain_name")
    agent = object_of(info.get("agent_info"))
    model, drawn = agent.get("llm"), sampling(agent.get("llm_args"))
    transcript = Transcript.of(emit, record, simulation, service, simulation.get("id"), place)
    if environment.get("policy"):
        transcript.message("system", environment["policy"])
    messages: list[Any] = []
    for message in list_under(simulation, "messages"):
        inner = message.get("tool_messages") if isinstance(message, dict) else None
        messages += inner if isinstance(inner, list) else [message]
    greeted = greeting(messages)
    for message in messages:
        if message is greeted:
            greeted_at = microseconds(message.get("timestamp"))
            transcript.log(message.get("content"), happened_at=greeted_at, lossy=["canned greeting"])
            continue
        answered = isinstance(message, dict) and message.get("role") == "assistant"
        tell_message(transcript, message, model=model if answered else None,
                     usage={**(tokens(message.get("usage")) or {}), **drawn} or None if answered else None)
    ended = microseconds(simulation.get("end_time"))
    graded = object_of(simulation.get("reward_info"))
    transcript.outcome("reward", graded.get("reward"), happened_at=ended)
    for name, score in object_of(graded.get("reward_breakdown")).items():
        transcript.outcome(name, score, happened_at=ended)
    transcript.outcome("termination_reason", simulation.get("termination_reason"), happened_at=ended)
    if not list_under(simulation, "messages"):
        transcript.log(simulation)
    declare_all(environment.get("tool_defs"), emit, service)


FORMAT = Format(name="tau2_bench", claims=claims, read=read, sample=sample("tau2_bench.json"), whole=True, rank=30)
