"""What a real tool answered when an environment did not know, and a person's decision: one JSON line per sequence of calls.

    {"service": "clinic", "session_id": SESSION, "task_id": "7c1b", "accepted": true, "reviewer": "Ada", "as_of": "start",
     "asked_at": "2026-03-09T10:00:00Z", "reviewed_at": "2026-03-09T12:00:00Z",
     "tool_calls": [{"tool": "cancel", "arguments": {"number": 7}, "content": "…", "is_error": false}]}

`service`, `session_id`, `accepted`, `reviewer` and `tool_calls` are required. The calls were made in this order, from the state
in which the session began; the last one is what was unknown. `looks` are reads after them, which show what they changed. The
latest decision on the same calls counts. `as_of`: `start` where the service was in that state, `now` where it was not. Does not
see: whether the service answers so again; whether the session exists, which the stage `environments` sees.
"""

from __future__ import annotations

import hashlib
from typing import Any

import orjson

from extractors.formats.format import Emit, Format, Head, LogRecord, RejectedRecord, Row, each_record, sample
from extractors.formats.instants import microseconds

NAME = "real_answer"
_TEXTS = ("service", "session_id", "reviewer")
AS_OF = ("start", "now")


def claims(head: Head) -> bool:
    """Return whether the first line is of calls that a person accepted or declined."""
    return head.layout == "lines" and {"accepted", "tool_calls", "session_id"} <= head.first.keys()


@each_record
def read(record: LogRecord, emit: Emit) -> None:
    """Read an event per call from a line; an incomplete line is rejected with its first problem."""
    value = record.value if isinstance(record.value, dict) else {}
    problem = problem_of(value)
    if problem is not None:
        raise RejectedRecord("malformed_answer", f"{problem}; ask the real tool again, or repair the line")
    calls = [[call["tool"], call["arguments"]] for call in value["tool_calls"]]
    named = [value["session_id"].strip(), calls, value.get("reviewed_at"), value["accepted"]]
    sequence = hashlib.sha256(orjson.dumps(named, option=orjson.OPT_SORT_KEYS)).hexdigest()[:32]
    decided = {"accepted": value["accepted"], "as_of": value.get("as_of") or AS_OF[0]}
    made = [*((call, False) for call in value["tool_calls"]), *((look, True) for look in value.get("looks") or ())]
    for position, (call, is_look) in enumerate(made):
        emit.event(
            record, "answer", happened_at=microseconds(value.get("reviewed_at")), session_id=value["session_id"].strip(),
            service=value["service"].strip(), call_id=sequence, name=value["reviewer"].strip(), position=position,
            tool=call["tool"], arguments=orjson.dumps(call["arguments"], option=orjson.OPT_SORT_KEYS).decode(),
            content=call["content"], is_error=call["is_error"],
            value=orjson.dumps(decided | {"look": True} if is_look else decided, option=orjson.OPT_SORT_KEYS).decode())


def problem_of(line: Row) -> str | None:
    """Return what keeps an object from being accepted or declined calls, in a few words; None if it is that."""
    for name in _TEXTS:
        if not isinstance(line.get(name), str) or not line[name].strip():
            return f"'{name}' is no text"
    if not isinstance(line.get("accepted"), bool):
        return "'accepted' is neither true nor false"
    if line.get("as_of") not in (None, *AS_OF):
        return f"'as_of' is none of {', '.join(AS_OF)}"
    for name in ("asked_at", "reviewed_at"):
        if line.get(name) is not None and microseconds(line[name]) is None:
            return f"'{name}' is no time"
    calls = line.get("tool_calls")
    if not isinstance(calls, list) or not calls:
        return "'tool_calls' is no list of calls"
    looks = line.get("looks") or []
    if not isinstance(looks, list):
        return "'looks' is no list of calls"
    return next(filter(None, map(_problem_of_call, [*calls, *looks])), None)


def _problem_of_call(call: Any) -> str | None:
    fields: dict[str, type] = {"tool": str, "arguments": dict, "content": str, "is_error": bool}
    given = call if isinstance(call, dict) else {}
    wrong = next((name for name, kind in fields.items() if not isinstance(given.get(name), kind)), None)
    return wrong and f"a call's '{wrong}' is missing or of another type"


FORMAT = Format(name=NAME, claims=claims, read=read, sample=sample("real_answer.jsonl"), rank=5)
