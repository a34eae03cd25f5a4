"""Agent Data Protocol, standardized JSON lines: one trajectory a line.

Sees actions (messages, calls of functions, code) and observations (text, web pages as JSON, images by hash); class names as the
models accept them and as the README spells them; the system prompt in `details`. A result without an id answers the oldest
call without an answer. Rewards of single steps are outcomes. Does not see: times; there are none.
"""

from __future__ import annotations

import re

from extractors.formats.format import Emit, Format, Head, LogRecord, RejectedRecord, each_record, sample
from extractors.formats.transcript import Transcript, written
from extractors.formats.values import list_under, object_of

_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NO_PAYLOAD = ("class_", "description", "tool_call_id", "source", "name", "reward", "reasoning_content")


def claims(head: Head) -> bool:
    """Return whether the first object has a schema version, and content of items that name their class."""
    content = head.first.get("content")
    return head.is_json and "schema_version" in head.first and isinstance(content, list) and any(
        isinstance(each, dict) and "class_" in each for each in content)


@each_record
def read(record: LogRecord, emit: Emit) -> None:
    """One trajectory a record."""
    value = record.value
    if not list_under(value, "content"):
        raise RejectedRecord("no_content", "the record holds no list of actions and observations; leave it out or repair it")
    details = object_of(value.get("details"))
    service = emit.envelope.service(value) or emit.envelope.service(details)
    transcript = Transcript.of(emit, record, value, service, value.get("id"))
    if details.get("system"):
        transcript.message("system", details["system"])
    for item in value["content"]:
        kind, call_id = _CAPITAL.sub("_", str(item.get("class_"))).lower(), item.get("tool_call_id")
        source = item.get("source")
        payload = {key: each for key, each in item.items() if key not in _NO_PAYLOAD}
        if item.get("reasoning_content"):
            transcript.reasoning(item["reasoning_content"])
        thought = (item.get("description") or item.get("thoughts")) if kind.endswith("_action") else None
        if thought and kind == "message_action":
            transcript.reasoning(thought)
        elif thought:
            transcript.message("assistant", thought)
        if kind == "message_action":
            transcript.message("assistant", item.get("content", item.get("message")))
        elif kind == "api_action":
            transcript.call(item.get("function"), item.get("kwargs"), call_id)
        elif kind == "code_action":
            transcript.call(item.get("language") or "code", {"code": item.get("content")}, call_id)
        elif kind.endswith("_action"):
            transcript.call(kind.removesuffix("_action"), payload, call_id)
        elif kind.endswith("_observation"):
            content = item.get("content") if kind == "text_observation" else written(payload)
            if source in ("user", "agent"):
                transcript.message("assistant" if source == "agent" else source, content)
            else:
                transcript.result(content, call_id, tool=item.get("name"))
        else:
            transcript.log(item)
        transcript.outcome("reward", item.get("reward"), call_id=call_id)
    if rest := {key: each for key, each in details.items() if key != "system"}:
        transcript.log(rest)


FORMAT = Format(name="adp", claims=claims, read=read, sample=sample("adp.jsonl"), rank=30)
