"""mini-SWE-agent trajectories: `{info, messages, trajectory_format}`, one run a document.

Sees OpenAI messages with tool calls; in runs whose actions are text, the actions stated beside a message, else its one block of
shell code, are calls of `bash`, and the message after it is the result. A return code other than 0 is an error, marked as
inferred. Times are those stated with each message; exit status and submission are outcomes. Token counts stand only in logged
responses. Does not see: what the configuration says.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from extractors.formats.chat import parts
from extractors.formats.format import Emit, Format, Head, LogRecord, Row
from extractors.formats.instants import microseconds
from extractors.formats.samples import sample
from extractors.formats.sampling import laid, of_completion, sampling
from extractors.formats.transcript import Transcript, nameless
from extractors.formats.usage import tokens

_BLOCK = re.compile(r"```(?:bash|mswea_bash_command|sh)\s*\n(.*?)\n?```", re.DOTALL)
_RETURN_CODE = re.compile(r"<returncode>\s*(-?\d+)\s*</returncode>")
_MANY = 3


def claims(head: Head) -> bool:
    """The document names its trajectory format; or it is a bare list of messages of which most answers hold one shell block."""
    if head.layout not in ("lines", "document"):
        return False
    return str(head.first.get("trajectory_format")).startswith("mini-swe-agent") or _is_bare(head.document)


def _is_bare(document: Any) -> bool:
    if not isinstance(document, list) or len(document) < _MANY:
        return False
    if not all(isinstance(each, dict) and isinstance(each.get("role"), str) and "content" in each for each in document):
        return False
    answers = [each["content"] for each in document if each["role"] == "assistant"]
    return sum(isinstance(each, str) and _BLOCK.search(each) is not None for each in answers) * 2 > max(len(answers), 1)


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """One run a record."""
    for record in records:
        value = {"messages": record.value} if isinstance(record.value, list) else record.value
        if not isinstance(value, dict) or not isinstance(value.get("messages"), list) or not value["messages"]:
            emit.reject(record, "no_messages", "the record holds no list of messages; leave it out or repair it")
            continue
        with emit.guarded(record):
            _run(record, value, emit)


def _run(record: LogRecord, value: Row, emit: Emit) -> None:
    told = Transcript(emit, record, emit.envelope.session_id(value) or nameless(record),
                      service=emit.envelope.service(value), name=emit.envelope.identity(value))
    waiting = 0
    info = value["info"] if isinstance(value.get("info"), dict) else {}
    drawn = sampling(_dict(_dict(info.get("config")).get("model")))
    for message in value["messages"]:
        waiting = _message(told, message, waiting, drawn)
    told.outcome("exit_status", info.get("exit_status"))
    told.outcome("submission", info.get("submission") or None)


def _message(told: Transcript, message: Row, waiting: int, drawn: Row) -> int:
    """Events of one message; how many actions written as text still wait for their results."""
    extra = message["extra"] if isinstance(message.get("extra"), dict) else {}
    response = extra["response"] if isinstance(extra.get("response"), dict) else {}
    shared: Row = {"happened_at": microseconds(extra.get("timestamp")), "model": response.get("model")}
    if waiting and message.get("role") == "user":
        _result(told, message, extra, shared)
        return waiting - 1
    is_answer = message.get("role") == "assistant"
    usage = {**(tokens(response.get("usage")) or {}), **of_completion(response), **(drawn if is_answer else {})}
    said = list(parts(message))
    for part, own in zip(said, laid(usage, [part["kind"] for part in said]), strict=True):
        if part["kind"] == "result":
            part.update(_inferred(message, extra))
        told.add(part, **shared, usage=own)
    if message.get("role") != "assistant" or message.get("tool_calls"):
        return waiting
    commands = _commands(message, extra)
    for command in commands:
        told.call("bash", {"command": command}, **shared, usage=drawn or None, lossy=["taken from the text"])
    return len(commands)


def _dict(value: Any) -> Row:
    return value if isinstance(value, dict) else {}


def _commands(message: Row, extra: Row) -> list[str]:
    stated = [each.get("command") for each in extra.get("actions") or () if isinstance(each, dict)]
    if any(isinstance(each, str) for each in stated):
        return [each for each in stated if isinstance(each, str)]
    blocks = _BLOCK.findall(message["content"]) if isinstance(message.get("content"), str) else []
    return blocks if len(blocks) == 1 else []


def _result(told: Transcript, message: Row, extra: Row, shared: Row) -> None:
    told.result(message.get("content"), **shared, **_inferred(message, extra))


def _inferred(message: Row, extra: Row) -> Row:
    """The error flag that the return code means, where one is told."""
    content, code = message.get("content"), extra.get("returncode")
    if not isinstance(code, int) and isinstance(content, str) and (found := _RETURN_CODE.search(content)):
        code = int(found[1])
    return {"is_error": code != 0, "lossy": ["is_error inferred"]} if isinstance(code, int) else {}


FORMAT = Format(name="mini_swe_agent", claims=claims, read=read, sample=sample("mini_swe_agent.json"), whole=True, rank=30)
