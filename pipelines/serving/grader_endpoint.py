"""A grader's side of an MCP server: a second client lists the server's episodes and grades them, at `/grade`.

In: the episodes of `AgentSessions`, open and ended. Out: MCP with two tools, for who knows the token:

    episodes  {}                -> {"episodes": [{"episode", "task_id", "steps", "ended"}]}; ended: null while it runs
    grade     {"episode": ID}   -> {"episode", "task_id", "reward", "failed"}: a replay on the grader's own copy

An episode's id is the `Mcp-Session-Id` of the session that played it. The reward is null where the task has no verified one, or
the environment cannot tell. Sees: episodes of this server, the latest `MOST_ENDED` of those that ended. Does not see: journals
of other servers (`traceroom grade`). The agent's endpoint names neither the tools nor the token.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from pathlib import Path
from typing import Any

from env_builder.runtime import Environment, mcp
from env_builder.runtime.admission import FAILURES
from pipelines.serving.sessions import AgentSessions
from warehouse.errors import InputError, TraceroomError

_ID = {"type": "object", "properties": {"episode": {"type": "string", "description": "An id that `episodes` lists."}},
       "required": ["episode"], "additionalProperties": False}
TOOLS = (
    {"name": "episodes", "description": "List the episodes that this server plays and has played.",
     "inputSchema": {"type": "object", "properties": {}, "additionalProperties": False}},
    {"name": "grade", "description": "Grade an episode as it stands: replay its journal, and return the reward.",
     "inputSchema": _ID},
)
INSTRUCTIONS = "Grade the episodes that agents play on this server: `episodes` lists them, `grade` returns the reward of one."


class GraderEndpoint:
    """Answers the requests of graders."""

    def __init__(self, environment: Path, sessions: AgentSessions, token: str) -> None:
        """InputError if the run that the environment is of has no rewards."""
        rewards = environment.absolute().parent.parent / "rewards" / environment.name
        if not rewards.is_dir():
            raise InputError("there are no rewards to grade with", str(rewards), "serve the environment in its run's folder")
        self._sessions, self._token = sessions, token
        self._environment = Environment.load(environment)
        self._turn = asyncio.Lock()

    def admits(self, authorization: str) -> bool:
        """Return whether the header's value has the token."""
        return hmac.compare_digest(authorization.encode(), f"Bearer {self._token}".encode())

    async def reply(self, message: dict[str, Any]) -> dict[str, Any]:
        """Return the JSON-RPC reply to a request."""
        try:
            result = await self._result(message["method"], message.get("params") or {})
        except mcp.RequestError as error:
            return mcp.error_reply(message["id"], error.code, str(error), error.data)
        except TraceroomError as error:
            return mcp.error_reply(message["id"], mcp.INTERNAL_ERROR, str(error))
        except FAILURES as error:  # of one episode's replay: others are graded all the same
            return mcp.error_reply(message["id"], mcp.INTERNAL_ERROR, f"it cannot be graded ({type(error).__name__}: {error})")
        return {"jsonrpc": "2.0", "id": message["id"], "result": result}

    async def _result(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        if method == "initialize":
            return mcp.handshake(params, "traceroom-grader", INSTRUCTIONS)
        if method == "tools/list":
            return {"tools": list(TOOLS)}
        if method == "tools/call":
            arguments = params.get("arguments") or {}
            if not isinstance(arguments, dict):
                raise mcp.RequestError(mcp.INVALID_PARAMS, "arguments is not an object")
            result = await self._called(params.get("name"), arguments)
            return {"content": [{"type": "text", "text": json.dumps(result)}], "structuredContent": result, "isError": False}
        if method != "ping":
            raise mcp.RequestError(mcp.METHOD_NOT_FOUND, f"no method {method!r}")
        return {}

    async def _called(self, tool: Any, arguments: dict[str, Any]) -> dict[str, Any]:
        if tool == "episodes":
            rows = await self._sessions.episodes()
            return {"episodes": [{"episode": name, "task_id": row["task_id"], "steps": len(row["journal"]),
                                  "ended": row["ended"]} for name, row in rows.items()]}
        if tool != "grade":
            raise mcp.RequestError(mcp.INVALID_PARAMS, f"no tool {tool!r}; there are: episodes, grade")
        name = arguments.get("episode")
        row = (await self._sessions.episodes(name)).get(name) if isinstance(name, str) else None
        if row is None:
            raise mcp.RequestError(mcp.INVALID_PARAMS, f"no episode {name!r} here; `episodes` lists them")
        if row["task_id"] is None:
            return {"episode": name, "task_id": None, "reward": None, "failed": []}
        async with self._turn:  # one replay at a time: agents' calls go on meanwhile
            grade = await asyncio.to_thread(
                self._environment.fork().grade_journal, row["task_id"], row["journal"], row["seed"], row["perturbations"])
        failed = [check.description for check in grade.checks if check.passed is False]
        return {"episode": name, "task_id": row["task_id"], "reward": grade.reward, "failed": failed}
