"""An exported environment as a taskset of the verifiers library (`verifiers.v1`): tasks, their tools, their user, their reward.

In: the kit beside this module. Out: `KitTaskset`, and `KitEnv`, whose user is the task's own. Tools are served over MCP by a
process of the taskset's; what happened so far is the rollout's state, and each call plays it again, so that any process
may answer. Words that a model says beside a call are not heard: the user hears what a turn ends with.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import verifiers.v1 as vf
from mcp.server.mcpserver import Context, MCPServer
from mcp.types import CallToolResult, TextContent, Tool
from pydantic import Field

from . import play

HERE = Path(__file__).parent


class KitState(vf.State):
    """What happened in a rollout."""

    task_id: str = ""
    journal: list[dict[str, Any]] = Field(default_factory=list)

    def episode(self) -> play.KitEpisode:
        """Return the rollout's episode so far."""
        episode = play.open(HERE).begin(self.task_id)
        for row in self.journal[episode.n_made:]:
            if row["kind"] == "call":
                episode.call(row["tool"], row["arguments"])
            elif row["kind"] == "say":
                episode.say(row["content"])
            else:
                episode.finish()
        return episode

    def heard(self, text: str) -> str | None:
        """Return the user's answer to the agent's words; None if the conversation is over."""
        episode = self.episode()
        reply = episode.say(text) if text else None
        if reply is None:
            episode.finish()
        self.journal = episode.journal()
        return reply

    def called(self, name: str, arguments: Any) -> tuple[str, bool]:
        """Return a tool's answer, and whether it is an error."""
        episode = self.episode()
        answer = episode.call(name, arguments)
        self.journal = episode.journal()
        return answer


class KitData(vf.TaskData):
    """One task's data."""

    family: str
    split: str
    digest: str
    """Content digest of what was exported."""


class KitTask(vf.Task[KitData, KitState]):
    """A task: its known solution validates it, and the environment's own grader rewards it."""

    @property
    def key(self) -> str:
        return self.data.id or self.hash

    async def setup(self, trace: vf.Trace, runtime: Any) -> None:
        trace.state.task_id = self.data.id

    async def validate(self, runtime: Any) -> bool:
        """Is the known solution worth 1?"""
        kit = play.open(HERE)
        return kit.begin(self.key).play(kit.solution(self.key)).reward() == 1.0

    @vf.reward(weight=1.0)
    async def rubric(self, trace: vf.Trace) -> float:
        """Return the reward of the grader's own replay of the rollout; an error if it is unknown, never 0."""
        grade = play.open(HERE).grade(self.key, trace.state.journal)
        if grade.reward is None:
            raise ValueError("unscored: an answer that nobody knows, or a judge that was not asked, could turn the reward")
        trace.info["findings"] = [
            {"check_id": each.check_id, "kind": each.kind, "passed": each.passed, "description": each.description}
            for each in grade.checks]
        return float(grade.reward)


class KitToolset(vf.Toolset[vf.SharedToolsetConfig, KitState]):
    """The environment's tools."""

    TOOL_PREFIX = None

    def register(self, mcp: MCPServer) -> None:
        """Answer lists and calls of tools with the names and schemas that the log's own tools have."""
        server = cast(Any, mcp)
        server.list_tools = self._with_state(self.list_tools)
        server.call_tool = self._with_state(self.call_tool)

    async def list_tools(self) -> list[Tool]:
        return [Tool(name=tool["name"], description=tool.get("description") or None,
                     input_schema=tool.get("inputSchema") or {"type": "object"}) for tool in play.open(HERE).descriptors]

    async def call_tool(self, name: str, arguments: dict[str, Any], context: Context | None = None) -> CallToolResult:
        """Return the answer, byte for byte."""
        text, is_error = self.state.called(name, arguments)
        return CallToolResult(content=[TextContent(type="text", text=text)], is_error=is_error)


class KitConfig(vf.TasksetConfig):
    """Which tasks."""

    split: str | None = None
    """`train`, `validation` …; None: all that were exported."""
    tools: vf.SharedToolsetConfig = vf.SharedToolsetConfig()


class KitTaskset(vf.Taskset[KitTask, KitConfig]):
    """The exported tasks."""

    @classmethod
    def toolsets(cls, config: KitConfig) -> list[vf.Toolset]:
        return [KitToolset(config.tools)]

    def load(self) -> Iterator[KitTask]:
        """Every task, by its id; words that come before all others are the system's."""
        kit = play.open(HERE)
        for row in kit.tasks:
            if self.config.split in (None, row["split"]):
                messages = kit.begin(row["task_id"]).messages
                n_system = next((n for n, message in enumerate(messages) if message["role"] != "system"), len(messages))
                system = "\n\n".join(message["content"] for message in messages[:n_system]) or None
                yield KitTask(KitData(
                    id=row["task_id"], name=f"{kit.name}/{row['task_id'][:12]}", prompt=[*map(_message, messages[n_system:])],
                    system_prompt=system, family=row["family"], split=row["split"], digest=kit.digest), self.config.task)


def _message(message: dict[str, Any]) -> Any:
    """Return a message as the library has it: a call's name stands beside its id."""
    calls = [{"id": call["id"], **call["function"]} for call in message.get("tool_calls", ())]
    return {**message, "tool_calls": calls} if calls else message


class KitEnvConfig(vf.EnvConfig):
    """Who plays: by default a plain chat loop in a process of this machine, which has the environment's tools and no other."""

    player: vf.AgentConfig = vf.AgentConfig.model_validate({"harness": {"id": "null"}, "runtime": {"type": "subprocess"}})


class KitEnv(vf.Env[KitEnvConfig]):
    """Plays a task as a conversation: what the agent's turn ends with is said to the user, whose answer opens the next."""

    async def run(self, task: Any, agents: Any) -> None:
        async with agents.player.interaction(task) as interaction:
            segment = await interaction.turn()
            while not segment.terminated:
                reply = interaction.trace.state.heard(segment.last_reply.strip())
                if reply is None:
                    break
                segment = await interaction.turn(reply)


if __name__ == "__main__":
    KitToolset.run()
