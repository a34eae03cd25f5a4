"""mini-SWE-agent trajectories: `{info, messages, trajectory_format}`, one run a document.

Sees OpenAI messages with tool calls; in runs whose actions are text, the actions stated beside a message, else its one block of
shell code, are calls of `bash`, and the message after it is the result. A return code other than 0 is an error, marked as
inferred. Times are those stated with each message; exit status and submission are outcomes. Token counts stand only in logged
responses. Does not see: what the configuration says.
"""

from __future__ import annotations

import re
from typing import Any

from extractors.formats.chat import parts
from extractors.formats.format import Emit, Format, Head, LogRecord, RejectedRecord, Row, each_record, sample
from extractors.formats.instants import microseconds
from extractors.formats.sampling import of_completion, sampling, tokens
from extractors.formats.transcript import Transcript
from extractors.formats.values import list_under, object_of

_BLOCK = re.compile(r"```(?:bash|mswea_bash_command|sh)\s*\n(.*?)\n?```", re.DOTALL)
_RETURN_CODE = re.compile(r"<returncode>\s*(-?\d+)\s*</returncode>")


def claims(head: Head) -> bool:
    """Return whether the document names its format, or is a bare list of messages whose answers mostly hold a shell block."""
    if not head.is_json:
        return False
    return str(head.first.get("trajectory_format")).startswith("mini-swe-agent") or _is_bare(head.document)


def _is_bare(document: Any) -> bool:
    if not isinstance(document, list) or len(document) < 3:
        return False
    if not all(isinstance(each, dict) and isinstance(each.get("role"), str) and "content" in each for each in document):
        return False
    answers = [each["content"] for each in document if each["role"] == "assistant"]
    return sum(isinstance(each, str) and _BLOCK.search(each) is not None for each in answers) * 2 > max(len(answers), 1)


@each_record
def read(record: LogRecord, emit: Emit) -> None:
    """One run a record."""
    value = {"messages": record.value} if isinstance(record.value, list) else record.value
    if not list_under(value, "messages"):
        raise RejectedRecord("no_messages", "the record holds no list of messages; leave it out or repair it")
    transcript = Transcript.of(emit, record, value, emit.envelope.service(value))
    waiting, info = 0, object_of(value.get("info"))
    drawn = sampling(object_of(object_of(info.get("config")).get("model")))
    for message in value["messages"]:
        waiting = _message(transcript, message, waiting, drawn)
    transcript.outcome("exit_status", info.get("exit_status"))
    transcript.outcome("submission", info.get("submission") or None)


def _message(transcript: Transcript, message: Row, waiting: int, drawn: Row) -> int:
    """Events of one message; how many actions written as text still wait for their results."""
    extra = object_of(message.get("extra"))
    response = object_of(extra.get("response"))
    shared: Row = {"happened_at": microseconds(extra.get("timestamp")), "model": response.get("model")}
    if waiting and message.get("role") == "user":
        transcript.result(message.get("content"), **shared, **_inferred(message, extra))
        return waiting - 1
    is_answer = message.get("role") == "assistant"
    usage = {**(tokens(response.get("usage")) or {}), **of_completion(response), **(drawn if is_answer else {})}
    rows = ({**part, **(_inferred(message, extra) if part["kind"] == "result" else {})} for part in parts(message))
    transcript.add_answer(rows, usage, **shared)
    if not is_answer or message.get("tool_calls"):
        return waiting
    commands = [each["command"] for each in extra.get("actions") or () if isinstance(each, dict) and isinstance(
        each.get("command"), str)]
    if not commands and isinstance(message.get("content"), str):
        blocks = _BLOCK.findall(message["content"])
        commands = blocks if len(blocks) == 1 else []
    for command in commands:
        transcript.call("bash", {"command": command}, **shared, usage=drawn or None, lossy=["taken from the text"])
    return len(commands)


def _inferred(message: Row, extra: Row) -> Row:
    """Return the error flag that the return code means, where one is told."""
    content, code = message.get("content"), extra.get("returncode")
    if not isinstance(code, int) and isinstance(content, str) and (match := _RETURN_CODE.search(content)):
        code = int(match[1])
    return {"is_error": code != 0, "lossy": ["is_error inferred"]} if isinstance(code, int) else {}


FORMAT = Format(name="mini_swe_agent", claims=claims, read=read, sample=sample("mini_swe_agent.json"), whole=True, rank=30)
