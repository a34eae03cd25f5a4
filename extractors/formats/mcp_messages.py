"""Messages of the Model Context Protocol, bare JSON-RPC or wrapped by a logger, of every revision up to 2026-07-28.

In: a message, a batch of them, an object that holds some under any names (`{ts, dir, session, msg}` …), or a line of text with
one in it. Out: calls of tools with their results, declared tools; all other messages as log events.
Sees: ids by session (or server) and direction (a label of any words: a request is answered by the other side), `1` apart from
`"1"`, protocol errors, cancellations, calls that are asked again with more input (they stay one call).
Does not see: the direction of bare messages (an answer goes to the request that it fits), what a picture or a sound says, the
conversation around the calls. What stands beside the text of an answer and is no text (links, pictures, structured content that
says something else) is named in `lossy`; without any text, the structured content is it, as JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from extractors.formats.chat import call_part, text
from extractors.formats.conversation import milliseconds
from extractors.formats.format import Emit, Format, Head, LogRecord, LogRecords, Row, sample
from extractors.formats.tool_list import declare_all
from extractors.formats.values import dumped, loaded, object_of

_DIRECTION = ("dir", "direction", "from", "sender", "flow", "side")
_SESSION = ("session", "mcp_session_id", "mcpSessionId", "mcp-session-id", "Mcp-Session-Id", "connection", "connection_id",
            "connectionId")
_SERVER = ("server", "server_name", "serverName")
_CALL = "tools/call"
_CALL_IDS = ("tooluseid", "toolcallid")
_LONGEST = 10_000
_DECODER = json.JSONDecoder()
_STARTS = re.compile(r"\[\s*\{|\{")
_SIDE = re.compile(r"\bfrom (client|server|host)\b", re.IGNORECASE)
_BRACKETS = re.compile(r"\[([A-Za-z][\w .@/-]*)\]")
_LEVEL = re.compile(r"(?i:trace|debug|info|notice|warn(ing)?|err(or)?|fatal|critical|verbose)")
Key = tuple[str | None, str]


def claims(head: Head) -> bool:
    """Return whether there is a JSON-RPC message in the first object or line of text; a lone answer is a declared tool list."""
    if head.is_json:
        if isinstance(head.document, dict) and "result" in head.document:
            return False
        return any(next(messages(each), None) is not None for each in head.objects[:1])
    return head.layout == "text" and any('"jsonrpc"' in line and next(messages(line), None) is not None for line in head.text)


def read(records: LogRecords, emit: Emit) -> None:
    """All messages of a file, in order."""
    log = _McpReader(emit)
    for record in records:
        contents = list(messages(record.value))
        if not contents and isinstance(record.value, str):
            emit.event(record, "log", content=record.value)
        elif not contents:
            emit.reject(record, "no_message", "the record holds no JSON-RPC message; leave it out or repair it")
        with emit.guarded(record):
            for message in contents:
                log.take(record, message)


def messages(value: Any) -> Iterator[Row]:
    """Yield the JSON-RPC messages in a record: itself, the elements of a batch, or what it holds under its names."""
    if isinstance(value, str):
        value = _spelled(value) if '"jsonrpc"' in value else None
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


def _spelled(line: str) -> Any:
    """Return the JSON in a line of text, whatever its logger wrote before and after it; None where there is none."""
    for start in _STARTS.finditer(line):
        try:
            value, _ = _DECODER.raw_decode(line, start.start())
        except (ValueError, RecursionError):
            continue
        if '"jsonrpc"' in line[start.start():]:
            return value
    return None


def _words_around(line: str) -> Row:
    """Return what the words before a message say: which side it is from, and which server a logger names in brackets."""
    words = line.partition("{")[0]
    side, names = _SIDE.search(words), [each for each in _BRACKETS.findall(words) if not _LEVEL.fullmatch(each)]
    return {**({"dir": side[1]} if side else {}), **({"server": names[0]} if len(names) == 1 else {})}


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and value.get("jsonrpc") == "2.0"


@dataclass(slots=True, eq=False)
class _WaitingRequest:
    """A request that waits for its answer."""

    method: str
    label: str | None
    call: Row | None

    def fits(self, label: str | None, result: Any) -> bool:
        """Whether a message with this label may be the answer: from the other side, or of the right shape."""
        if self.label is not None and label is not None:
            return self.label != label
        is_call = not isinstance(result, dict) or ("content" in result and "action" not in result and "role" not in result)
        return is_call or self.method != _CALL


class _McpReader:
    """The messages of one file so far; ids as JSON text, since `1` is not `"1"`."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._waiting: dict[Key, list[_WaitingRequest]] = {}
        self._again: dict[tuple[str | None, str, str], Row] = {}
        """Calls that wait for more input, by session, tool and arguments."""
        self._servers: dict[str | None, str] = {}
        self._counts: dict[str | None, int] = {}
        self._scope: str | None = None
        """Where the ids of the current message count: its session, else its server."""

    def take(self, record: LogRecord, message: Row) -> None:
        around = _words_around(record.value) if isinstance(record.value, str) else object_of(record.value)
        parameters, envelope = object_of(message.get("params")), self._emit.envelope
        stated = _stated(around, _SESSION, (str, int))
        session = envelope.session_id(around) or (
            str(stated) if stated is not None else envelope.session_id(parameters.get("_meta")))
        shared: Row = {"session_id": session, "happened_at": self._time(record.value, around),
                       "service": envelope.service(around) or _stated(around, _SERVER, str) or self._servers.get(session)}
        self._scope = session or _stated(around, _SERVER, str)
        direction, method = _stated(around, _DIRECTION, (str, int)), message.get("method")
        label = None if direction is None else str(direction)
        if not isinstance(method, str):
            self._answered(record, message, label, shared)
            return
        call = None
        if method == _CALL and isinstance(parameters.get("name"), str):
            about = object_of(parameters.get("_meta"))   # the agent's own id of the call, where its host passes it on
            own = next((value for name, value in about.items() if isinstance(value, str)
                        and name.lower().replace("_", "").endswith(_CALL_IDS)), None)
            call_id = own if own is not None else dumped(message["id"]) if "id" in message else None
            part = call_part("assistant", call_id, parameters["name"], parameters.get("arguments"))
            call = self._again.pop((session, part["tool"], part["arguments"]), None)
            if call is None:
                call = self._emit.event(record, position=self._next(session), **part, **shared)
            else:
                self._log(record, message, method, parameters, shared)
        else:
            self._log(record, message, method, parameters, shared)
            if method == "notifications/cancelled":   # a call that its own side gave up; an answer is taken all the same
                for request in self._waiting.get((self._scope, dumped(parameters.get("requestId"))), []):
                    if request.call is not None and request.label == label:
                        request.call["lossy"] = [*request.call["lossy"], "cancelled"]
        if "id" in message:
            self._waiting.setdefault((self._scope, dumped(message["id"])), []).append(_WaitingRequest(method, label, call))

    def _answered(self, record: LogRecord, message: Row, label: str | None, shared: Row) -> None:
        key, result = (self._scope, dumped(message.get("id"))), message.get("result")
        waiting = self._waiting.get(key, [])
        request = next((each for each in reversed(waiting) if each.fits(label, result)), None)
        if request is not None:
            waiting.remove(request)
        if isinstance(result, dict):   # the server's name, as its first answers state it, is the service of what follows
            server = result.get("serverInfo", object_of(result.get("_meta")).get("io.modelcontextprotocol/serverInfo"))
            if isinstance(server, dict) and isinstance(server.get("name"), str):
                self._servers.setdefault(shared["session_id"], server["name"])
                shared["service"] = shared["service"] or server["name"]
            if isinstance(result.get("tools"), list) and (request is None or request.method == "tools/list"):
                declare_all(result["tools"], self._emit, shared["service"])
        session = shared["session_id"]
        if request is not None and (call := request.call) is not None:
            if isinstance(result, dict) and result.get("resultType") == "input_required":
                self._again[session, call["tool"], call["arguments"]] = call
                self._log(record, message, "input_required", result, shared)
                return
            fields = content_of(result) if "error" not in message else {"content": dumped(message["error"]), "is_error": True}
            if (latency := milliseconds(call["happened_at"], shared["happened_at"])) is not None:
                call["latency_ms"] = latency
            self._emit.event(record, "result", call_id=call["call_id"], tool=call["tool"], position=self._next(session),
                             **fields, **shared)
        elif request is None and isinstance(result, dict) and "content" in result and "action" not in result:
            self._emit.event(record, "result", call_id=key[1], position=self._next(session), **content_of(result), **shared)
        else:
            self._log(record, message, f"{request.method if request else 'unknown'} answer", result, shared)

    def _log(self, record: LogRecord, message: Row, method: str, carried: Any, shared: Row) -> None:
        arguments = carried if isinstance(carried, dict) else {} if carried is None else {"value": carried}
        self._emit.event(record, "log", tool=method, content=dumped(message),
                         arguments=dumped(arguments),
                         call_id=dumped(message["id"]) if "id" in message else None, **shared)

    def _time(self, value: Any, around: Row) -> int | None:
        """When the record was written; of a line of text: the time that it begins with."""
        if isinstance(value, str):
            words = value.split("{", 1)[0].split()
            instants = (self._emit.envelope.time({"time": " ".join(words[:n]).strip("[]")}) for n in (2, 1) if len(words) >= n)
            return next((each for each in instants if each is not None), None)
        return self._emit.envelope.time(around)

    def _next(self, session: str | None) -> int:
        self._counts[session] = self._counts.get(session, -1) + 1
        return self._counts[session]


def _stated(around: Row, names: tuple[str, ...], kinds: Any) -> Any:
    """Value of the first of these fields of the record that is of these kinds."""
    return next((around[name] for name in names if isinstance(around.get(name), kinds)), None)


def content_of(result: Any) -> Row:
    """`content`, `is_error` and `lossy` of a `tools/call` result; a missing flag is no error, says the protocol."""
    if not isinstance(result, dict):
        return {"content": dumped(result), "is_error": None, "lossy": ["result is no object"]}
    parts = result.get("content")
    content, lossy = text(list(map(_plain, parts)) if isinstance(parts, list) else parts)
    if isinstance(parts, list):
        lossy = [note for note in lossy if not note.startswith("part resource_link ")]
        lossy += [f"part resource_link {dumped(part)}" for part in parts
                  if isinstance(part, dict) and part.get("type") == "resource_link"]
    if "structuredContent" in result:
        structured = result["structuredContent"]
        if not content:
            content = dumped(structured)
        elif loaded(content) != structured:
            lossy.append(f"structuredContent {dumped(structured)[:_LONGEST]}")
    is_error = result.get("isError", False)
    return {"content": content, "is_error": is_error if isinstance(is_error, bool) else None, "lossy": lossy}


def _plain(part: Any) -> Any:
    """Return an embedded resource that is text as a part of text."""
    resource = object_of(part.get("resource")) if isinstance(part, dict) and part.get("type") == "resource" else {}
    return {"type": "text", "text": resource["text"]} if "text" in resource else part


FORMAT = Format(name="mcp", history="once", claims=claims, read=read, sample=sample("mcp.jsonl"), apart=False, rank=25)
