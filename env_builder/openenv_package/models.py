"""What an agent does in an environment and what it sees, as OpenEnv's types."""

from __future__ import annotations

from typing import Any, Literal

from openenv.core.env_server.types import Action, Observation, State
from pydantic import Field


class OpenEnvAction(Action):
    """What an agent does."""

    type: Literal["call_tool", "say", "finish", "list_tools"] = "call_tool"
    tool_name: str = Field(default="", description="Tool to call (call_tool)")
    arguments: dict[str, Any] = Field(default_factory=dict, description="Its arguments (call_tool)")
    text: str = Field(default="", description="Message to the user (say)")


class OpenEnvObservation(Observation):
    """What an agent sees."""

    messages: list[dict[str, Any]] = Field(default_factory=list, description="How the episode begins (reset)")
    tools: list[dict[str, Any]] = Field(default_factory=list, description="MCP descriptors (reset, list_tools)")
    content: str | None = Field(default=None, description="The tool's answer, byte for byte, or the user's (call_tool, say)")
    is_error: bool = Field(default=False, description="Whether the tool failed")
    ended: str | None = Field(default=None, description="terminated: the agent is done; truncated: a limit was reached")


class OpenEnvState(State):
    """Where an episode is."""

    task_id: str | None = Field(default=None, description="Task that is played")
    digest: str = Field(default="", description="Content digest of the environment")
    ended: str | None = Field(default=None, description="How it ended; null while it runs")
