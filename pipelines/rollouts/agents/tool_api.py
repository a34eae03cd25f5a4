"""An episode's tools for an agent that speaks MCP: what the server of docs/serving.md offers, in the episode of a rollout.

In: JSON-RPC requests. Out: their results. Without sessions: the URL names the episode.
"""

from __future__ import annotations

from typing import Any

from env_builder.runtime import briefing, mcp
from pipelines.rollouts.agents.talks import AgentTalk
from warehouse.errors import TraceroomError

Row = dict[str, Any]


def reply(talk: AgentTalk, message: Any) -> Row | None:
    """Return the reply to a message, None if it needs none."""
    refusal: Row | None = mcp.invalid_request(message)
    if refusal is not None or "id" not in message or "method" not in message:
        return refusal
    params = message.get("params") or {}
    try:
        if not isinstance(params, dict):
            raise mcp.RequestError(mcp.INVALID_PARAMS, "params is not an object")
        return {"jsonrpc": "2.0", "id": message["id"], "result": _result(talk, message["method"], params)}
    except mcp.RequestError as error:
        return mcp.error_reply(message["id"], error.code, str(error), error.data)
    except TraceroomError as error:
        return mcp.error_reply(message["id"], mcp.INTERNAL_ERROR, str(error))


def call(talk: AgentTalk, tool: Any, arguments: Any, call_id: Any) -> Row:
    """Return the answer to a call of an adapter: {"content", "is_error"}."""
    result = talk.call(str(tool), arguments, call_id if isinstance(call_id, str) else None)
    return {"content": result.content, "is_error": result.is_error}


def _result(talk: AgentTalk, method: str, params: Row) -> Row:
    messages, own = talk.seat.beginning["messages"], _talk_tools(talk, method)
    match method:
        case "initialize":
            return mcp.handshake(params, instructions=briefing.instructions(talk.conversation.messages, own))
        case "ping":
            return {}
        case "tools/list":
            return {"tools": [*talk.tools.values(), *own.values()]}
        case "tools/call":
            return _call(talk, params, list(own))
        case "prompts/list":
            return {"prompts": briefing.listed_prompts(messages)}
        case "resources/list":
            return {"resources": briefing.listed_resources(messages)}
        case "resources/templates/list":
            return {"resourceTemplates": []}
        case "prompts/get":
            result = briefing.prompt(params.get("name"), messages, own)
        case "resources/read":
            result = briefing.resource(params.get("uri"), messages, [], own)
        case _:
            raise mcp.RequestError(mcp.METHOD_NOT_FOUND, f"no method {method!r}")
    if result is None:
        raise mcp.RequestError(mcp.INVALID_PARAMS, f"there is no {params.get('name') or params.get('uri')!r}")
    return result


def _talk_tools(talk: AgentTalk, method: str) -> dict[str, Row]:
    """Return the tools to speak and to end, if they are how the agent speaks."""
    if method == "initialize":
        talk.open_tools()
    return briefing.talk_tools(talk.tools) if talk.speaks_by_tools else {}


def _call(talk: AgentTalk, params: Row, own: list[str]) -> Row:
    name, arguments = params.get("name"), params.get("arguments") or {}
    if not isinstance(arguments, dict):
        raise mcp.RequestError(mcp.INVALID_PARAMS, "arguments is not an object")
    if own and name == own[0]:
        if not isinstance(arguments.get("text"), str):
            raise mcp.RequestError(mcp.INVALID_PARAMS, f"{name} takes text")
        return _text(talk.say(arguments["text"]))
    if own and name == own[1]:
        talk.finish()
        return _text("The task has ended.")
    if not isinstance(name, str) or name not in talk.tools:
        raise mcp.RequestError(mcp.INVALID_PARAMS, f"no tool {name!r}; there are: {', '.join((*talk.tools, *own))}")
    result = talk.call(name, arguments)
    return {**_text(result.content), "isError": result.is_error}


def _text(content: str) -> Row:
    return {"content": [{"type": "text", "text": content}], "isError": False}
