"""A desk on the Claude Agent SDK."""

import asyncio
import sys
from typing import Any, get_type_hints

import desk
from claude_agent_sdk import ClaudeAgentOptions, ResultMessage, create_sdk_mcp_server, query, tool
from pydantic import create_model


def tool_of(function: Any) -> Any:
    hints = {name: (hint, ...) for name, hint in get_type_hints(function).items() if name != "return"}
    schema = create_model(function.__name__, **hints).model_json_schema()

    async def handler(arguments: dict[str, Any]) -> dict[str, Any]:
        return {"content": [{"type": "text", "text": function(**arguments)}]}

    return tool(function.__name__, function.__doc__, schema)(handler)


async def main() -> None:
    server = create_sdk_mcp_server("desk", tools=[tool_of(each) for each in desk.TOOLS])
    options = ClaudeAgentOptions(
        system_prompt=desk.INSTRUCTIONS, mcp_servers={"desk": server}, tools=[], setting_sources=[], model="sonnet",
        allowed_tools=[f"mcp__desk__{each.__name__}" for each in desk.TOOLS])
    async for message in query(prompt=sys.argv[1], options=options):
        if isinstance(message, ResultMessage):
            print(message.result)


asyncio.run(main())
