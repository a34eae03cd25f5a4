"""OpenAI chat, a whole session a line: `{"session_id"?, "messages": […], "tools"?}`, and fine-tuning files.

Messages in the shape of Anthropic's (blocks of tools, `system` next to them) or Gemini's (`parts`) are read as theirs.

A line without a session id is a session of its own, named by its record (`~` and the record's hash).
"""

from __future__ import annotations

from typing import Any

from extractors.formats.chat import SPOKEN
from extractors.formats.completion_shapes import is_answered
from extractors.formats.format import Emit, Format, Head, LogRecord, RejectedRecord, Row, each_record, sample
from extractors.formats.framework_messages import dialect_of
from extractors.formats.instants import microseconds
from extractors.formats.message_lists import parts_of
from extractors.formats.ratings import rate
from extractors.formats.tool_list import declare_all
from extractors.formats.values import list_under

_LOOK_AT = 5


def claims(head: Head) -> bool:
    """One of the first objects has a list of messages, and of its first messages most have roles: a line may be damaged.

    None also holds its answer (that is a completion), or a framework's own messages.
    """
    if "trajectory_format" in head.first:   # an agent's own envelope, read by its own format
        return False
    starts = [each["messages"][:_LOOK_AT] for each in head.objects if isinstance(each.get("messages"), list)]
    if any(dialect_of(each["messages"]) for each in head.objects if isinstance(each.get("messages"), list)):
        return False
    return head.is_json and not any(map(is_answered, head.objects)) and any(
        sum(isinstance(each, dict) and "role" in each for each in start) * 2 > len(start) for start in starts)


@each_record
def read(record: LogRecord, emit: Emit) -> None:
    """One session a record."""
    value, messages = record.value, list_under(record.value, "messages")
    if not messages:
        raise RejectedRecord("no_messages", "the record holds no list of messages; leave it out or repair the line")
    fixed = {**session_fields(value, session_name(record, value, emit), emit),
             "model": value.get("model") if isinstance(value.get("model"), str) else None}
    started = microseconds(value.get("start_time")) or emit.envelope.time(value)
    position = 0
    parts = parts_of(messages)
    system = value.get("system")   # Anthropic's stands outside the messages
    if isinstance(system, (str, list)) and system:
        messages = [{"role": "system", "content": system}, *messages]
    for part in (part for message in messages for part in parts(message)):
        if position == 0 and part.get("happened_at") is None:
            part["happened_at"] = started
        is_spoken = part["kind"] in SPOKEN
        emit.event(record, place=position if is_spoken else f"{position}r", position=position, **fixed, **part)
        position += is_spoken
    rate(emit, record, value, fixed["session_id"])
    declare_all(value.get("tools") or value.get("functions"), emit, fixed["service"])


def session_fields(value: Any, session_id: str, emit: Emit) -> Row:
    """Columns of all events of a session that a record states."""
    return {"session_id": session_id, "service": emit.envelope.service(value), "name": emit.envelope.identity(value)}


def session_name(record: LogRecord, value: Row, emit: Emit) -> str:
    """Session as logged, else a name made of the record's hash."""
    stated = emit.envelope.session_id(value) or value.get("id")
    return str(stated) if stated not in (None, "") else f"~{record.record_id[:16]}"


FORMAT = Format(name="openai_sessions", claims=claims, read=read, sample=sample("openai_sessions.jsonl"))
