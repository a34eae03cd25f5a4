"""OpenAI chat, one completion a line: `{"request": {"messages": […]}, "response": {"choices": […]}}`.

Every line repeats the whole history. Of a line that continues what the file already told of its session only the new parts
become events, so the cost follows the new text; a line that does not starts over with all its messages, and
`extractors.sessions` joins the two by their overlap. A line without a session id is joined to the conversation that its
history continues, which is named by its first record (`~` and the record's hash).
Times: the assistant's message at `created`; what the request brings at `created` less `latency_ms` (or at `ts`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import orjson

from extractors.formats.chat import parts
from extractors.formats.format import Emit, Format, Head, LogRecord, Row
from extractors.formats.instants import earlier, microseconds
from extractors.formats.overlap import Print, fingerprint
from extractors.formats.samples import sample
from extractors.formats.tool_list import declare_all
from extractors.formats.usage import tokens

_STARTED = ("ts", "timestamp", "start_time", "started_at", "request_time")
_LATENCY = ("latency_ms", "duration_ms", "response_ms", "latency")


@dataclass(slots=True)
class _Known:
    """What the file told of one conversation so far."""

    session_id: str
    messages: list[Any]
    answer: Any
    position: int


def claims(head: Head) -> bool:
    """The first objects have a request with messages, and an answer with choices (or none at all)."""
    request, response = head.first.get("request"), head.first.get("response")
    if head.layout not in ("lines", "document") or not isinstance(request, dict):
        return False
    answered = not isinstance(response, dict) or not response or "choices" in response or "error" in response
    return answered and isinstance(request.get("messages"), list)


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """The new parts of each completion."""
    sessions: dict[str, _Known] = {}
    openings: dict[bytes, list[_Known]] = {}
    declared: dict[str | None, Any] = {}
    for record in records:
        value = record.value if isinstance(record.value, dict) else {}
        request = value.get("request")
        messages = request.get("messages") if isinstance(request, dict) else None
        if not isinstance(request, dict) or not isinstance(messages, list) or not messages:
            emit.reject(record, "no_messages", "the record holds no request with messages; leave it out or repair it")
            continue
        with emit.guarded(record):
            service = emit.envelope.service(value)
            tools = request.get("tools") or request.get("functions")
            if tools and declared.get(service) != tools:
                declared[service] = tools
                declare_all(tools, emit, service)
            session_id = emit.envelope.session_id(value)
            same = openings.setdefault(_opening(messages), []) if session_id is None else []
            known = sessions.get(session_id) if session_id is not None else _continued(same, messages)
            known = _completion(record, value, messages, known, session_id, service, emit)
            if session_id is not None:
                sessions[session_id] = known
            elif not any(each is known for each in same):
                same.append(known)


def _completion(record: LogRecord, value: Row, messages: list[Any], known: _Known | None, session_id: str | None,
                service: str | None, emit: Emit) -> _Known:
    """Emit what is new in one record; returns what is known of its conversation now."""
    new = _new(known, messages)
    if known is None or new is None:
        known, new = _Known(session_id or f"~{record.record_id[:16]}", [], None, 0), messages
    asked_at, answered_at, latency = _times(value, emit)
    model = value["request"].get("model")
    fixed = {"session_id": known.session_id, "service": service, "model": model, "name": emit.envelope.identity(value)}
    last = max((i for i, each in enumerate(new) if isinstance(each, dict) and each.get("role") == "assistant"), default=-1)
    position = known.position
    for i, message in enumerate(new):
        for part in parts(message):
            part.setdefault("happened_at", asked_at if i > last else None)
            spoken = part["kind"] != "reasoning"
            emit.event(record, place=position if spoken else f"{position}r", position=position, **fixed, **part)
            position += spoken
    answer, after = _answers(record, value, position, {**fixed, "happened_at": answered_at, "latency_ms": latency}, emit)
    known.messages, known.answer, known.position = messages, answer, after
    return known


def _answers(record: LogRecord, value: Row, position: int, fixed: Row, emit: Emit) -> tuple[Any, int]:
    """Emit the candidates of the answer; only the first one goes on in the conversation. Returns it and its end."""
    response = value.get("response")
    choices = response.get("choices") if isinstance(response, dict) else None
    if not isinstance(choices, list) or not choices:
        emit.reject(record, "no_answer", "the record holds no choices; what was asked is kept, the answer is unknown")
        return None, position
    taken, after, usage = None, position, tokens(response.get("usage") if isinstance(response, dict) else None)
    for index, choice in enumerate(each for each in choices if isinstance(each, dict)):
        place = position
        for part in parts(choice.get("message")):
            part["lossy"] = [*part["lossy"], *([f"candidate {index}"] if index else ())]
            if choice.get("finish_reason") == "length":
                part["lossy"].append("finish_reason length")
            if usage is not None:   # the first part of the answer carries the counts of all of it
                part["usage"], usage = usage, None
            spoken = part["kind"] != "reasoning"
            name = place if spoken else f"{place}r"
            emit.event(record, place=name if not index else f"{index}/{name}", position=place, **{**fixed, **part})
            place += spoken
        if index == 0:
            taken, after = choice.get("message"), place
    return taken, after


def _new(known: _Known | None, messages: list[Any]) -> list[Any] | None:
    """Messages beyond what is known, None where `messages` does not continue it."""
    if known is None:
        return None
    n = len(known.messages)
    if messages[:n] != known.messages:
        return None
    rest = messages[n:]
    if known.answer is None:
        return rest
    return rest[1:] if rest and _same(rest[0], known.answer) else None


def _same(message: Any, answer: Any) -> bool:
    """Whether a message of the history is the answer that was given: responses carry keys that histories drop."""
    return bool(message == answer) or _prints(message) == _prints(answer)


def _prints(message: Any) -> list[Print]:
    return [fingerprint(part["kind"], part.get("role"), part.get("content"), part.get("tool"), part.get("arguments"))
            for part in parts(message) if part["kind"] != "reasoning"]


def _opening(messages: list[Any]) -> bytes:
    """Everything up to the first thing that a user said: conversations that differ there are different."""
    first = next((i for i, each in enumerate(messages) if isinstance(each, dict) and each.get("role") == "user"), 0)
    return orjson.dumps(messages[:first + 1])


def _continued(candidates: list[_Known], messages: list[Any]) -> _Known | None:
    """The conversation with the longest history that `messages` continues."""
    fits = [known for known in candidates if _new(known, messages) is not None]
    return max(fits, key=lambda known: known.position, default=None)


def _times(value: Row, emit: Emit) -> tuple[int | None, int | None, float | None]:
    """When it was asked and answered (microseconds), and how long that took (ms)."""
    response = value.get("response")
    created = value.get("created", response.get("created") if isinstance(response, dict) else None)
    answered = microseconds(created)
    stated = emit.envelope.mapped("time", value)
    stated = stated if stated is not None else next((value[key] for key in _STARTED if key in value), None)
    asked = microseconds(stated)
    latency = next((float(value[key]) for key in _LATENCY if isinstance(value.get(key), (int, float))), None)
    if answered is None and asked is not None:
        answered = earlier(asked, -(latency or 0.0))
    if asked is None and answered is not None:
        asked = earlier(answered, latency or 0.0)
    return asked, answered, latency


FORMAT = Format(name="openai_completions", claims=claims, read=read, sample=sample("openai_completions.jsonl"), rank=30)
