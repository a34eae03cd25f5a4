"""The MCP endpoints of a server: `/mcp` for all tools, and `/mcp/NAME` for those of one app, where the manifest names them.

In: the rows of apps in an environment's manifest, `endpoints` {name: [tool, …]}. Out: whether a path is an endpoint, and which
tools it leaves out. Tools that no endpoint names (to speak, to end) are at all of them.
Sees: paths. Does not see: sessions; whoever has a session may use every endpoint with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from env_builder.runtime import mcp

ALL = "/mcp"
_NAME = re.compile(r"[\w-]{1,64}")


class McpEndpoints:
    """Paths of an environment's tools."""

    def __init__(self, apps: Iterable[Mapping[str, Any]] = ()) -> None:
        """`apps`: rows of the manifest."""
        named = {name: frozenset(tools) for app in apps for name, tools in (app.get("endpoints") or {}).items()
                 if _NAME.fullmatch(name)}
        every = frozenset[str]().union(*named.values())
        self._left_out = {ALL: frozenset[str](), **{f"{ALL}/{name}": every - tools for name, tools in named.items()}}

    @property
    def paths(self) -> list[str]:
        """All endpoints, the one of all tools first."""
        return list(self._left_out)

    def __contains__(self, path: object) -> bool:
        """Return whether a path is an endpoint."""
        return path in self._left_out

    def refusal(self, path: str, method: str, params: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the reply to a call of a tool that this endpoint leaves out, None for all other requests."""
        tool = params.get("name")
        if method != "tools/call" or not isinstance(tool, str) or tool not in self._left_out[path]:
            return None
        others = ", ".join(other for other, left_out in self._left_out.items() if tool not in left_out)
        return mcp.error_reply(None, mcp.INVALID_PARAMS, f"no tool {tool!r} at {path}; it is at {others}")

    def shown(self, path: str, method: str, reply: dict[str, Any]) -> dict[str, Any]:
        """Return a process's reply as this endpoint gives it: a list of tools without those that it leaves out."""
        left_out = self._left_out[path]
        if method != "tools/list" or not left_out or "result" not in reply:
            return reply
        tools = [tool for tool in reply["result"]["tools"] if tool["name"] not in left_out]
        return {**reply, "result": {**reply["result"], "tools": tools}}
