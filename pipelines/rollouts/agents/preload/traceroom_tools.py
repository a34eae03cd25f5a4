"""Let an agent's own tools act in an episode of Traceroom, without a change of its code: one file, standard library only.

    import traceroom_tools
    traceroom_tools.install()                        # before or after the frameworks are imported
    with traceroom_tools.episode(request["episode_url"]):   # in a service; a command's process has TRACEROOM_EPISODE_URL
        run_the_agent()

A call of a tool whose name is one of the episode's goes to the episode, with the arguments that the model gave; other tools
stay as they are. Functions are replaced where a framework executes a tool:

    openai-agents   FunctionTool.on_invoke_tool
    langgraph       BaseTool.run and arun (LangChain's tools)
    pydantic-ai     FunctionToolset.call_tool
    claude-agent    the handler of SdkMcpTool
    crewai          BaseTool.run and arun, Tool.run and arun, CrewStructuredTool.invoke and ainvoke; nothing is cached

TRACEROOM_ADAPTERS names the frameworks, separated by commas; without it, all. Without an episode every tool stays as it is.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import functools
import importlib.abc
import importlib.machinery
import json
import os
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

TIMEOUT_S = 600.0
_URL: contextvars.ContextVar[str | None] = contextvars.ContextVar("traceroom_episode", default=None)
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
_MARK = "_traceroom_replaced"


class EpisodeError(RuntimeError):
    """The episode does not answer: it is over, or Traceroom is gone."""


@contextlib.contextmanager
def episode(url: str) -> Iterator[None]:
    """Let the tools that are called within act in the episode at `url`."""
    token = _URL.set(url)
    try:
        yield
    finally:
        _URL.reset(token)


def call(name: str, arguments: Any, call_id: str | None = None) -> dict[str, Any]:
    """Call a tool of the episode: {"content", "is_error"}. With the model's id of the call, its arguments are the model's."""
    return _request("tools/call", {"tool": name, "arguments": arguments, "call_id": call_id})


async def acall(name: str, arguments: Any, call_id: str | None = None) -> dict[str, Any]:
    """Call a tool of the episode without holding up the event loop."""
    return await asyncio.to_thread(call, name, arguments, call_id)


def owns(name: str) -> bool:
    """Return whether the episode has a tool of this name; False without an episode."""
    url = _url()
    return url is not None and name in _names(url)


def _url() -> str | None:
    return _URL.get() or os.environ.get("TRACEROOM_EPISODE_URL")


@functools.lru_cache(maxsize=1024)
def _names(url: str) -> frozenset[str]:
    return frozenset(tool["name"] for tool in _request("tools")["tools"])


def _request(path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
    data = None if body is None else json.dumps(body, default=str).encode()
    request = urllib.request.Request(f"{_url()}/{path}", data, {"Content-Type": "application/json"})
    try:
        with _OPENER.open(request, timeout=TIMEOUT_S) as reply:
            document: dict[str, Any] = json.load(reply)
            return document
    except (OSError, ValueError) as error:
        raise EpisodeError(f"the episode does not answer ({error})") from error


def _replace(module: ModuleType, owner: str, name: str, make: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Replace a function of a class by what `make` makes of it, once; nothing if there is no such class or function."""
    kind = getattr(module, owner, None)
    original = None if kind is None else vars(kind).get(name)
    if original is not None and not hasattr(original, _MARK):
        made = functools.wraps(original)(make(original))
        setattr(made, _MARK, True)
        setattr(kind, name, made)


def _openai_agents(module: ModuleType) -> None:
    class Invoker:
        """Stands where a tool's own function stood, and passes on what is not the episode's."""

        def __init__(self, tool: Any, original: Any) -> None:
            self._tool, self._original = tool, original

        async def __call__(self, ctx: Any, input: str) -> Any:
            if not owns(self._tool.name):
                return await self._original(ctx, input)
            return (await acall(self._tool.name, _parsed(input), getattr(ctx, "tool_call_id", None)))["content"]

        def __agents_bind_function_tool__(self, tool: Any) -> Any:
            bind = getattr(self._original, "__agents_bind_function_tool__", None)
            return Invoker(tool, bind(tool) if callable(bind) else self._original)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._original, name)

    def replaced(original: Callable[..., Any]) -> Callable[..., Any]:
        def __post_init__(self: Any) -> None:
            original(self)
            if not isinstance(self.on_invoke_tool, Invoker) and (_url() is None or owns(self.name)):
                self.on_invoke_tool = Invoker(self, self.on_invoke_tool)
        return __post_init__

    _replace(module, "FunctionTool", "__post_init__", replaced)


def _langgraph(module: ModuleType) -> None:
    def message(tool: Any, answer: dict[str, Any], call_id: str | None) -> Any:
        if call_id is None:
            return answer["content"]
        from langchain_core.messages import ToolMessage  # type: ignore[import-not-found,unused-ignore]

        return ToolMessage(answer["content"], tool_call_id=call_id, name=tool.name,
                           status="error" if answer["is_error"] else "success")

    def run(original: Callable[..., Any]) -> Callable[..., Any]:
        def replaced(self: Any, tool_input: Any, *args: Any, tool_call_id: str | None = None, **more: Any) -> Any:
            if not owns(self.name):
                return original(self, tool_input, *args, tool_call_id=tool_call_id, **more)
            return message(self, call(self.name, tool_input, tool_call_id), tool_call_id)
        return replaced

    def arun(original: Callable[..., Any]) -> Callable[..., Any]:
        async def replaced(self: Any, tool_input: Any, *args: Any, tool_call_id: str | None = None, **more: Any) -> Any:
            if not owns(self.name):
                return await original(self, tool_input, *args, tool_call_id=tool_call_id, **more)
            return message(self, await acall(self.name, tool_input, tool_call_id), tool_call_id)
        return replaced

    _replace(module, "BaseTool", "run", run)
    _replace(module, "BaseTool", "arun", arun)


def _pydantic_ai(module: ModuleType) -> None:
    def replaced(original: Callable[..., Any]) -> Callable[..., Any]:
        async def call_tool(self: Any, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
            if not owns(name):
                return await original(self, name, tool_args, ctx, tool)
            return (await acall(name, tool_args, ctx.tool_call_id))["content"]
        return call_tool

    _replace(module, "FunctionToolset", "call_tool", replaced)


def _claude_agent(module: ModuleType) -> None:
    def replaced(original: Callable[..., Any]) -> Callable[..., Any]:
        def __init__(self: Any, *args: Any, **more: Any) -> None:
            original(self, *args, **more)
            own = self.handler

            async def handler(arguments: Any) -> Any:
                if not owns(self.name):
                    return await own(arguments)
                answer = await acall(self.name, arguments)
                return {"content": [{"type": "text", "text": answer["content"]}], "is_error": answer["is_error"]}

            self.handler = handler
        return __init__

    _replace(module, "SdkMcpTool", "__init__", replaced)


def _crewai_tools(module: ModuleType) -> None:
    def run(original: Callable[..., Any]) -> Callable[..., Any]:
        def replaced(self: Any, *args: Any, **arguments: Any) -> Any:
            name = _plain(self.name)
            return call(name, arguments)["content"] if not args and owns(name) else original(self, *args, **arguments)
        return replaced

    def arun(original: Callable[..., Any]) -> Callable[..., Any]:
        async def replaced(self: Any, *args: Any, **arguments: Any) -> Any:
            name = _plain(self.name)
            if args or not owns(name):
                return await original(self, *args, **arguments)
            return (await acall(name, arguments))["content"]
        return replaced

    for owner in ("BaseTool", "Tool"):
        _replace(module, owner, "run", run)
        _replace(module, owner, "arun", arun)


def _crewai_structured(module: ModuleType) -> None:
    def invoke(original: Callable[..., Any]) -> Callable[..., Any]:
        def replaced(self: Any, input: Any, *args: Any, **more: Any) -> Any:
            name = _plain(self.name)
            return call(name, _parsed(input))["content"] if owns(name) else original(self, input, *args, **more)
        return replaced

    def ainvoke(original: Callable[..., Any]) -> Callable[..., Any]:
        async def replaced(self: Any, input: Any, *args: Any, **more: Any) -> Any:
            name = _plain(self.name)
            if not owns(name):
                return await original(self, input, *args, **more)
            return (await acall(name, _parsed(input)))["content"]
        return replaced

    _replace(module, "CrewStructuredTool", "invoke", invoke)
    _replace(module, "CrewStructuredTool", "ainvoke", ainvoke)


def _crewai_cache(module: ModuleType) -> None:
    def replaced(original: Callable[..., Any]) -> Callable[..., Any]:
        def add(self: Any, tool: str, *args: Any, **more: Any) -> Any:
            return None if owns(_plain(tool)) else original(self, tool, *args, **more)
        return add

    _replace(module, "CacheHandler", "add", replaced)


PATCHES: dict[str, tuple[str, Callable[[ModuleType], None]]] = {
    "agents.tool": ("openai-agents", _openai_agents),
    "langchain_core.tools.base": ("langgraph", _langgraph),
    "pydantic_ai.toolsets.function": ("pydantic-ai", _pydantic_ai),
    "claude_agent_sdk": ("claude-agent", _claude_agent),
    "crewai.tools.base_tool": ("crewai", _crewai_tools),
    "crewai.tools.structured_tool": ("crewai", _crewai_structured),
    "crewai.agents.cache.cache_handler": ("crewai", _crewai_cache),
}
"""Module -> its framework, and what replaces its functions."""


class _Watcher(importlib.abc.MetaPathFinder):
    """Replaces a module's functions as soon as it has been imported."""

    def __init__(self, frameworks: frozenset[str]) -> None:
        self._frameworks = frameworks

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        """Find a framework's module as Python does, and have its functions replaced."""
        framework, patch = PATCHES.get(fullname, ("", None))
        if patch is None or framework not in self._frameworks:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            patch(module)

        spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec


def install(frameworks: Sequence[str] | None = None) -> None:
    """Replace the functions of the frameworks (all by default) that are imported, and of those that will be."""
    named = os.environ.get("TRACEROOM_ADAPTERS", "")
    wanted = frozenset(frameworks or [name for name in named.split(",") if name] or {name for name, _ in PATCHES.values()})
    sys.meta_path.insert(0, _Watcher(wanted))
    for name, (framework, patch) in PATCHES.items():
        if framework in wanted and name in sys.modules:
            patch(sys.modules[name])


def _parsed(text: Any) -> Any:
    """Parse arguments; what is no JSON is returned as it is."""
    try:
        return json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return text


def _plain(name: str) -> str:
    """Return a tool's name as CrewAI gives it to a model, unless the episode has it as it stands."""
    if owns(name):
        return name
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return re.sub(r"_+", "_", re.sub(r"[^a-z0-9_]", "_", words)).strip("_")
