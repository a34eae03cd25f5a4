"""Messages of the Model Context Protocol, bare JSON-RPC or wrapped by whoever logged them, of every revision up to 2026-07-28.

In: a message, a batch of them, an object that holds some under any names (`{ts, dir, session, msg}` …), or a line of text with
one at its end. Out: calls of tools with their results, declared tools; everything else that was said as log events.
Sees: ids by session and direction (a label of any words: a request is answered by the other side), `1` apart from `"1"`,
protocol errors, cancellations, calls that are asked again with more input (they stay one call).
Does not see: the direction of bare messages (an answer goes to the request that it looks like), what a picture or a sound
says, the conversation around the calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any

import orjson

from extractors.formats.chat import arguments_of
from extractors.formats.format import Emit, Format, Head, LogRecord, Row
from extractors.formats.mcp_results import content_of
from extractors.formats.samples import sample
from extractors.formats.tool_list import declare_all

_DIRECTION = ("dir", "direction", "from", "sender", "flow", "side")
_SESSION = ("session", "mcp_session_id", "mcpSessionId", "mcp-session-id", "Mcp-Session-Id", "connection", "connection_id",
            "connectionId")
_SERVER = ("server", "server_name", "serverName")
_CALL = "tools/call"
_CALL_IDS = ("tooluseid", "toolcallid")
Key = tuple[str | None, str]


def claims(head: Head) -> bool:
    """A JSON-RPC message in the first object, or at the end of a line of text; a lone answer is a declared tool list."""
    if head.layout in ("lines", "document"):
        if isinstance(head.document, dict) and "result" in head.document:
            return False
        return any(next(messages(each), None) is not None for each in head.objects[:1])
    return head.layout == "text" and any('"jsonrpc"' in line and next(messages(line), None) is not None for line in head.text)


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """All messages of a file, in order."""
    log = _Log(emit)
    for record in records:
        found = list(messages(record.value))
        if not found and isinstance(record.value, str):
            emit.event(record, "log", content=record.value)
        elif not found:
            emit.reject(record, "no_message", "the record holds no JSON-RPC message; leave it out or repair it")
        with emit.guarded(record):
            for message in found:
                log.take(record, message)


def messages(value: Any) -> Iterator[Row]:
    """The JSON-RPC messages in a record: itself, the elements of a batch, or what it holds under its names."""
    if isinstance(value, str):
        start = re.search(r"\[?\s*\{", value) if '"jsonrpc"' in value else None
        if start is None:
            return
        try:
            value = orjson.loads(value[start.start():])
        except orjson.JSONDecodeError:
            return
    if isinstance(value, list):
        yield from (each for each in value if _is_message(each))
    elif _is_message(value):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            if _is_message(inner):
                yield inner
            elif isinstance(inner, list) or (isinstance(inner, str) and inner.lstrip()[:1] in ("{", "[")):
                yield from messages(inner)


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and value.get("jsonrpc") == "2.0"


class _Asked:
    """A request that waits for its answer."""

    __slots__ = ("call", "label", "method")

    def __init__(self, method: str, label: str | None, call: Row | None) -> None:
        self.method, self.label, self.call = method, label, call

    def fits(self, label: str | None, result: Any) -> bool:
        """Whether a message with this label may be the answer: from the other side, or of the right look."""
        if self.label is not None and label is not None:
            return self.label != label
        is_call = not isinstance(result, dict) or ("content" in result and "action" not in result and "role" not in result)
        return is_call or self.method != _CALL


class _Log:
    """What one file has said so far."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._waiting: dict[Key, list[_Asked]] = {}
        self._again: dict[tuple[str | None, str, str], Row] = {}
        """Calls that wait for more input, by session, tool and arguments."""
        self._servers: dict[str | None, str] = {}
        self._counts: dict[str | None, int] = {}

    def take(self, record: LogRecord, message: Row) -> None:
        """One message."""
        around, parameters = _object(record.value), _object(message.get("params"))
        shared: Row = {"session_id": self._session(around, parameters), "happened_at": self._time(record.value, around)}
        shared["service"] = self._service(around, shared["session_id"])
        label = next((str(around[name]) for name in _DIRECTION if isinstance(around.get(name), (str, int))), None)
        method = message.get("method")
        if isinstance(method, str):
            self._asked(record, message, method, label, parameters, shared)
        else:
            self._answered(record, message, label, shared)

    def _asked(self, record: LogRecord, message: Row, method: str, label: str | None, parameters: Row, shared: Row) -> None:
        session = shared["session_id"]
        call = None
        if method == _CALL and isinstance(parameters.get("name"), str):
            arguments, notes = arguments_of(parameters.get("arguments"))
            call = self._again.pop((session, parameters["name"], arguments), None)
            if call is None:
                call = self._emit.event(record, "call", role="assistant", requestor="assistant", tool=parameters["name"],
                                        call_id=_call_id(message, parameters), arguments=arguments, lossy=notes,
                                        position=self._next(session), **shared)
            else:
                self._said(record, message, method, parameters, shared)
        else:
            self._said(record, message, method, parameters, shared)
            if method == "notifications/cancelled":
                self._cancel(session, parameters.get("requestId"), label)
        if "id" in message:
            asked = _Asked(method, label, call)
            self._waiting.setdefault((session, _id(message["id"])), []).append(asked)

    def _answered(self, record: LogRecord, message: Row, label: str | None, shared: Row) -> None:
        key, result = (shared["session_id"], _id(message.get("id"))), message.get("result")
        waiting = self._waiting.get(key, [])
        asked = next((each for each in reversed(waiting) if each.fits(label, result)), None)
        if asked is not None:
            waiting.remove(asked)
        if isinstance(result, dict):
            self._meet(result, shared)
            if isinstance(result.get("tools"), list) and (asked is None or asked.method == "tools/list"):
                declare_all(result["tools"], self._emit, shared["service"])
        if asked is not None and asked.call is not None:
            self._result(record, message, asked, asked.call, shared)
        elif asked is None and isinstance(result, dict) and "content" in result and "action" not in result:
            self._emit.event(record, "result", call_id=key[1], position=self._next(key[0]), **content_of(result), **shared)
        else:
            self._said(record, message, f"{asked.method if asked else 'unknown'} answer", result, shared)

    def _result(self, record: LogRecord, message: Row, asked: _Asked, call: Row, shared: Row) -> None:
        result = message.get("result")
        if isinstance(result, dict) and result.get("resultType") == "input_required":
            self._again[shared["session_id"], call["tool"], call["arguments"]] = call
            self._said(record, message, "input_required", result, shared)
            return
        fields = content_of(result) if "error" not in message else {
            "content": orjson.dumps(message["error"]).decode(), "is_error": True}
        began, ended = call["happened_at"], shared["happened_at"]
        if began is not None and ended is not None:
            call["latency_ms"] = (ended - began) / 1000
        self._emit.event(record, "result", call_id=call["call_id"], tool=call["tool"],
                         position=self._next(shared["session_id"]), **fields, **shared)

    def _cancel(self, session: str | None, request_id: Any, label: str | None) -> None:
        """A call that its own side gave up has no answer any more; one that comes all the same is taken."""
        for asked in self._waiting.get((session, _id(request_id)), []):
            if asked.call is not None and asked.label == label:
                asked.call["lossy"] = [*asked.call["lossy"], "cancelled"]

    def _said(self, record: LogRecord, message: Row, method: str, carried: Any, shared: Row) -> None:
        arguments = carried if isinstance(carried, dict) else {} if carried is None else {"value": carried}
        self._emit.event(record, "log", tool=method, content=orjson.dumps(message).decode(),
                         arguments=orjson.dumps(arguments).decode(),
                         call_id=_id(message["id"]) if "id" in message else None, **shared)

    def _meet(self, result: Row, shared: Row) -> None:
        """The server's name, as its first answers state it, is the service of what follows."""
        server = result.get("serverInfo", _object(result.get("_meta")).get("io.modelcontextprotocol/serverInfo"))
        if isinstance(server, dict) and isinstance(server.get("name"), str):
            self._servers.setdefault(shared["session_id"], server["name"])
            shared["service"] = shared["service"] or server["name"]

    def _service(self, around: Row, session: str | None) -> str | None:
        stated = next((around[name] for name in _SERVER if isinstance(around.get(name), str)), None)
        return self._emit.envelope.service(around) or stated or self._servers.get(session)

    def _session(self, around: Row, parameters: Row) -> str | None:
        found = self._emit.envelope.session_id(around)
        stated = next((around[name] for name in _SESSION if isinstance(around.get(name), (str, int))), None)
        return found or (str(stated) if stated is not None else self._emit.envelope.session_id(parameters.get("_meta")))

    def _time(self, value: Any, around: Row) -> int | None:
        """When the record was written; of a line of text: the time that it begins with."""
        if isinstance(value, str):
            words = value.split("{", 1)[0].split()
            found = (self._emit.envelope.time({"time": " ".join(words[:n]).strip("[]")}) for n in (2, 1) if len(words) >= n)
            return next((each for each in found if each is not None), None)
        return self._emit.envelope.time(around)

    def _next(self, session: str | None) -> int:
        self._counts[session] = self._counts.get(session, -1) + 1
        return self._counts[session]


def _object(value: Any) -> Row:
    return value if isinstance(value, dict) else {}


def _id(value: Any) -> str:
    """An id as JSON text: `1` is not `"1"`."""
    return orjson.dumps(value).decode()


def _call_id(message: Row, parameters: Row) -> str | None:
    """The agent's own id of the call, where its host passes it on, else the message's id."""
    for name, value in _object(parameters.get("_meta")).items():
        if isinstance(value, str) and name.lower().replace("_", "").endswith(_CALL_IDS):
            return value
    return _id(message["id"]) if "id" in message else None


FORMAT = Format(name="mcp", history="once", claims=claims, read=read, sample=sample("mcp.jsonl"), apart=False, rank=25)
