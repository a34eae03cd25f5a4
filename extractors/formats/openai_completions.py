"""OpenAI chat, one completion a line: `{"request": {"messages": […]}, "response": {"choices": […]}}`.

Every line repeats the whole history. Of a line that continues what the file already holds of its session only the new parts
become events, so the cost follows the new text; a line that does not starts over with all its messages, and
`extractors.sessions` joins the two by their overlap. A line without a session id is joined to the conversation that its
history continues, which is named by its first record (`~` and the record's hash).
Times: the assistant's message at `created`; what the request brings at `created` less `latency_ms` (or at `ts`).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import orjson

from extractors.formats.chat import SPOKEN, parts
from extractors.formats.completion_shapes import exchanged, is_flat
from extractors.formats.envelope import SESSION
from extractors.formats.exchange import opening, prints_of, times
from extractors.formats.format import Block, Emit, Format, Head, LogRecord, LogRecords, Row, sample
from extractors.formats.ratings import rate
from extractors.formats.sampling import laid, of_completion, sampling, tokens
from extractors.formats.tool_list import declare_all
from extractors.formats.values import object_of

_TOOLS = ("tools", "functions")


@dataclass(slots=True, eq=False)
class _CompletedSession:
    """What the file holds of one conversation so far."""

    session_id: str
    messages: list[Any]
    answer: Any
    position: int


def claims(head: Head) -> bool:
    """Return whether the first object has a request with messages, and an answer with choices (or none at all), or one of the
    first is flat: messages, and also their answer."""
    if not head.is_json or not {"trajectory_format", "request_created_at"}.isdisjoint(head.first):   # others' envelopes
        return False
    request, response = head.first.get("request"), head.first.get("response")
    if not isinstance(request, dict):
        return any(is_flat(each) for each in head.objects)
    answered = not isinstance(response, dict) or not response or "choices" in response or "error" in response
    return answered and isinstance(request.get("messages"), list)


def read(records: LogRecords, emit: Emit) -> None:
    """Read the new parts of each completion."""
    log = _CompletionLog(emit)
    for record in records:
        log.take(record)


def read_block(block: Block, emit: Emit) -> None:
    """Read the same of many lines: what a line repeats of the one before of its conversation is not parsed again."""
    log, repeats = _CompletionLog(emit), Repeats[_CompletedSession]("messages", SESSION)
    for index, line in enumerate(block.contents):
        session: _CompletedSession | None = None
        if (short := repeats.shortened(line)) is not None:
            value, session = short
            for holder in (value, value.get("request")):
                if isinstance(holder, dict):
                    holder.update({name: repeats.meant(holder[name]) for name in _TOOLS if name in holder})
            record = LogRecord(block.record_ids[index], block.lines[index], value)
            session = log.go_on(record, session)
        if session is None:
            whole = block.record(index)
            session = log.take(whole) if whole is not None else None
            if session is not None and whole is not None:
                for name in _TOOLS:
                    for holder in (whole.value, whole.value.get("request")):
                        if isinstance(holder, dict) and holder.get(name):
                            repeats.same(name, holder[name], line)
        if session is not None:
            repeats.tell(line, session)


class _CompletionLog:
    """The conversations of one piece of a file."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._sessions: dict[str, _CompletedSession] = {}
        self._openings: dict[bytes, list[_CompletedSession]] = {}
        self._declared: dict[str | None, Any] = {}
        self._traces: dict[str, str] = {}
        """Session of each trace."""

    def take(self, record: LogRecord) -> _CompletedSession | None:
        """Tell a record that was parsed whole; returns its conversation, None where it has none."""
        with self._emit.guarded(record):
            value = exchanged(record.value)
            request = value.get("request")
            messages = request.get("messages") if isinstance(request, dict) else None
            if not isinstance(request, dict) or not isinstance(messages, list) or not messages:
                self._emit.reject(record, "no_messages", "the record holds no request with messages; leave it out or repair it")
                return None
            service = self._declare(value, request)
            session, new = self._session_of(record, value, messages)
            _completion(record, value, new, session, service, self._emit)
            rate(self._emit, record, value, session.session_id)
            session.messages = messages
            self._link(record, value, session)
            return session
        return None

    def _session_of(self, record: LogRecord, value: Row, messages: list[Any]) -> tuple[_CompletedSession, list[Any]]:
        """Return the conversation that a record goes on with, or a new one, and its messages that are new there."""
        session_id = self._emit.envelope.session_id(value)
        same = self._openings.setdefault(opening(messages), []) if session_id is None else []
        if session_id is not None:
            session = self._sessions.get(session_id)
        else:   # the conversation with the longest history that this one continues
            fits = [each for each in same if _new(each, messages) is not None]
            session = max(fits, key=lambda each: each.position, default=None)
        new = _new(session, messages) if session is not None else None
        if session is None or new is None:
            trace = self._emit.envelope.trace_id(value)
            name = session_id or (self._traces.get(trace, f"trace:{trace}") if trace else f"~{record.record_id[:16]}")
            session, new = _CompletedSession(name, [], None, 0), messages
        if session_id is not None:
            self._sessions[session_id] = session
        elif not any(each is session for each in same):
            same.append(session)
        return session, new

    def _link(self, record: LogRecord, value: Row, session: _CompletedSession) -> None:
        """Say, once, of which session a trace is: other files may state the trace alone."""
        trace = self._emit.envelope.trace_id(value)
        if trace is None or trace in self._traces:
            return
        self._traces[trace] = session.session_id
        if session.session_id != f"trace:{trace}":
            self._emit.event(record, "link", place="link", session_id=session.session_id, value=f"trace:{trace}")

    def go_on(self, record: LogRecord, session: _CompletedSession) -> _CompletedSession | None:
        """Tell a record of which only the messages beyond the known ones were parsed; None: it does not go on so."""
        value = exchanged(record.value)
        request = value.get("request")
        rest = request.get("messages") if isinstance(request, dict) else None
        session_id = self._emit.envelope.session_id(value)
        stated = None if session.session_id.startswith(("~", "trace:")) else session.session_id
        if not isinstance(request, dict) or not isinstance(rest, list) or session_id != stated or (
                session_id is not None and self._sessions.get(session_id) is not session):
            return None
        new = _beyond(session, rest)
        if new is None:
            return None
        with self._emit.guarded(record):
            _completion(record, value, new, session, self._declare(value, request), self._emit)
            rate(self._emit, record, value, session.session_id)
            self._link(record, value, session)
        session.messages += rest
        return session

    def _declare(self, value: Row, request: Row) -> str | None:
        service = self._emit.envelope.service(value)
        tools = request.get("tools") or request.get("functions")
        if tools and self._declared.get(service) is not tools and self._declared.get(service) != tools:
            self._declared[service] = tools
            declare_all(tools, self._emit, service)
        return service


def _completion(record: LogRecord, value: Row, new: list[Any], session: _CompletedSession, service: str | None,
                emit: Emit) -> None:
    """Emit what is new in one record, and note what is known of its conversation now."""
    created = value.get("created", object_of(value.get("response")).get("created"))
    started, answered, latency = times(value, created, emit)
    fixed = {"session_id": session.session_id, "service": service, "model": value["request"].get("model"),
             "name": emit.envelope.identity(value)}
    last = max((i for i, each in enumerate(new) if isinstance(each, dict) and each.get("role") == "assistant"), default=-1)
    position = session.position
    for i, message in enumerate(new):
        for part in parts(message):
            part.setdefault("happened_at", started if i > last else None)
            position = _emit_part(record, part, position, "", fixed, emit)
    answer, after = None, position
    fixed = {**fixed, "happened_at": answered, "latency_ms": latency}
    response = value.get("response")
    choices = response.get("choices") if isinstance(response, dict) else None
    if not isinstance(response, dict) or not isinstance(choices, list) or not choices:
        emit.reject(record, "no_answer", "the record holds no choices; what was asked is kept, the answer is unknown")
        response, choices = {}, []
    usage = {**(tokens(response.get("usage")) or {}), **of_completion(response), **sampling(value["request"])}
    for index, choice in enumerate(each for each in choices if isinstance(each, dict)):
        end, rows = position, list(parts(choice.get("message")))
        for part, own in zip(rows, laid(usage, [part["kind"] for part in rows]), strict=True):
            part["lossy"] = [*part["lossy"], *([f"candidate {index}"] if index else ()),
                             *(["finish_reason length"] if choice.get("finish_reason") == "length" else ())]
            if own is not None and index == 0:
                part["usage"] = own
            end = _emit_part(record, part, end, f"{index}/" if index else "", fixed, emit)
        if index == 0:   # only the first one goes on in the conversation
            answer, after = choice.get("message"), end
    session.answer, session.position = answer, after


def _emit_part(record: LogRecord, part: Row, position: int, place: str, fixed: Row, emit: Emit) -> int:
    """Emit a part, whose place is its position; returns the position after it."""
    is_spoken = part["kind"] in SPOKEN
    name = position if is_spoken else f"{position}r"
    emit.event(record, place=f"{place}{name}" if place else name, position=position, **{**fixed, **part})
    return position + is_spoken


def _new(session: _CompletedSession, messages: list[Any]) -> list[Any] | None:
    """Messages beyond what is known, None where `messages` does not continue it."""
    n = len(session.messages)
    return _beyond(session, messages[n:]) if messages[:n] == session.messages else None


def _beyond(session: _CompletedSession, rest: list[Any]) -> list[Any] | None:
    """Of what follows the known messages, what follows the known answer; None where another one follows."""
    if session.answer is None:
        return rest
    if not rest:
        return None   # responses carry keys that histories drop
    return rest[1:] if rest[0] == session.answer or prints_of(parts(rest[0])) == prints_of(parts(session.answer)) else None


T = TypeVar("T")
_ENDING, _OPENING = 4096, 256
_MOST_SAME = 8
_DECODER = json.JSONDecoder()
_USER_ROLE = re.compile(rb'"role"\s*:\s*"user"')


class Repeats(Generic[T]):
    """The lines of a file so far, by conversation: each repeats the list of the one before and adds a little, parsed alone.

    A list that equals another up to where that one ended holds its elements: no byte is trusted unseen, and brackets that would
    not close fail to parse. Does not see a rewritten history (other spaces, other ids); that line is parsed whole.
    """

    def __init__(self, key: str, names: tuple[str, ...]) -> None:
        """`key`: name of the list. `names`: fields that a conversation's id may stand in."""
        self._list = re.compile(rb'(?<!\\)"%s"\s*:\s*\[' % key.encode())
        self._names = re.compile(
            rb'(?<!\\)"(?:%s)"\s*:\s*"([^"\\]{1,200})"' % b"|".join(re.escape(name).encode() for name in names))
        self._lines: dict[bytes, tuple[bytes, int, int, T]] = {}
        """By what tells its conversation: a line, where its list begins and ends (inside the brackets), and its state."""
        self._same: dict[str, Any] = {}
        self._marks: list[tuple[bytes, bytes, bytes]] = []
        self._last: tuple[bytes, bytes, int, int] = (b"", b"", 0, 0)
        """The last line: its hint, where its list begins, and where what is new of it does."""

    def shortened(self, line: bytes) -> tuple[dict[str, Any], T] | None:
        """Return the line's value, its list without what is known, and what that is; None: the line must be parsed whole."""
        match = self._list.search(line)
        if match is None:
            return None
        start = match.end()
        hint = self._hint(line, match.start(), start)
        self._last = line, hint, start, start
        if hint not in self._lines:
            return None
        other, other_start, other_end, state = self._lines[hint]
        new = start + other_end - other_start + 1
        if other_end == other_start or not line.startswith(other[other_start:other_end], start) or line[new - 1:new] != b",":
            return None
        shorter = line[:start] + line[new:]
        for name, text, mark in self._marks:
            at = shorter.find(name)   # looking for the long text itself takes longer
            if at >= 0 and shorter.startswith(text, at):
                shorter = shorter[:at] + mark + shorter[at + len(text):]
        try:
            value = orjson.loads(shorter)
        except orjson.JSONDecodeError:
            return None
        self._last = line, hint, start, new
        return (value, state) if isinstance(value, dict) else None

    def tell(self, line: bytes, state: T) -> None:
        """Remember a line, for which `shortened` was called last, and what is known after it."""
        last, hint, start, new = self._last
        if last is not line:
            return
        try:   # a byte is a character: places in the text are places in the line
            _, length = _DECODER.raw_decode("[" + line[new:].decode("latin-1"))
        except (ValueError, RecursionError):
            self._lines.pop(hint, None)
        else:
            self._lines[hint] = line, start, new + length - 2, state

    def _hint(self, line: bytes, before: int, start: int) -> bytes:
        """Return what probably tells conversations apart: an id before the list or near the end, else a user message."""
        stated = self._names.search(line, 0, before) or self._names.search(line, max(start, len(line) - _ENDING))
        if stated is not None:
            return stated.group(1)
        match = _USER_ROLE.search(line, start)
        at = match.start() if match is not None else start
        return line[at:at + _OPENING]

    def same(self, name: str, value: Any, line: bytes) -> None:
        """From now on, where a line holds this value under this name as `line` does, a mark stands for it: see `meant`."""
        if len(self._same) >= _MOST_SAME or value in self._same.values():
            return
        spellings = (b'"%s":%s' % (name.encode(), orjson.dumps(value)),   # as the usual writers of JSON spell it
                     f'"{name}":{json.dumps(value, separators=(",", ":"))}'.encode(), f'"{name}": {json.dumps(value)}'.encode(),
                     f'"{name}": {json.dumps(value, ensure_ascii=False)}'.encode())
        text = next((each for each in spellings if each in line), None)
        if text is not None:
            mark = f"@{len(self._same)}"
            self._same[mark] = value
            self._marks.append((f'"{name}"'.encode(), text, f'"{name}":"{mark}"'.encode()))

    def meant(self, value: Any) -> Any:
        """Return what a mark stands for; anything else stands for itself."""
        return self._same.get(value, value) if isinstance(value, str) else value


FORMAT = Format(name="openai_completions", claims=claims, read=read, read_block=read_block,
                sample=sample("openai_completions.jsonl"), rank=30)
