"""What agents did: a call, as what learns from calls takes it, and what a session was told to do."""

from __future__ import annotations

from typing import Any, NamedTuple


class RecordedCall(NamedTuple):
    """A call that an agent made."""

    at: int
    """Microseconds since 1970 UTC."""
    acting_for: str
    """Address of the person whom the agent worked for; empty if the log does not say."""
    tool: str
    arguments: dict[str, Any]
    content: str
    is_error: bool


class AgentPrompt(NamedTuple):
    """What a person told an agent."""

    at: int
    """Microseconds since 1970 UTC."""
    until: int
    """Of the session's last message or call."""
    acting_for: str
    """Address of the person."""
    text: str
    """All that the person said, if that was said before the agent's first call; empty: more was said later."""
