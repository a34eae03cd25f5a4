"""A call that an agent made, as what learns from calls takes it."""

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
