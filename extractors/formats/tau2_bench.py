"""Results of tau2-bench (and its successors): one document with tasks and simulations; each simulation is a conversation.

Sees messages of user, assistant and tools (several in one message too), who requested a call, error flags, token counts, the
policy as system prompt, declared tools; reward, its parts and the reason of the end are outcomes. The canned greeting and
markers like `###STOP###` are log events, no messages. Times carry no zone: they are taken as UTC.
Does not see: ticks of voice runs, the instruction of the user's simulator, criteria of tasks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from extractors.formats import simulator
from extractors.formats.format import Emit, Format, Head, LogRecord, Row
from extractors.formats.instants import microseconds
from extractors.formats.samples import sample
from extractors.formats.sampling import sampling
from extractors.formats.tool_list import declare_all
from extractors.formats.transcript import Transcript, nameless
from extractors.formats.usage import tokens


def claims(head: Head) -> bool:
    """The document holds simulations, and tasks or info; or it is one simulation of a folder of them."""
    first = head.first
    return head.layout in ("lines", "document") and (
        ("simulations" in first and bool({"tasks", "info"} & first.keys())) or _is_simulation(first))


def _is_simulation(value: Row) -> bool:
    return {"task_id", "termination_reason", "messages"} <= value.keys()


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """The simulations of a record."""
    for record in records:
        value = record.value
        if isinstance(value, dict) and _is_simulation(value):
            value = {"simulations": [value]}
        if not isinstance(value, dict) or not isinstance(value.get("simulations"), list) or not value["simulations"]:
            emit.reject(record, "no_simulations", "the record holds no list of simulations; leave it out or repair it")
            continue
        for number, simulation in enumerate(value["simulations"]):
            with emit.guarded(record):
                _simulation(record, value, simulation, f"{number}/", emit)


def _simulation(record: LogRecord, value: Row, simulation: Row, place: str, emit: Emit) -> None:
    info = _dict(value.get("info"))
    environment = _dict(info.get("environment_info"))
    stated = emit.envelope.session_id(simulation) or simulation.get("id")
    service = emit.envelope.service(value) or environment.get("domain_name")
    agent = _dict(info.get("agent_info"))
    model, drawn = agent.get("llm"), sampling(agent.get("llm_args"))
    told = Transcript(emit, record, str(stated) if stated is not None else nameless(record, place), place, service=service,
                      name=emit.envelope.identity(simulation))
    if environment.get("policy"):
        told.message("system", environment["policy"])
    messages = list(_flat(simulation.get("messages")))
    greeted = simulator.greeting(messages)
    for message in messages:
        if message is greeted:
            told.log(message.get("content"), happened_at=microseconds(message.get("timestamp")), lossy=["canned greeting"])
            continue
        answered = isinstance(message, dict) and message.get("role") == "assistant"
        simulator.tell(told, message, model=model if answered else None,
                       usage={**(tokens(message.get("usage")) or {}), **drawn} or None if answered else None)
    _end(told, simulation)
    declare_all(environment.get("tool_defs"), emit, service)


def _end(told: Transcript, simulation: Row) -> None:
    ended = microseconds(simulation.get("end_time"))
    graded = _dict(simulation.get("reward_info"))
    told.outcome("reward", graded.get("reward"), happened_at=ended)
    for name, score in _dict(graded.get("reward_breakdown")).items():
        told.outcome(name, score, happened_at=ended)
    told.outcome("termination_reason", simulation.get("termination_reason"), happened_at=ended)
    if not isinstance(simulation.get("messages"), list) or not simulation["messages"]:
        told.log(simulation)


def _flat(messages: Any) -> Iterator[Any]:
    for message in messages if isinstance(messages, list) else ():
        inner = message.get("tool_messages") if isinstance(message, dict) else None
        yield from inner if isinstance(inner, list) else (message,)


def _dict(value: Any) -> Row:
    return value if isinstance(value, dict) else {}


FORMAT = Format(name="tau2_bench", claims=claims, read=read, sample=sample("tau2_bench.json"), whole=True, rank=30)
