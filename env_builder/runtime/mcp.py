"""The server's side of the Model Context Protocol: newline-delimited JSON-RPC 2.0, standard library only.

What goes in: lines of JSON on a binary stream. What comes out: one line of JSON per request, nothing per notification.
Both eras of the protocol are supported, as the client's first request decides: the `initialize` handshake (2024-11-05 to
2025-11-25) and the envelope that every request carries (`server/discover`, 2026-07-28). A server over HTTP answers
`initialize` itself, with `handshake`, and forwards the rest. Specification: https://modelcontextprotocol.io/specification.

The agent's side is `tools/list` and `tools/call`, and what it gets of its task (`briefing.py`): `prompts/*`, `resources/*`, and
with `talk` tools to speak to the user and to end. With `control=True` there is a second side for the host that runs the
episodes, under the prefix `traceroom/` (docs/containers.md). A client that can call these can end or read any episode: a host
between an agent and the environment forwards `tools/*` alone, and keeps journal and user to itself. What would tell an agent
which way the log went, the tier of an answer, is in the journal, and in a call's result only if the host asks for it at reset.

Sees: one line at a time, up to `MAX_LINE` bytes. Does not see: who sends it; any client of the stream controls its episodes.
"""

from __future__ import annotations

import base64
import contextlib
import json
import time
import traceback
from collections.abc import Callable, Sequence
from io import BufferedIOBase
from typing import Any, BinaryIO

from . import briefing, pacing
from .admission import FAILURES, well_formed
from .canonical import digest
from .environment import SAVE_FILE, Environment
from .files import task_of
from .records import Observation, Result, Task

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Protocol revisions that begin with `initialize`, oldest to newest."""
STRUCTURED_SINCE = "2025-06-18"
"""The first revision whose results may also be structured."""
ENVELOPE_VERSIONS = ("2026-07-28",)
"""Protocol revisions in which every request names its version in `_meta`."""
MAX_LINE = 16 * 1024 * 1024
"""Bytes of the longest line that is read; a longer one is answered with an error and skipped."""
CHUNK = 64 * 1024
"""Bytes that are read at a time; their requests are answered together."""

PARSE_ERROR, INVALID_REQUEST, METHOD_NOT_FOUND, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32601, -32602, -32603
UNSUPPORTED_VERSION, RESOURCE_NOT_FOUND = -32022, -32002
RESET, CLOSE = "traceroom/reset", "traceroom/close"
EPISODE_KEY = "traceroom/episode"
"""Names in a request's `_meta` the episode that it is about."""
_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_SERVER_KEY = "io.modelcontextprotocol/serverInfo"
_SERVER = {"name": "traceroom", "version": "1"}
_CAPABILITIES = {"tools": {"listChanged": False}, "prompts": {"listChanged": False}, "resources": {"listChanged": False}}
_NEVER_CACHE = {"ttlMs": 0, "cacheScope": "private"}


def _reject_constant(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_reject_constant)
_ENCODER = json.JSONEncoder(ensure_ascii=True, separators=(",", ":"))


class RequestError(Exception):
    """A request that is answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code = code
        self.data = data


class ServedEpisode:
    """An episode that a server holds."""

    __slots__ = ("conversation", "environment", "messages", "shows_tiers", "talk", "tools")

    def __init__(self, environment: Environment, talk: bool | None = False) -> None:
        self.environment = environment
        self.tools: dict[str, dict[str, Any]] = {}
        """Name -> descriptor of the tools that the agent sees, none before the episode has begun."""
        self.talk = talk
        """Are there tools to speak and to end? None: where somebody speaks to the agent."""
        self.shows_tiers = False
        """Do the results of calls have the answers' tiers? Only a host that makes the calls itself asks for them."""
        self.messages: list[dict[str, str]] = []
        """What the episode begins with."""
        self.conversation: list[dict[str, str]] = []
        """What agent and user have said since, as messages."""

    def begin(self, task_id: str | Task | None, seed: int, at: str | None, perturbations: Sequence[str]) -> Observation:
        """Reset to a task, or with None to the environment without one; KeyError or ValueError if that is not possible."""
        reset = self.environment.reset
        observation = reset(None, at=at) if task_id is None else reset(task_id, seed=seed, perturbations=perturbations)
        self.tools = {tool["name"]: tool for tool in observation.tools}
        self.messages, self.conversation = observation.messages, []
        return observation

    def talk_tools(self) -> dict[str, dict[str, Any]]:
        """Name -> descriptor of the tools to speak and to end, in this order; none where they are off."""
        wanted = briefing.has_user(self.messages) if self.talk is None else self.talk
        return briefing.talk_tools(self.tools) if wanted else {}

    def say(self, text: str) -> str | None:
        """Say something to the user; return the reply, None if the user waits, has nothing more to say, or has left."""
        reply = self.environment.say(text)
        self.conversation.append({"role": "assistant", "content": text})
        self.conversation += [] if reply is None else [{"role": "user", "content": reply}]
        return reply


Handler = Callable[[ServedEpisode, dict[str, Any]], dict[str, Any]]


class LineReader:
    """Splits a stream of bytes into lines."""

    def __init__(self) -> None:
        self._rest: list[bytes] = []
        self._n_rest = 0
        self._skipping = False

    def split(self, data: bytes) -> list[bytes | None]:
        """Return the lines that are complete now and not blank; None in the place of one that is longer than `MAX_LINE`."""
        *ends, rest = data.split(b"\n")
        lines: list[bytes | None] = []
        for end in ends:
            if not self._skipping:
                line = b"".join((*self._rest, end)) if self._rest else end
                if line.strip():
                    lines.append(line if len(line) < MAX_LINE else None)
            self._rest, self._n_rest, self._skipping = [], 0, False
        if rest and not self._skipping:
            self._rest.append(rest)
            self._n_rest += len(rest)
            if self._n_rest >= MAX_LINE:
                lines.append(None)
                self._rest, self._n_rest, self._skipping = [], 0, True
        return lines


class McpServer:
    """Answers the requests of one client about one environment."""

    def __init__(self, environment: Environment, control: bool = False, talk: bool | None = False) -> None:
        """`talk`: may the agent speak to the user and end the episode by tools? None: where somebody speaks to it."""
        self._initial = environment.fork()
        """The environment as it was loaded: every named episode begins from it."""
        self._episode = ServedEpisode(environment, talk)
        self._episodes: dict[str, ServedEpisode] = {}
        self._enveloped: bool | None = None
        self._structured = False
        self._methods: dict[str, Handler] = {
            "initialize": self._initialize,
            "server/discover": self._discover,
            "ping": lambda episode, params: {},
            "tools/list": self._list_tools,
            "tools/call": self._call_tool,
            "prompts/list": lambda episode, params: {"prompts": briefing.listed_prompts(episode.messages)},
            "prompts/get": _get_prompt,
            "resources/list": lambda episode, params: {"resources": briefing.listed_resources(episode.messages)},
            "resources/templates/list": lambda episode, params: {"resourceTemplates": []},
            "resources/read": _read_resource,
        }
        self._is_even = not control
        """Do the replies to a stream's lines leave at even times? Not a host's, which makes thousands of calls a second."""
        if control:
            self._methods |= _CONTROL | {"traceroom/supply": self._supply}

    def begin(
        self, task_id: str | Task | None, seed: int = 0, at: str | None = None, perturbations: Sequence[str] = ()
    ) -> Observation:
        """Begin the episode without a name; KeyError or ValueError if that is not possible."""
        return self._episode.begin(task_id, seed, at, perturbations)

    def serve(self, source: BufferedIOBase, sink: BinaryIO) -> None:
        """Answer line after line until `source` ends."""
        reader, data = LineReader(), b"\n"
        while data:
            data = source.read1(CHUNK)
            began, replies = time.perf_counter(), b""
            for line in reader.split(data or b"\n"):
                reply = self.reply(parse_line(line))
                if reply is not None:
                    replies += encode(reply)
            if replies:
                if self._is_even:
                    pacing.wait_until(pacing.due(began))
                sink.write(replies)
                sink.flush()

    def answer(self, line: bytes | None) -> Any:
        return self.reply(parse_line(line)) if line is None or line.strip() else None

    def reply(self, message: Any) -> Any:
        """Return the reply to a message: an object, a list for a batch, or None if there is none."""
        if isinstance(message, list) and message:
            return [reply for each in message if (reply := self.reply(each)) is not None] or None
        refusal = invalid_request(message)
        if refusal is not None or "id" not in message:  # a notification is never answered, not even a wrong one
            return refusal
        identity, method, params = message["id"], message.get("method"), message.get("params", {})
        if method is None:
            return None  # the reply to a request that this server never makes
        try:
            handler = self._methods.get(method)
            if handler is None:
                raise RequestError(METHOD_NOT_FOUND, f"no method {method!r}; there are: {', '.join(sorted(self._methods))}")
            if not isinstance(params, dict):
                raise RequestError(INVALID_PARAMS, "params is not an object")
            meta = params.get("_meta")
            meta = meta if isinstance(meta, dict) else {}
            name = meta.get(EPISODE_KEY)
            episode = self._episode if name is None else self._named(name, method)
            is_control = method.startswith("traceroom/")
            if not is_control:
                self._check_version(method, params, meta.get(_VERSION_KEY))
            result = handler(episode, params)
        except RequestError as error:
            return error_reply(identity, error.code, str(error), error.data)
        except (LookupError, ValueError, RecursionError) as error:  # the environment rejects the request
            return error_reply(identity, INVALID_PARAMS, str(error.args[0] if error.args else error))
        except OSError as error:
            return error_reply(identity, INTERNAL_ERROR, f"what is bound to a tool does not answer ({error})")
        except FAILURES as error:  # a mistake in answering: this process has other episodes too
            traceback.print_exc()
            return error_reply(identity, INTERNAL_ERROR, f"the environment failed on this request ({type(error).__name__})")
        if name is not None and method == RESET:
            self._episodes[name] = episode
        elif name is not None and method == CLOSE:
            del self._episodes[name]
        if self._enveloped and not is_control:
            result = {**result, "resultType": "complete", "_meta": {**result.get("_meta", {}), _SERVER_KEY: _SERVER}}
        return {"jsonrpc": "2.0", "id": identity, "result": result}

    def _check_version(self, method: str, params: dict[str, Any], version: Any) -> None:
        """Let the first request decide the era, and reject requests of the other one."""
        if self._enveloped is None:
            self._enveloped = self._structured = version is not None and method != "initialize"
        if not self._enveloped and version is not None and method != "initialize":
            raise RequestError(INVALID_REQUEST, "this connection began without the envelope of newer revisions")
        if self._enveloped and (method == "initialize" or version not in ENVELOPE_VERSIONS):
            requested = params.get("protocolVersion") if method == "initialize" else version
            raise RequestError(
                UNSUPPORTED_VERSION,
                f"this connection supports {', '.join(ENVELOPE_VERSIONS)}, not {requested!r}",
                {"supported": list(ENVELOPE_VERSIONS), "requested": str(requested)},
            )

    def _named(self, name: Any, method: str) -> ServedEpisode:
        """Return the episode of that name, a new one for a reset."""
        episode = self._episodes.get(name) if isinstance(name, str) else None
        if episode is None and method == RESET and isinstance(name, str):
            return ServedEpisode(self._initial.fork())
        if episode is None:
            raise RequestError(INVALID_PARAMS, f"no episode {name!r} here; {RESET} begins one")
        return episode

    def _initialize(self, episode: ServedEpisode, params: dict[str, Any]) -> dict[str, Any]:
        result = handshake(params, instructions=briefing.instructions(episode.messages, episode.talk_tools()))
        self._structured = result["protocolVersion"] >= STRUCTURED_SINCE
        return result

    def _discover(self, episode: ServedEpisode, params: dict[str, Any]) -> dict[str, Any]:
        if not self._enveloped:
            raise RequestError(INVALID_PARAMS, f"server/discover needs params._meta[{_VERSION_KEY!r}]")
        text = briefing.instructions(episode.messages, episode.talk_tools())
        return {"supportedVersions": list(ENVELOPE_VERSIONS), "capabilities": _CAPABILITIES, **_NEVER_CACHE,
                **({"instructions": text} if text else {})}

    def _list_tools(self, episode: ServedEpisode, params: dict[str, Any]) -> dict[str, Any]:
        tools = [*episode.tools.values(), *episode.talk_tools().values()]
        return {"tools": tools, **(_NEVER_CACHE if self._enveloped else {})}

    def _call_tool(self, episode: ServedEpisode, params: dict[str, Any]) -> dict[str, Any]:
        name, arguments = params.get("name"), params.get("arguments")
        own = isinstance(name, str) and name in episode.tools
        talk = [] if own else list(episode.talk_tools())
        if not own and name not in talk:
            raise RequestError(INVALID_PARAMS, f"no tool {name!r}; there are: {', '.join((*episode.tools, *talk))}")
        if not isinstance(arguments, dict | None):
            raise RequestError(INVALID_PARAMS, "arguments is not an object")
        environment = episode.environment
        if environment.ended is not None:
            return _text(f"The episode has ended ({environment.ended}).", True, {"traceroom/ended": environment.ended})
        if own:
            return self._call_result(episode, environment.call(str(name), arguments or {}))
        return _spoken(episode, (arguments or {}).get("text")) if name == talk[0] else _ended(episode)

    def _call_result(self, episode: ServedEpisode, result: Result) -> dict[str, Any]:
        meta: dict[str, Any] = {"traceroom/tier": result.tier} if episode.shows_tiers else {}
        meta["traceroom/ended"] = episode.environment.ended
        latency = episode.environment.journal[-1].get("latency_ms")
        if latency is not None:
            meta["traceroom/latency_ms"] = latency
        shown = _text(result.content, result.is_error, meta)
        return add_structure(shown) if self._structured else shown

    def _supply(self, episode: ServedEpisode, params: dict[str, Any]) -> dict[str, Any]:
        result = episode.environment.supply(params["reply"]) if isinstance(params.get("reply"), str) else None
        if result is None:
            raise RequestError(INVALID_PARAMS, "supply takes reply: a model's answer to the prompt of the last call")
        return self._call_result(episode, result)


def parse_line(line: bytes | None) -> Any:
    """Parse a line (None: it is too long); a RequestError is returned in the place of a message, to be answered."""
    if line is None:
        return RequestError(INVALID_REQUEST, f"a line is longer than {MAX_LINE} bytes")
    try:
        message = _DECODER.decode(line.decode())
        return well_formed(message) if b"\\u" in line else message  # half a character can only be written as an escape
    except (ValueError, RecursionError):
        return RequestError(PARSE_ERROR, "the line is not JSON")


def invalid_request(message: Any) -> dict[str, Any] | None:
    """Return the error reply to a message that is no JSON-RPC 2.0 request, notification or reply; None if it is one."""
    if isinstance(message, RequestError):
        return error_reply(None, message.code, str(message))
    if message == []:
        return error_reply(None, INVALID_REQUEST, "an empty batch")
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return error_reply(None, INVALID_REQUEST, 'not a JSON-RPC 2.0 object ("jsonrpc": "2.0" is missing)')
    identity = message.get("id")
    if "method" not in message and ("result" in message or "error" in message):
        return None
    if "id" in message and (isinstance(identity, bool) or not isinstance(identity, str | int | float)):
        return error_reply(None, INVALID_REQUEST, "the id is neither a string nor a number")
    if not isinstance(message.get("method"), str):
        return error_reply(identity, INVALID_REQUEST, "the method is not a string")
    return None


def handshake(params: dict[str, Any], name: str = _SERVER["name"], instructions: str = "") -> dict[str, Any]:
    """Return the result of `initialize`: the client's revision, or the newest one with a handshake."""
    requested = params.get("protocolVersion")
    if not isinstance(requested, str):
        raise RequestError(INVALID_PARAMS, "initialize needs protocolVersion")
    version = requested if requested in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1]
    return {"protocolVersion": version, "capabilities": _CAPABILITIES, "serverInfo": {**_SERVER, "name": name},
            **({"instructions": instructions} if instructions else {})}


def add_structure(result: dict[str, Any]) -> dict[str, Any]:
    """Add `structuredContent` to the result of a call whose text is a JSON object."""
    text: str = result["content"][0]["text"]
    if text[:1] == "{":
        with contextlib.suppress(ValueError, RecursionError):
            result["structuredContent"] = _DECODER.decode(text)
    return result


def encode(reply: Any) -> bytes:
    """Return a reply as one line of the stream."""
    try:
        text = _ENCODER.encode(reply)
    except RecursionError:
        identity = reply.get("id") if isinstance(reply, dict) else None
        text = json.dumps(error_reply(identity, INTERNAL_ERROR, "the answer is nested too deep to be written"))
    return text.encode("ascii") + b"\n"


def error_reply(identity: Any, code: int, message: str, data: Any = None) -> dict[str, Any]:
    """Return a JSON-RPC error."""
    error = {"code": code, "message": message, **({} if data is None else {"data": data})}
    return {"jsonrpc": "2.0", "id": identity, "error": error}


def _text(content: str, is_error: bool, meta: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": content}], "isError": is_error, "_meta": meta}


def _spoken(episode: ServedEpisode, text: Any) -> dict[str, Any]:
    """Return the result of the tool to speak: the user's reply."""
    if not isinstance(text, str):
        raise RequestError(INVALID_PARAMS, f"{briefing.SAY} takes text")
    reply = episode.say(text)
    ended, has_left = episode.environment.ended, episode.environment.user_left
    shown = reply if reply is not None else briefing.DEPARTED if has_left else briefing.SILENCE
    return _text(shown, False, {"traceroom/ended": ended, "traceroom/user_left": has_left})


def _ended(episode: ServedEpisode) -> dict[str, Any]:
    """Return the result of the tool to end the episode."""
    episode.environment.finish()
    return _text("The task has ended.", False, {"traceroom/ended": episode.environment.ended})


def _get_prompt(episode: ServedEpisode, params: dict[str, Any]) -> dict[str, Any]:
    result = briefing.prompt(params.get("name"), episode.messages, episode.talk_tools())
    if result is None:
        names = ", ".join(each["name"] for each in briefing.listed_prompts(episode.messages)) or "none"
        raise RequestError(INVALID_PARAMS, f"no prompt {params.get('name')!r}; there are: {names}")
    return result


def _read_resource(episode: ServedEpisode, params: dict[str, Any]) -> dict[str, Any]:
    result = briefing.resource(params.get("uri"), episode.messages, episode.conversation, episode.talk_tools())
    if result is None:
        names = ", ".join(each["uri"] for each in briefing.listed_resources(episode.messages)) or "none"
        raise RequestError(RESOURCE_NOT_FOUND, f"no resource {params.get('uri')!r}; there are: {names}")
    return result


def _reset(episode: ServedEpisode, params: dict[str, Any]) -> dict[str, Any]:
    task_id, row, seed, at = params.get("task_id"), params.get("task"), params.get("seed", 0), params.get("at")
    names, talk, tiers = params.get("perturbations", []), params.get("talk", False), params.get("tiers", False)
    texts = isinstance(names, list) and all(isinstance(name, str) for name in names)
    if not (isinstance(task_id, str | None) and isinstance(row, dict | None) and isinstance(seed, int)
            and isinstance(at, str | None) and texts and isinstance(talk, bool | None) and isinstance(tiers, bool)):
        raise RequestError(INVALID_PARAMS, "reset takes task_id (text or null), task (a row of tasks.jsonl or null), seed "
                                           "(whole number), at (text or null), perturbations (a list of texts), talk (true, "
                                           "false or null), tiers (true or false)")
    try:
        task = task_id if row is None else task_of(row)
    except (KeyError, TypeError, AttributeError) as error:
        raise RequestError(INVALID_PARAMS, f"the task is not a row of tasks.jsonl ({error})") from error
    episode.talk, episode.shows_tiers = talk, tiers
    observation = episode.begin(task, seed, at, names)
    limits = observation.limits
    shown = {name: value for name, value in limits._asdict().items() if value is not None} if limits else None
    return {"messages": observation.messages, "tools": observation.tools, "limits": shown,
            "instructions": briefing.instructions(observation.messages, episode.talk_tools())}


def _say(episode: ServedEpisode, params: dict[str, Any]) -> dict[str, Any]:
    """Reply null if the user waits, has nothing more to say, or has left."""
    if not isinstance(params.get("text"), str):
        raise RequestError(INVALID_PARAMS, "say takes text")
    reply = episode.say(params["text"])
    return {"reply": reply, "ended": episode.environment.ended, "user_left": episode.environment.user_left}


def _learn(episode: ServedEpisode, params: dict[str, Any]) -> dict[str, Any]:
    name, arguments, content = params.get("name"), params.get("arguments"), params.get("content")
    if not (isinstance(name, str) and isinstance(arguments, dict) and isinstance(content, str)):
        raise RequestError(INVALID_PARAMS, "learn takes name, arguments (an object) and content (text)")
    episode.environment.learn(name, arguments, content)
    return {}


def _journal(episode: ServedEpisode, params: dict[str, Any]) -> dict[str, Any]:
    return {"journal": list(episode.environment.journal), "ended": episode.environment.ended}


def _finish(episode: ServedEpisode, params: dict[str, Any]) -> dict[str, Any]:
    episode.environment.finish()
    return {"ended": episode.environment.ended}


def _files(episode: ServedEpisode, params: dict[str, Any]) -> dict[str, Any]:
    """List the files of the agent's working folder, and the folders that may hold some."""
    return {"folders": list(episode.environment.folders),
            "files": [{"path": path, "size": len(content), "sha256": digest(content)}
                      for path, content in sorted(episode.environment.folder().items())]}


def _file(episode: ServedEpisode, params: dict[str, Any]) -> dict[str, Any]:
    content = episode.environment.folder().get(str(params.get("path")))
    if content is None:
        raise RequestError(INVALID_PARAMS, f"no file {params.get('path')!r}")
    return {"content": base64.b64encode(content).decode()}


def _save(episode: ServedEpisode, params: dict[str, Any]) -> dict[str, Any]:
    """Save a file of the working folder, as an act of the agent."""
    path, content = params.get("path"), params.get("content")
    if not isinstance(path, str) or not isinstance(content, str):
        raise RequestError(INVALID_PARAMS, "save takes path and content (base64)")
    environment = episode.environment
    if environment.ended is not None:
        raise RequestError(INVALID_PARAMS, f"the episode has ended ({environment.ended})")
    result = environment.call(SAVE_FILE, {"path": path, "content": content})
    return _text(result.content, result.is_error, {"traceroom/ended": environment.ended})


_CONTROL: dict[str, Handler] = {
    "traceroom/files": _files, "traceroom/file": _file, "traceroom/save": _save,
    RESET: _reset, CLOSE: _journal, "traceroom/journal": _journal, "traceroom/say": _say, "traceroom/learn": _learn,
    "traceroom/finish": _finish,
    "traceroom/state": lambda episode, params: {
        "ended": episode.environment.ended, "state_hash": episode.environment.state_hash()},
    "traceroom/prompt": lambda episode, params: {"prompt": episode.environment.prompt()},
    "traceroom/tasks": lambda episode, params: {
        "tasks": [{"task_id": task.task_id, "split": task.split} for task in episode.environment.tasks]},
}
