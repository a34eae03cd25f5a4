"""OpenAI preference pairs for fine-tuning: `{"input": {"messages"}, "preferred_output": […], "non_preferred_output": […]}`.

Each line is a session of its own: what was asked, then the preferred answer. The other answer is kept as a candidate that was
not taken (`lossy` says so), and the preference as feedback. Also read under the older name `preferred_completion`.
"""

from __future__ import annotations

from typing import Any

from extractors.formats.chat import emit_parts, parts
from extractors.formats.format import Emit, Format, Head, LogRecord, RejectedRecord, Row, each_record, sample
from extractors.formats.openai_sessions import session_fields, session_name
from extractors.formats.tool_list import declare_all
from extractors.formats.values import list_under

_PREFERRED = ("preferred_output", "preferred_completion")
_OTHER = ("non_preferred_output", "non_preferred_completion", "rejected_output")


def claims(head: Head) -> bool:
    """Return whether the first objects hold an input, an answer that was preferred and one that was not."""
    first = head.first
    return head.is_json and "input" in first and _key(first, _PREFERRED) is not None and _key(first, _OTHER) is not None


@each_record
def read(record: LogRecord, emit: Emit) -> None:
    """One session a record, with both answers."""
    value = record.value if isinstance(record.value, dict) else {}
    preferred, other = _messages(value, _PREFERRED), _messages(value, _OTHER)
    if not preferred and not other:
        raise RejectedRecord("no_preference", "the record holds no answers to prefer; leave it out or repair the line")
    given = value.get("input")
    request: Row = given if isinstance(given, dict) else {"messages": [{"role": "user", "content": given}]}
    fixed = session_fields(value, session_name(record, value, emit), emit)
    question, *answers = ([part for each in answer for part in parts(each)]
                          for answer in (list_under(request, "messages"), preferred, other))
    position = emit_parts(emit, record, question, 0, "", fixed)
    emit_parts(emit, record, answers[0], position, "preferred/", fixed)
    emit_parts(emit, record, answers[1], position, "other/", fixed, ["candidate 1", "not preferred"])
    emit.event(record, "feedback", place="preference", session_id=fixed["session_id"], service=fixed["service"],
               name="preference", value="preferred" if preferred else "not preferred")
    declare_all(request.get("tools") or request.get("functions"), emit, fixed["service"])


def _messages(value: Row, names: tuple[str, ...]) -> list[Any]:
    """Return an answer: messages, one message, or its text."""
    key = _key(value, names)
    answer = value.get(key) if key is not None else None
    if isinstance(answer, str):
        return [{"role": "assistant", "content": answer}]
    return answer if isinstance(answer, list) else [answer] if isinstance(answer, dict) else []


def _key(value: Row, names: tuple[str, ...]) -> str | None:
    return next((name for name in names if name in value), None)


FORMAT = Format(name="openai_preferences", claims=claims, read=read, sample=sample("openai_preferences.jsonl"), rank=35)
