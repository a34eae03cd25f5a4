"""Bind the real tool behind a tool's name: a Python function, an HTTP service or an MCP server.

In: a source `KIND:WHAT`, or a callable that takes an `Ask`. Out: a binding: a callable that takes an `Ask` and gives a `Reply`,
text, or None where it does not know. Kinds are `python`, `http`, `mcp`, and the entry points of the group `traceroom.bindings`:
each a function from WHAT to a binding. What a kind needs is imported when it is bound, so an environment without it starts
sooner. A binding's answer has the tier `bound`. It is not from the log: whether two rollouts are the same is up to the binding,
and the grader, who replays a journal, calls it again.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .admission import well_formed

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

    from .mcp_client import McpClient

GROUP = "traceroom.bindings"
MOST_BYTES = 1 << 24
"""Of the answer of a service."""
TIMEOUT_S = 30.0


class Ask(NamedTuple):
    """A call, and what the binding may know of the episode."""

    tool: str
    arguments: dict[str, Any]
    look: Callable[[str, str], Any]
    """(class, key) -> the entity as the episode has it now, as JSON value not to be changed, or None."""
    write_calls: tuple[tuple[str, str], ...]
    """(tool, canonical arguments) of what was done in the episode."""
    instant: str | None
    """ISO instant of the world, None where it has no clock."""


class Reply(NamedTuple):
    """What the real tool answers."""

    content: str
    is_error: bool = False
    documents: tuple[tuple[tuple[str, str], str], ...] = ()
    """((class, key), JSON text) of entities that the call changed, where they are known."""


Binding = Callable[[Ask], "Reply | str | None"]


class FirstBinding:
    """A binding that every call asks, those on record too. The environment's own answer stays where the binding gives the same:
    it tells what the call changed."""

    def __init__(self, source: str | Binding) -> None:
        self._binding = binding(source)

    def __call__(self, ask: Ask) -> Reply | str | None:
        return self._binding(ask)


def first_bound(bound: Mapping[str, Binding]) -> frozenset[str]:
    """Return the tools whose binding every call asks."""
    return frozenset(tool for tool, source in bound.items() if isinstance(source, FirstBinding))


def reply_of(answer: Reply | str | None) -> Reply | None:
    """Return what a binding gave as a reply with well-formed text."""
    reply = Reply(answer) if isinstance(answer, str) else answer
    return reply and reply._replace(content=well_formed(reply.content))


def binding(source: str | Binding) -> Binding:
    """Return the binding that a source names; ValueError if its kind is not known."""
    if callable(source):
        return source
    kind, _, what = source.partition(":")
    own: dict[str, Callable[[str], Binding]] = {"http": http, "mcp": mcp, "python": python}
    if kind in own:
        return own[kind](what)
    if kind not in kinds():
        raise ValueError(f"no binding of the kind {kind!r}; there are: {', '.join(kinds())}")
    made: Binding = next(point for point in _points() if point.name == kind).load()(what)
    return made


def kinds() -> tuple[str, ...]:
    """Return the kinds of sources, those of installed packages included."""
    return tuple(sorted({"http", "mcp", "python", *(point.name for point in _points())}))


def _points() -> EntryPoints:
    from importlib.metadata import entry_points

    return entry_points(group=GROUP)


def python(what: str) -> Binding:
    """`module:function` or `file.py:function`, called with the arguments by name. Text is answered as it is, other values as
    JSON; a ValueError or LookupError is the tool's failure, and so are arguments that it does not take."""
    path, _, name = what.rpartition(":")
    if path.endswith(".py"):
        spec = importlib.util.spec_from_file_location(Path(path).stem, path)
        if spec is None or spec.loader is None:
            raise ImportError(f"{path} is no Python file")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    else:
        module = importlib.import_module(path)
    function = getattr(module, name)
    signature = inspect.signature(function)

    def call(ask: Ask) -> Reply:
        try:
            given = signature.bind(**ask.arguments)
        except TypeError as error:
            return Reply(str(error), True)
        try:
            value = function(*given.args, **given.kwargs)
        except (ValueError, LookupError) as error:
            return Reply(str(error.args[0] if error.args else error), True)
        return Reply(value if isinstance(value, str) else json.dumps(value))

    return call


def http(what: str) -> Binding:
    """Bind an address that takes POST {"tool", "arguments"} and answers with the content; a status from 400 on is a failure.
    OSError where it cannot be reached, or answers more than `MOST_BYTES`."""
    import urllib.error
    import urllib.request

    def call(ask: Ask) -> Reply:
        body = json.dumps({"tool": ask.tool, "arguments": ask.arguments}).encode()
        request = urllib.request.Request(what, body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
                return Reply(_text(answer))
        except urllib.error.HTTPError as refused:
            return Reply(_text(refused), True)

    return call


def _text(answer: Any) -> str:
    """Return an answer's content; OSError if there is too much of it."""
    data: bytes = answer.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise OSError(f"the service answers more than {MOST_BYTES} bytes")
    return data.decode("utf-8", "replace")


def mcp(what: str) -> Binding:
    """Bind a tool of the same name on an MCP server: its address (streamable HTTP), or the command that starts it (stdio).
    OSError where the server is gone or refuses."""
    from .mcp_client import connect

    connection: list[McpClient] = []

    def call(ask: Ask) -> Reply:
        if not connection:
            connection.append(connect(what, TIMEOUT_S))
        result = connection[0].request("tools/call", {"name": ask.tool, "arguments": ask.arguments})
        parts = result.get("content", [])
        return Reply("".join(part.get("text", "") for part in parts), bool(result.get("isError")))

    return call
