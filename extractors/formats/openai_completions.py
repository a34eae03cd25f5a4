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
from extractors.formats.envelope import SESSION
from extractors.formats.format import Block, Emit, Format, Head, LogRecord, Row
from extractors.formats.instants import earlier, microseconds
from extractors.formats.overlap import Print, fingerprint
from extractors.formats.repeats import Repeats
from extractors.formats.samples import sample
from extractors.formats.sampling import laid, of_completion, sampling
from extractors.formats.tool_list import declare_all
from extractors.formats.usage import tokens

_TOOLS = ("tools", "functions")
_STARTED = ("ts", "timestamp", "start_time", "started_at", "request_time")
_LATENCY = ("latency_ms", "duration_ms", "response_ms", "latency")


@dataclass(slots=True, eq=False)
class _Known:
    """What the file told of one conversation so far."""

    session_id: str
    messages: list[Any]
    answer: Any
    position: int

    @property
    def stated(self) -> bool:
        """Whether the log names it."""
        return not self.session_id.startswith("~")


def claims(head: Head) -> bool:
    """The first objects have a request with messages, and an answer with choices (or none at all)."""
    request, response = head.first.get("request"), head.first.get("response")
    if head.layout not in ("lines", "document") or not isinstance(request, dict):
        return False
    answered = not isinstance(response, dict) or not response or "choices" in response or "error" in response
    return answered and isinstance(request.get("messages"), list)


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """The new parts of each completion."""
    log = _Log(emit)
    for record in records:
        log.take(record)


def read_block(block: Block, emit: Emit) -> None:
    """The same of many lines: what a line repeats of the one before of its conversation is not parsed again."""
    log, repeats = _Log(emit), Repeats[_Known]("messages", SESSION)
    for index, line in enumerate(block.contents):
        known: _Known | None = None
        if (short := repeats.shortened(line)) is not None:
            value, known = short
            request = value.get("request")
            if isinstance(request, dict):
                request.update({name: repeats.meant(request[name]) for name in _TOOLS if name in request})
            record = LogRecord(block.record_ids[index], block.lines[index], value)
            known = log.go_on(record, known)
        if known is None:
            whole = block.record(index)
            known = log.take(whole) if whole is not None else None
            if known is not None and whole is not None:
                for name in _TOOLS:
                    if whole.value["request"].get(name):
                        repeats.same(name, whole.value["request"][name], line)
        if known is not None:
            repeats.tell(line, known)


class _Log:
    """The conversations of one piece of a file."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._sessions: dict[str, _Known] = {}
        self._openings: dict[bytes, list[_Known]] = {}
        self._declared: dict[str | None, Any] = {}

    def take(self, record: LogRecord) -> _Known | None:
        """Tell a record that was parsed whole; returns its conversation, None where it has none."""
        value = record.value if isinstance(record.value, dict) else {}
        request = value.get("request")
        messages = request.get("messages") if isinstance(request, dict) else None
        if not isinstance(request, dict) or not isinstance(messages, list) or not messages:
            self._emit.reject(record, "no_messages", "the record holds no request with messages; leave it out or repair it")
            return None
        with self._emit.guarded(record):
            service = self._declare(value, request)
            session_id = self._emit.envelope.session_id(value)
            same = self._openings.setdefault(_opening(messages), []) if session_id is None else []
            known = self._sessions.get(session_id) if session_id is not None else _continued(same, messages)
            new = _new(known, messages)
            if known is None or new is None:
                known, new = _Known(session_id or f"~{record.record_id[:16]}", [], None, 0), messages
            _completion(record, value, new, known, service, self._emit)
            known.messages = messages
            if session_id is not None:
                self._sessions[session_id] = known
            elif not any(each is known for each in same):
                same.append(known)
            return known
        return None

    def go_on(self, record: LogRecord, known: _Known) -> _Known | None:
        """Tell a record of which only the messages beyond the known ones were parsed; None: it does not go on so."""
        value = record.value
        request = value.get("request")
        rest = request.get("messages") if isinstance(request, dict) else None
        session_id = self._emit.envelope.session_id(value)
        stated = known.session_id if known.stated else None
        if not isinstance(rest, list) or session_id != stated or (
                session_id is not None and self._sessions.get(session_id) is not known):
            return None
        new = _beyond(known, rest)
        if new is None:
            return None
        with self._emit.guarded(record):
            _completion(record, value, new, known, self._declare(value, request), self._emit)
        known.messages += rest
        return known

    def _declare(self, value: Row, request: Row) -> str | None:
        """Declare the tools that a request offers, where they are not those of the one before; returns the service."""
        service = self._emit.envelope.service(value)
        tools = request.get("tools") or request.get("functions")
        if tools and self._declared.get(service) is not tools and self._declared.get(service) != tools:
            self._declared[service] = tools
            declare_all(tools, self._emit, service)
        return service


def _completion(record: LogRecord, value: Row, new: list[Any], known: _Known, service: str | None, emit: Emit) -> None:
    """Emit what is new in one record, and note what is known of its conversation now."""
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
    known.answer, known.position = answer, after


def _answers(record: LogRecord, value: Row, position: int, fixed: Row, emit: Emit) -> tuple[Any, int]:
    """Emit the candidates of the answer; only the first one goes on in the conversation. Returns it and its end."""
    response = value.get("response")
    choices = response.get("choices") if isinstance(response, dict) else None
    if not isinstance(response, dict) or not isinstance(choices, list) or not choices:
        emit.reject(record, "no_answer", "the record holds no choices; what was asked is kept, the answer is unknown")
        return None, position
    usage = {**(tokens(response.get("usage")) or {}), **of_completion(response), **sampling(value["request"])}
    taken, after = None, position
    for index, choice in enumerate(each for each in choices if isinstance(each, dict)):
        place, said = position, list(parts(choice.get("message")))
        for part, own in zip(said, laid(usage, [part["kind"] for part in said]), strict=True):
            part["lossy"] = [*part["lossy"], *([f"candidate {index}"] if index else ())]
            if choice.get("finish_reason") == "length":
                part["lossy"].append("finish_reason length")
            if own is not None and index == 0:
                part["usage"] = own
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
    return _beyond(known, messages[n:]) if messages[:n] == known.messages else None


def _beyond(known: _Known, rest: list[Any]) -> list[Any] | None:
    """Of what follows the known messages, what follows the known answer; None where another one follows."""
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


FORMAT = Format(name="openai_completions", claims=claims, read=read, read_block=read_block,
                sample=sample("openai_completions.jsonl"), rank=30)
