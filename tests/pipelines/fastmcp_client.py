"""Run in an interpreter with `fastmcp`, an MCP client that is not the official one: plays an episode, over HTTP or stdio.

    fastmcp_client.py http URL
    fastmcp_client.py stdio COMMAND ARGUMENTS…
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import ToolError


async def main() -> None:
    """Play, and say what came of it as JSON."""
    kind, target, *arguments = sys.argv[1:]
    transport: Any = target if kind == "http" else StdioTransport(target, arguments)
    async with Client(transport) as client:
        tools = [tool.name for tool in await client.list_tools()]
        read = await client.call_tool("read_sign", {"at": "gate"})
        opened = await client.call_tool("open_door", {"door": "7"})
        try:
            await client.call_tool("open_door", {"door": "8"})
            failed = ""
        except ToolError as error:
            failed = str(error)
    print(json.dumps({"tools": tools, "read": read.content[0].text, "opened": opened.structured_content, "failed": failed}))


asyncio.run(main())
