"""OpenAI preference pairs for fine-tuning: `{"input": {"messages"}, "preferred_output": […], "non_preferred_output": […]}`.

Each line is a session of its own: what was asked, then the preferred answer. The other answer is kept as a candidate that was
not taken (`lossy` says so), and the preference as feedback. Also read under the older name `preferred_completion`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from extractors.formats.chat import parts
from extractors.formats.format import Emit, Format, Head, LogRecord, Row
from extractors.formats.openai_sessions import session_name
from extractors.formats.samples import sample
from extractors.formats.tool_list import declare_all

_PREFERRED = ("preferred_output", "preferred_completion")
_OTHER = ("non_preferred_output", "non_preferred_completion", "rejected_output")


def claims(head: Head) -> bool:
    """The first objects hold an input, an answer that was preferred and one that was not."""
    first = head.first
    return head.layout in ("lines", "document") and "input" in first and _key(first, _PREFERRED) is not None and \
        _key(first, _OTHER) is not None


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """One session a record, with both answers."""
    for record in records:
        value = record.value if isinstance(record.value, dict) else {}
        preferred, other = _messages(value, _PREFERRED), _messages(value, _OTHER)
        if not preferred and not other:
            emit.reject(record, "no_preference", "the record holds no answers to prefer; leave it out or repair the line")
            continue
        with emit.guarded(record):
            _pair(record, value, preferred, other, emit)


def _pair(record: LogRecord, value: Row, preferred: list[Any], other: list[Any], emit: Emit) -> None:
    given = value.get("input")
    asked: Row = given if isinstance(given, dict) else {"messages": [{"role": "user", "content": given}]}
    service = emit.envelope.service(value)
    fixed: Row = {"session_id": session_name(record, value, emit), "service": service, "name": emit.envelope.identity(value)}
    messages = asked.get("messages")
    position = _tell(record, messages if isinstance(messages, list) else [], 0, "", [], fixed, emit)
    _tell(record, preferred, position, "preferred/", [], fixed, emit)
    _tell(record, other, position, "other/", ["candidate 1", "not preferred"], fixed, emit)
    emit.event(record, "feedback", place="preference", session_id=fixed["session_id"], service=service, name="preference",
               value="preferred" if preferred else "not preferred")
    declare_all(asked.get("tools") or asked.get("functions"), emit, service)


def _tell(record: LogRecord, messages: list[Any], position: int, place: str, notes: list[str], fixed: Row,
          emit: Emit) -> int:
    """Emit the messages; returns the position after them."""
    for i, part in enumerate(part for message in messages for part in parts(message)):
        part["lossy"] = [*part["lossy"], *notes]
        emit.event(record, place=f"{place}{i}", position=position, **fixed, **part)
        position += part["kind"] != "reasoning"
    return position


def _messages(value: Row, names: tuple[str, ...]) -> list[Any]:
    """An answer: messages, one message, or its text."""
    key = _key(value, names)
    found = value.get(key) if key is not None else None
    if isinstance(found, str):
        return [{"role": "assistant", "content": found}]
    return found if isinstance(found, list) else [found] if isinstance(found, dict) else []


def _key(value: Row, names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in value), None)


FORMAT = Format(name="openai_preferences", claims=claims, read=read, sample=sample("openai_preferences.jsonl"), rank=35)
