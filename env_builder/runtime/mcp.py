"""The room speaks the Model Context Protocol over stdio: newline-delimited JSON-RPC 2.0, standard library only.

What goes in: lines of JSON on a binary stream. What comes out: one line of JSON per request, nothing per notification.
Both eras of the protocol are spoken, as the client's first request decides: the `initialize` handshake (2024-11-05 to
2025-11-25) and the envelope that every request carries (`server/discover`, 2026-07-28).
Specification: https://modelcontextprotocol.io/specification.

One process holds one episode at a time. The agent's side is `tools/list` and `tools/call`. With `control=True` there is
a second side for the host that runs the episode, under the prefix `traceroom/`: reset, say, learn, prompt, supply, finish,
state, journal, tasks. A host between an agent and the room forwards `tools/*` alone: journal and user are its own.

Sees: one line at a time, up to `MAX_LINE` bytes. Does not see: who sends it; whoever holds the stream holds the room.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, BinaryIO

from .environment import Environment
from .files import task_of
from .records import Observation, Result, Task

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Protocol revisions that begin with `initialize`, oldest to newest."""
ENVELOPE_VERSIONS = ("2026-07-28",)
"""Protocol revisions whose every request says its version in `_meta`."""
MAX_LINE = 16 * 1024 * 1024
"""Bytes of the longest line that is read; a longer one is answered with an error and skipped."""

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603
UNSUPPORTED_VERSION = -32022
_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_SERVER_KEY = "io.modelcontextprotocol/serverInfo"
_SERVER = {"name": "traceroom", "version": "1"}
_CAPABILITIES = {"tools": {"listChanged": False}}
_NEVER_CACHE = {"ttlMs": 0, "cacheScope": "private"}


class Refused(Exception):
    """A request that is answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class Server:
    """Answers the requests of one client about one environment."""

    def __init__(self, environment: Environment, control: bool = False) -> None:
        self._environment = environment
        self._tools: list[dict[str, Any]] = []
        self._enveloped: bool | None = None
        self._agent: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "initialize": self._initialize,
            "server/discover": self._discover,
            "ping": lambda params: {},
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
        }
        self._control: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            "traceroom/tasks": self._list_tasks,
            "traceroom/reset": self._reset,
            "traceroom/say": self._say,
            "traceroom/learn": self._learn,
            "traceroom/prompt": lambda params: {"prompt": environment.prompt()},
            "traceroom/supply": self._supply,
            "traceroom/finish": self._finish,
            "traceroom/state": lambda params: {"ended": environment.ended},
            "traceroom/journal": lambda params: {"journal": list(environment.journal), "ended": environment.ended},
        }
        self._methods = {**self._agent, **(self._control if control else {})}

    def begin(
        self, task_id: str | Task | None, seed: int = 0, at: str | None = None, conditions: Sequence[str] = ()
    ) -> Observation:
        """Reset to a task, or with None to the room without one; KeyError or ValueError where that cannot be."""
        room = self._environment
        observation = room.reset(None, at=at) if task_id is None else room.reset(task_id, seed=seed, conditions=conditions)
        self._tools = observation.tools
        return observation

    def serve(self, source: BinaryIO, sink: BinaryIO) -> None:
        """Answer line after line until `source` ends."""
        for line, whole in _lines(source):
            if not whole:
                reply: Any = _error(None, INVALID_REQUEST, f"a line is longer than {MAX_LINE} bytes")
            else:
                reply = self.answer(line)
            if reply is not None:
                sink.write(json.dumps(reply, ensure_ascii=True, separators=(",", ":")).encode("ascii") + b"\n")
                sink.flush()

    def answer(self, line: bytes) -> Any:
        """Reply to one line: an object, a list of them for a batch, or None where nothing is to be said."""
        if not line.strip():
            return None
        try:
            message = json.loads(line, parse_constant=_no_json)
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
        version = meta.get(_VERSION_KEY) if isinstance(meta, dict) else None
        if method.startswith("traceroom/"):
            return handler(params)
        if self._enveloped is None:
            self._enveloped = version is not None and method != "initialize"
        if not self._enveloped:
            if version is not None and method != "initialize":
                raise Refused(INVALID_REQUEST, "this connection began without the envelope of newer revisions")
            return handler(params)
        if method == "initialize" or version not in ENVELOPE_VERSIONS:
            asked = params.get("protocolVersion") if method == "initialize" else version
            raise Refused(
                UNSUPPORTED_VERSION,
                f"this connection speaks {', '.join(ENVELOPE_VERSIONS)}, not {asked!r}",
                {"supported": list(ENVELOPE_VERSIONS), "requested": str(asked)},
            )
        result = handler(params)
        return {**result, "resultType": "complete", "_meta": {**result.get("_meta", {}), _SERVER_KEY: _SERVER}}

    def _initialize(self, params: dict[str, Any]) -> dict[str, Any]:
        asked = params.get("protocolVersion")
        if not isinstance(asked, str):
            raise Refused(INVALID_PARAMS, "initialize needs protocolVersion")
        version = asked if asked in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
        return {"protocolVersion": version, "capabilities": _CAPABILITIES, "serverInfo": _SERVER}

    def _discover(self, params: dict[str, Any]) -> dict[str, Any]:
        if not self._enveloped:
            raise Refused(INVALID_PARAMS, f"server/discover needs params._meta[{_VERSION_KEY!r}]")
        return {"supportedVersions": list(ENVELOPE_VERSIONS), "capabilities": _CAPABILITIES, **_NEVER_CACHE}

    def _list_tools(self, params: dict[str, Any]) -> dict[str, Any]:
        return {"tools": self._tools, **(_NEVER_CACHE if self._enveloped else {})}

    def _call_tool(self, params: dict[str, Any]) -> dict[str, Any]:
        name, arguments = params.get("name"), params.get("arguments")
        known = [tool["name"] for tool in self._tools]
        if not isinstance(name, str) or name not in known:
            raise Refused(INVALID_PARAMS, f"no tool {name!r}; there are: {', '.join(known)}")
        if not isinstance(arguments, dict | None):
            raise Refused(INVALID_PARAMS, "arguments is not an object")
        room = self._environment
        if room.ended is not None:
            return _text(f"The episode has ended ({room.ended}).", True, {"ended": room.ended})
        return self._answered(room.call(name, arguments or {}))

    def _answered(self, result: Result) -> dict[str, Any]:
        room = self._environment
        took = room.journal[-1].get("latency_ms")
        marks = {"tier": result.tier, "ended": room.ended, **({} if took is None else {"latency_ms": took})}
        return _text(result.content, result.is_error, marks)

    def _list_tasks(self, params: dict[str, Any]) -> dict[str, Any]:
        return {"tasks": [{"task_id": task.task_id, "split": task.split} for task in self._environment.tasks]}

    def _reset(self, params: dict[str, Any]) -> dict[str, Any]:
        task_id, task, seed, at = params.get("task_id"), params.get("task"), params.get("seed", 0), params.get("at")
        on = params.get("conditions", [])
        texts = isinstance(on, list) and all(isinstance(name, str) for name in on)
        if not (isinstance(task_id, str | None) and isinstance(task, dict | None) and isinstance(seed, int)
                and isinstance(at, str | None) and texts):
            raise Refused(INVALID_PARAMS, "reset takes task_id (text or null), task (a row of tasks.jsonl or null), seed "
                                          "(whole number), at (text or null), conditions (a list of texts)")
        observation = self.begin(_task(task) if task else task_id, seed, at, on)
        limits = observation.limits
        shown = {name: value for name, value in asdict(limits).items() if value is not None} if limits else None
        return {"messages": observation.messages, "tools": observation.tools, "limits": shown}

    def _say(self, params: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(params.get("text"), str):
            raise Refused(INVALID_PARAMS, "say takes text")
        return {"reply": self._environment.say(params["text"]), "ended": self._environment.ended}

    def _learn(self, params: dict[str, Any]) -> dict[str, Any]:
        name, arguments, content = params.get("name"), params.get("arguments"), params.get("content")
        if not (isinstance(name, str) and isinstance(arguments, dict) and isinstance(content, str)):
            raise Refused(INVALID_PARAMS, "learn takes name, arguments (an object) and content (text)")
        self._environment.learn(name, arguments, content)
        return {}

    def _supply(self, params: dict[str, Any]) -> dict[str, Any]:
        result = self._environment.supply(params["reply"]) if isinstance(params.get("reply"), str) else None
        if result is None:
            raise Refused(INVALID_PARAMS, "supply takes reply: a model's answer to the prompt of the last call")
        return self._answered(result)

    def _finish(self, params: dict[str, Any]) -> dict[str, Any]:
        self._environment.finish()
        return {"ended": self._environment.ended}


def _task(row: dict[str, Any]) -> Task:
    try:
        return task_of(row)
    except (KeyError, TypeError, AttributeError) as error:
        raise Refused(INVALID_PARAMS, f"the task is no row of tasks.jsonl ({error})") from error


def _text(content: str, is_error: bool, meta: dict[str, Any]) -> dict[str, Any]:
    marks = {f"traceroom/{name}": value for name, value in meta.items()}
    return {"content": [{"type": "text", "text": content}], "isError": is_error, "_meta": marks}


def _error(identity: Any, code: int, message: str, data: Any = None) -> dict[str, Any]:
    error = {"code": code, "message": message, **({} if data is None else {"data": data})}
    return {"jsonrpc": "2.0", "id": identity, "error": error}


def _no_json(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _lines(source: BinaryIO) -> Iterator[tuple[bytes, bool]]:
    """Pairs (line, whole): a line longer than MAX_LINE comes once, cut, with whole=False; the rest of it is skipped."""
    while line := source.readline(MAX_LINE):
        if line.endswith(b"\n") or len(line) < MAX_LINE:
            yield line, True
            continue
        while (rest := source.readline(MAX_LINE)) and not rest.endswith(b"\n"):
            pass
        yield line[:0], False
