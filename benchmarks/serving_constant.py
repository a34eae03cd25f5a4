"""The floor under our servers: the same packages serving a constant, run as a process by serving_protocols.py.

    serving_constant.py mcp TEXT       the official MCP SDK: one tool that always answers TEXT
    serving_constant.py openenv TEXT   OpenEnv's own server: an environment whose every step observes TEXT (its own interpreter)

Says on stdout where it listens, and serves until it is terminated.
"""

from __future__ import annotations

import socket
import sys
from typing import Any

import uvicorn


def mcp_app(text: str) -> Any:
    """As our server is set up, with a constant in the place of the room."""
    import mcp_types as types
    from mcp.server import Server

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult.model_validate({"tools": [{"name": "constant", "inputSchema": {"type": "object"}}]})

    async def call_tool(context: Any, params: Any) -> types.CallToolResult:
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)])

    server: Any = Server("constant", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    return server.streamable_http_app(host="127.0.0.1", json_response=True, session_idle_timeout=None, max_sessions=None)


def openenv_app(text: str) -> Any:
    """Return the package's own server of an environment that does nothing; asynchronous, as it is fastest."""
    from openenv.core.env_server.http_server import create_fastapi_app
    from openenv.core.env_server.interfaces import Environment
    from openenv.core.env_server.types import Action, Observation, State
    from pydantic import ConfigDict

    class Anything(Action):
        model_config = ConfigDict(extra="allow")

    class Constant(Observation):
        content: str = ""

    class Still(Environment[Any, Any, Any]):
        SUPPORTS_CONCURRENT_SESSIONS = True
        REQUIRES_SINGLE_THREAD_EXECUTOR = True

        def reset(self, seed: Any = None, episode_id: Any = None, **others: Any) -> Constant:
            return Constant(content=text)

        def step(self, action: Anything, timeout_s: Any = None, **others: Any) -> Constant:
            return Constant(content=text)

        async def reset_async(self, seed: Any = None, episode_id: Any = None, **others: Any) -> Constant:
            return Constant(content=text)

        async def step_async(self, action: Anything, timeout_s: Any = None, **others: Any) -> Constant:
            return Constant(content=text)

        @property
        def state(self) -> State:
            return State()

    return create_fastapi_app(Still, Anything, Constant, max_concurrent_envs=4096)


def main() -> int:
    """Serve the constant."""
    kind, text = sys.argv[1:]
    app = {"mcp": mcp_app, "openenv": openenv_app}[kind](text)
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as listening:
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as the event loop sets for its own sockets
        print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
        uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, backlog=2048)).run(sockets=[listening])
    return 0


if __name__ == "__main__":
    sys.exit(main())
