"""Names under which tools can be called where some names are taken, and a tool that speaks with the user."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

SPEAKING = ("say", "say_to_user", "speak_with_the_user")


class Routes(NamedTuple):
    """What is called under which name."""

    tools: dict[str, str]
    """The tool's own name by the name that a model calls."""
    speak: str
    """Name of the tool that speaks with the user; empty where no task has a user who answers."""
    functions: list[dict[str, Any]]
    """OpenAI's descriptions of them all, under the names that a model calls."""


RESERVED = frozenset({"verify", "seed_session", "aggregate_metrics", "reverify_mode", "mcp"})
"""Routes of NeMo Gym's own servers."""


def of(tools: Iterable[dict[str, Any]], tasks: Iterable[dict[str, Any]], taken: Collection[str] = RESERVED) -> Routes:
    """Routes of OpenAI function tools; `tasks` tell whether there is a user to speak with."""
    named: dict[str, str] = {}
    functions = []
    for tool in tools:
        name = own = tool["function"]["name"]
        while name in taken or name in named or name.startswith("_"):
            name = f"{name.lstrip('_')}_"
        named[name] = own
        functions.append({**tool, "function": {**tool["function"], "name": name}})
    if not any((task.get("user") or {}).get("turns") for task in tasks):
        return Routes(named, "", functions)
    speak = next(name for name in SPEAKING if name not in named)
    text = {"type": "string", "description": "What to say."}
    functions.append({"type": "function", "function": {
        "name": speak, "description": "Say something to the user and hear the answer; empty where there is none.",
        "parameters": {"type": "object", "properties": {"text": text}, "required": ["text"]}}})
    return Routes(named, speak, functions)
