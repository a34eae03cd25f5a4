"""Agent Data Protocol, standardized JSON lines: one trajectory a line.

Sees actions (messages, calls of functions, code) and observations (text, web pages as JSON, images by hash); class names as the
models accept them and as the README spells them; the system prompt in `details`. A result without an id answers the oldest
call without an answer. Rewards of single steps are outcomes. Does not see: times; there are none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from extractors.formats.format import Emit, Format, Head, LogRecord, Row
from extractors.formats.samples import sample
from extractors.formats.transcript import Transcript, nameless, written

_CAPITAL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_NO_PAYLOAD = ("class_", "description", "tool_call_id", "source", "name", "reward", "reasoning_content")


def claims(head: Head) -> bool:
    """The first object has a schema version, and content of items that name their class."""
    content = head.first.get("content")
    return head.layout in ("lines", "document") and "schema_version" in head.first and isinstance(content, list) and any(
        isinstance(each, dict) and "class_" in each for each in content)


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """One trajectory a record."""
    for record in records:
        value = record.value
        if not isinstance(value, dict) or not isinstance(value.get("content"), list) or not value["content"]:
            emit.reject(record, "no_content", "the record holds no list of actions and observations; leave it out or repair it")
            continue
        with emit.guarded(record):
            _trajectory(record, value, emit)


def _trajectory(record: LogRecord, value: Row, emit: Emit) -> None:
    stated = emit.envelope.session_id(value) or value.get("id")
    details = value["details"] if isinstance(value.get("details"), dict) else {}
    service = emit.envelope.service(value) or emit.envelope.service(details)
    told = Transcript(emit, record, str(stated) if stated is not None else nameless(record), service=service,
                      name=emit.envelope.identity(value))
    if details.get("system"):
        told.message("system", details["system"])
    for item in value["content"]:
        _item(told, item)
    rest = {key: each for key, each in details.items() if key != "system"}
    if rest:
        told.log(rest)


def _item(told: Transcript, item: Row) -> None:
    kind = _CAPITAL.sub("_", str(item.get("class_"))).lower()
    if item.get("reasoning_content"):
        told.reasoning(item["reasoning_content"])
    if kind.endswith("_action"):
        _action(told, kind, item)
    elif kind.endswith("_observation"):
        _observation(told, kind, item)
    else:
        told.log(item)
    told.outcome("reward", item.get("reward"), call_id=item.get("tool_call_id"))


def _action(told: Transcript, kind: str, item: Row) -> None:
    said = item.get("description") or item.get("thoughts")
    if kind == "message_action":
        if said:
            told.reasoning(said)
        told.message("assistant", item.get("content", item.get("message")))
        return
    if said:
        told.message("assistant", said)
    if kind == "api_action":
        told.call(item.get("function"), item.get("kwargs"), item.get("tool_call_id"))
    elif kind == "code_action":
        told.call(item.get("language") or "code", {"code": item.get("content")}, item.get("tool_call_id"))
    else:
        payload = {key: value for key, value in item.items() if key not in _NO_PAYLOAD}
        told.call(kind.removesuffix("_action"), payload, item.get("tool_call_id"))


def _observation(told: Transcript, kind: str, item: Row) -> None:
    source = item.get("source")
    content = item.get("content")
    if kind != "text_observation":
        content = written({key: value for key, value in item.items() if key not in _NO_PAYLOAD})
    if source in ("user", "agent"):
        told.message("assistant" if source == "agent" else source, content)
    else:
        told.result(content, item.get("tool_call_id"), tool=item.get("name"))


FORMAT = Format(name="adp", claims=claims, read=read, sample=sample("adp.jsonl"), rank=30)
