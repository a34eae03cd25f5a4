"""The room speaks the Model Context Protocol over stdio: newline-delimited JSON-RPC 2.0, standard library only.

What goes in: lines of JSON on a binary stream. What comes out: one line of JSON per request, nothing per notification.
Both eras of the protocol are spoken, as the client's first request decides: the `initialize` handshake (2024-11-05 to
2025-11-25) and the envelope that every request carries (`server/discover`, 2026-07-28).
Specification: https://modelcontextprotocol.io/specification.

The agent's side is `tools/list` and `tools/call`. With `control=True` there is a second side for the host that runs the
episodes, under the prefix `traceroom/`: reset, say, learn, prompt, supply, finish, state, journal, close, tasks. A host
between an agent and the room forwards `tools/*` alone: journal and user are its own.

One server holds one episode, and any number beside it over the same world: a request whose `_meta` has `traceroom/episode`
is about the episode of that name, which `traceroom/reset` begins and `traceroom/close` ends. None sees another.

Sees: one line at a time, up to `MAX_LINE` bytes. Does not see: who sends it; whoever holds the stream holds its episodes.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from io import BufferedIOBase
from typing import Any, BinaryIO

from .control import CLOSE, HANDLERS, INVALID_PARAMS, RESET, Handler, Played, Refused
from .environment import Environment
from .records import Observation, Result, Task

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Protocol revisions that begin with `initialize`, oldest to newest."""
STRUCTURED_SINCE = "2025-06-18"
"""The first revision whose results may also be structured."""
ENVELOPE_VERSIONS = ("2026-07-28",)
"""Protocol revisions whose every request says its version in `_meta`."""
MAX_LINE = 16 * 1024 * 1024
"""Bytes of the longest line that is read; a longer one is answered with an error and skipped."""
CHUNK = 64 * 1024
"""Bytes that are read at a time; what they ask is answered together."""

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INTERNAL_ERROR = -32700, -32600, -32601, -32603
UNSUPPORTED_VERSION = -32022
EPISODE_KEY = "traceroom/episode"
"""Names in a request's `_meta` the episode that it is about."""
_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_SERVER_KEY = "io.modelcontextprotocol/serverInfo"
_SERVER = {"name": "traceroom", "version": "1"}
_CAPABILITIES = {"tools": {"listChanged": False}}
_NEVER_CACHE = {"ttlMs": 0, "cacheScope": "private"}


def _no_json(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_json)
_ENCODER = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"))


class Server:
    """Answers the requests of one client about one environment."""

    def __init__(self, environment: Environment, control: bool = False) -> None:
        self._fresh = environment.fork()
        """The environment as it was loaded: what every further episode begins from."""
        self._episode = Played(environment)
        self._episodes: dict[str, Played] = {}
        self._enveloped: bool | None = None
        self._structured = False
        self._rest: list[bytes] = []
        """What has come of a line that is not whole."""
        self._n_rest = 0
        self._skipping = False
        agent: dict[str, Handler] = {
            "initialize": self._initialize,
            "server/discover": self._discover,
            "ping": lambda played, params: {},
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
        }
        self._methods = {**agent, **(HANDLERS | {"traceroom/supply": self._supply} if control else {})}

    def begin(
        self, task_id: str | Task | None, seed: int = 0, at: str | None = None, conditions: Sequence[str] = ()
    ) -> Observation:
        """Begin the episode without a name; KeyError or ValueError where that cannot be."""
        return self._episode.begin(task_id, seed, at, conditions)

    def serve(self, source: BufferedIOBase, sink: BinaryIO) -> None:
        """Answer line after line until `source` ends."""
        data = source.read1(CHUNK)
        while data:
            self._give(sink, self.take(data))
            data = source.read1(CHUNK)
        self._give(sink, self.take(b"\n"))

    def _give(self, sink: BinaryIO, replies: bytes) -> None:
        if replies:
            sink.write(replies)
            sink.flush()

    def take(self, data: bytes) -> bytes:
        """Replies to the lines that are whole with these bytes; what comes after the last of them waits for more."""
        *ends, rest = data.split(b"\n")
        replies = []
        for end in ends:
            replies.append(self._line(end))
            self._rest, self._n_rest, self._skipping = [], 0, False
        self._rest.append(rest)
        self._n_rest += len(rest)
        if self._n_rest >= MAX_LINE and not self._skipping:
            replies.append(self._line(b""))
            self._skipping = True
        if self._skipping:
            self._rest, self._n_rest = [], 0
        return b"".join(replies)

    def _line(self, end: bytes) -> bytes:
        """Reply to the line that has this end; one that is too long is answered once, and skipped."""
        if self._skipping:
            return b""
        if self._n_rest + len(end) >= MAX_LINE:
            return written(_error(None, INVALID_REQUEST, f"a line is longer than {MAX_LINE} bytes"))
        reply = self.answer(b"".join((*self._rest, end)))
        return b"" if reply is None else written(reply)

    def answer(self, line: bytes) -> Any:
        """Reply to one line: an object, a list of them for a batch, or None where nothing is to be said."""
        if not line.strip():
            return None
        try:
            message = _DECODER.decode(line.decode())
        except (ValueError, RecursionError):
            return _error(None, PARSE_ERROR, "the line is not JSON")
        if isinstance(message, list):
            if not message:
                return _error(None, INVALID_REQUEST, "an empty batch")
            replies = [reply for reply in map(self._answer, message) if reply is not None]
            return replies or None
        return self._answer(message)

    def _answer(self, message: Any) -> dict[str, Any] | None:
        if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
            return _error(None, INVALID_REQUEST, 'not a JSON-RPC 2.0 object ("jsonrpc": "2.0" is missing)')
        identity = message.get("id")
        if "method" not in message and ("result" in message or "error" in message):
            return None  # an answer to something that we never ask
        if "id" in message and (isinstance(identity, bool) or not isinstance(identity, str | int | float)):
            return _error(None, INVALID_REQUEST, "the id is neither a string nor a number")
        method, params = message.get("method"), message.get("params", {})
        if not isinstance(method, str):
            return _error(identity, INVALID_REQUEST, "the method is not a string")
        if "id" not in message:
            return None  # a notification is never answered, not even a wrong one
        try:
            if not isinstance(params, dict):
                raise Refused(INVALID_PARAMS, "params is not an object")
            return {"jsonrpc": "2.0", "id": identity, "result": self._dispatch(method, params)}
        except Refused as refused:
            return _error(identity, refused.code, str(refused), refused.data)
        except (KeyError, ValueError, RecursionError) as error:  # the environment's own way to say that it cannot be
            return _error(identity, INVALID_PARAMS, str(error.args[0] if error.args else error))
        except OSError as error:  # what is bound to a tool is gone
            return _error(identity, INTERNAL_ERROR, f"what is bound to a tool does not answer ({error})")

    def _dispatch(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        handler = self._methods.get(method)
        if handler is None:
            raise Refused(METHOD_NOT_FOUND, f"no method {method!r}; there are: {', '.join(sorted(self._methods))}")
        meta = params.get("_meta")
        meta = meta if isinstance(meta, dict) else {}
        version, name = meta.get(_VERSION_KEY), meta.get(EPISODE_KEY)
        played = self._episode if name is None else self._named(name, method)
        if method.startswith("traceroom/"):
            result = handler(played, params)
            if name is not None and method == RESET:
                self._episodes[name] = played
            elif name is not None and method == CLOSE:
                del self._episodes[name]
            return result
        if self._enveloped is None:
            self._enveloped = version is not None and method != "initialize"
            self._structured = self._enveloped
        if not self._enveloped:
            if version is not None and method != "initialize":
                raise Refused(INVALID_REQUEST, "this connection began without the envelope of newer revisions")
            return handler(played, params)
        if method == "initialize" or version not in ENVELOPE_VERSIONS:
            asked = params.get("protocolVersion") if method == "initialize" else version
            raise Refused(
                UNSUPPORTED_VERSION,
                f"this connection speaks {', '.join(ENVELOPE_VERSIONS)}, not {asked!r}",
                {"supported": list(ENVELOPE_VERSIONS), "requested": str(asked)},
            )
        result = handler(played, params)
        return {**result, "resultType": "complete", "_meta": {**result.get("_meta", {}), _SERVER_KEY: _SERVER}}

    def _named(self, name: Any, method: str) -> Played:
        """The episode of that name, a fresh one where it is to begin."""
        played = self._episodes.get(name) if isinstance(name, str) else None
        if played is None and method == RESET and isinstance(name, str):
            return Played(self._fresh.fork())
        if played is None:
            raise Refused(INVALID_PARAMS, f"no episode {name!r} here; {RESET} begins one")
        return played

    def _initialize(self, played: Played, params: dict[str, Any]) -> dict[str, Any]:
        asked = params.get("protocolVersion")
        if not isinstance(asked, str):
            raise Refused(INVALID_PARAMS, "initialize needs protocolVersion")
        version = asked if asked in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
        self._structured = version >= STRUCTURED_SINCE
        return {"protocolVersion": version, "capabilities": _CAPABILITIES, "serverInfo": _SERVER}

    def _discover(self, played: Played, params: dict[str, Any]) -> dict[str, Any]:
        if not self._enveloped:
            raise Refused(INVALID_PARAMS, f"server/discover needs params._meta[{_VERSION_KEY!r}]")
        return {"supportedVersions": list(ENVELOPE_VERSIONS), "capabilities": _CAPABILITIES, **_NEVER_CACHE}

    def _list_tools(self, played: Played, params: dict[str, Any]) -> dict[str, Any]:
        return {"tools": list(played.tools.values()), **(_NEVER_CACHE if self._enveloped else {})}

    def _call_tool(self, played: Played, params: dict[str, Any]) -> dict[str, Any]:
        name, arguments = params.get("name"), params.get("arguments")
        if not isinstance(name, str) or name not in played.tools:
            raise Refused(INVALID_PARAMS, f"no tool {name!r}; there are: {', '.join(played.tools)}")
        if not isinstance(arguments, dict | None):
            raise Refused(INVALID_PARAMS, "arguments is not an object")
        room = played.room
        if room.ended is not None:
            return _text(f"The episode has ended ({room.ended}).", True, {"ended": room.ended})
        return self._answered(room, room.call(name, arguments or {}))

    def _answered(self, room: Environment, result: Result) -> dict[str, Any]:
        took = room.journal[-1].get("latency_ms")
        marks = {"tier": result.tier, "ended": room.ended, **({} if took is None else {"latency_ms": took})}
        shown = _text(result.content, result.is_error, marks)
        if self._structured and result.content[:1] == "{":
            with contextlib.suppress(ValueError, RecursionError):
                shown["structuredContent"] = _DECODER.decode(result.content)
        return shown

    def _supply(self, played: Played, params: dict[str, Any]) -> dict[str, Any]:
        result = played.room.supply(params["reply"]) if isinstance(params.get("reply"), str) else None
        if result is None:
            raise Refused(INVALID_PARAMS, "supply takes reply: a model's answer to the prompt of the last call")
        return self._answered(played.room, result)


def written(reply: Any) -> bytes:
    """A reply as it goes over the stream: one line."""
    try:
        text = _ENCODER.encode(reply)
    except RecursionError:
        identity = reply.get("id") if isinstance(reply, dict) else None
        text = json.dumps(_error(identity, INTERNAL_ERROR, "the answer is nested too deep to be written"))
    return text.encode("ascii") + b"\n"


def _text(content: str, is_error: bool, meta: dict[str, Any]) -> dict[str, Any]:
    marks = {f"traceroom/{name}": value for name, value in meta.items()}
    return {"content": [{"type": "text", "text": content}], "isError": is_error, "_meta": marks}


def _error(identity: Any, code: int, message: str, data: Any = None) -> dict[str, Any]:
    error = {"code": code, "message": message, **({} if data is None else {"data": data})}
    return {"jsonrpc": "2.0", "id": identity, "error": error}
