"""The real thing as a tool's behaviour: a Python function, an HTTP service or an MCP server that a user binds to a tool.

In: a source `KIND:WHAT`, or a callable that takes an `Ask`. Out: a binding: a callable that takes an `Ask` and gives a `Reply`,
text, or None where it does not know. Kinds are `python`, `http`, `mcp`, and the entry points of the group `traceroom.bindings`:
each a function from WHAT to a binding. What a kind needs is imported where it is bound: a room without starts sooner. What a
binding answers has the tier `bound`. It is no data of the log: whether two
rollouts are the same is up to it, and the grader, who replays a journal, asks it again.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

    from .mcp_client import Connection

GROUP = "traceroom.bindings"
TIMEOUT_S = 30.0


class Ask(NamedTuple):
    """A call, and what the binding may know of the episode."""

    tool: str
    arguments: dict[str, Any]
    look: Callable[[str, str], Any]
    """(class, key) -> the thing as the episode has it now, as JSON value not to be changed, or None."""
    acts: tuple[tuple[str, str], ...]
    """(tool, canonical arguments) of what was done in the episode."""
    instant: str | None
    """ISO instant of the world, None where it has no clock."""


class Reply(NamedTuple):
    """What the real thing answers."""

    content: str
    is_error: bool = False
    documents: tuple[tuple[tuple[str, str], str], ...] = ()
    """((class, key), JSON text) of things that the call changed, where they are known."""


Binding = Callable[[Ask], "Reply | str | None"]


def binding(source: str | Binding) -> Binding:
    """The binding that a source names; ValueError where its kind is not known."""
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
    """The kinds of sources that there are, those of installed packages among them."""
    return tuple(sorted({"http", "mcp", "python", *(point.name for point in _points())}))


def _points() -> EntryPoints:
    from importlib.metadata import entry_points

    return entry_points(group=GROUP)


def python(what: str) -> Binding:
    """`module:function` or `file.py:function`, called with the arguments by name. Text is answered as it is, other values as
    JSON; a ValueError or LookupError is the tool's failure, and so are arguments that it does not take."""
    module, _, name = what.rpartition(":")
    function = getattr(_file(module) if module.endswith(".py") else importlib.import_module(module), name)

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


def _file(path: str) -> ModuleType:
    """The module in a file of its own."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def http(what: str) -> Binding:
    """An address that takes POST {"tool", "arguments"} and answers with the content; a status from 400 on is a failure.
    OSError where it cannot be reached."""
    import urllib.error
    import urllib.request

    def call(ask: Ask) -> Reply:
        body = json.dumps({"tool": ask.tool, "arguments": ask.arguments}).encode()
        request = urllib.request.Request(what, body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
                return Reply(answer.read().decode())
        except urllib.error.HTTPError as refused:
            return Reply(refused.read().decode(), True)

    return call


def mcp(what: str) -> Binding:
    """A tool of the same name on an MCP server: its address (streamable HTTP), or the command that starts it (stdio).
    OSError where the server is gone or refuses."""
    from .mcp_client import connect

    connection: list[Connection] = []

    def call(ask: Ask) -> Reply:
        if not connection:
            connection.append(connect(what, TIMEOUT_S))
        result = connection[0].request("tools/call", {"name": ask.tool, "arguments": ask.arguments})
        parts = result.get("content", [])
        return Reply("".join(part.get("text", "") for part in parts), bool(result.get("isError")))

    return call
