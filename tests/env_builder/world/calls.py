"""Calls written by hand."""

from __future__ import annotations

from typing import Any

from env_builder.runtime.answers import failed, parse
from env_builder.runtime.canonical import canonical
from env_builder.world.calls import LoggedCall


def call(tool: str, arguments: dict[str, Any], content: str, session_id: str = "s", position: int = 0) -> LoggedCall:
    """Return a call that was answered with `content`."""
    parsed = parse(content)
    return LoggedCall(
        session_id, position, tool, arguments, canonical(arguments), content, parsed, failed(content, parsed), None, None,
        f"{session_id}-{position}")
