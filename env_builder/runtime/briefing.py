"""What a client that speaks MCP alone is given of its task: instructions, prompts, resources, and tools to speak and to end.

In: the messages that an episode begins with, and what was said since. Out: the results of `prompts/*` and `resources/*`, the
`instructions` of the handshake, and the descriptors of two tools. All of it is the same text: the policy (what the system
messages say), the task (policy, and what the user said first, with how to reply and how to end), and the user's words so far.
MCP knows no system role: a prompt gives the policy as words of the user.

Sees: what the agent may see. Does not see: the task's goal, its known solution, what the user would say later.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

SAY, FINISH = "say", "finish"
SCHEME = "traceroom://episode/"
_NAMES = {
    "task": "The task: what to do, under which rules, and how to reply and to end",
    "policy": "The rules that hold for the agent",
    "user": "What the user and the agent have said so far",
}
_MIME = {"task": "text/plain", "policy": "text/plain", "user": "application/json"}
_BARE: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}
_TALK: tuple[dict[str, Any], ...] = ({
    "name": SAY,
    "description": "Say something to the user: a question, what was done, why something cannot be done. Returns the reply.",
    "inputSchema": {"type": "object", "properties": {"text": {"type": "string", "description": "What the user reads."}},
                    "required": ["text"], "additionalProperties": False},
}, {
    "name": FINISH,
    "description": "End the task, once everything is done and the user knows the result. Nothing can be done after it.",
    "inputSchema": _BARE,
})
SILENCE = "The user says nothing more."
DEPARTED = "The user has left."
Messages = Sequence[Mapping[str, str]]


def talk_tools(taken: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Name -> descriptor of the tools to speak and to end; a name that is taken gets `task_` before it."""
    names = set(taken)
    tools: dict[str, dict[str, Any]] = {}
    for descriptor in _TALK:
        name = descriptor["name"]
        while name in names:
            name = f"task_{name}"
        tools[name] = {**descriptor, "name": name}
    return tools


def has_user(messages: Messages) -> bool:
    """Return whether somebody speaks to the agent."""
    return any(message["role"] == "user" for message in messages)


def instructions(messages: Messages, talk: Iterable[str]) -> str:
    """Return policy and request as one text. `talk`: names of the tools to speak and to end, in this order."""
    how = list(talk)
    parts = [policy(messages), *(f"{_SPEAKERS.get(message['role'], message['role'])}:\n{message['content']}"
                                 for message in messages if message["role"] != "system")]
    if how:
        parts.append(f"Reply to the user with the tool `{how[0]}`, and end with the tool `{how[1]}`.")
    return "\n\n".join(filter(None, parts))


_SPEAKERS = {"user": "The user says", "assistant": "You said", "tool": "A tool answered"}


def policy(messages: Messages) -> str:
    """Return what the system messages say."""
    return "\n\n".join(message["content"] for message in messages if message["role"] == "system")


def listed_prompts(messages: Messages) -> list[dict[str, Any]]:
    """Return the descriptors of the prompts; none where nothing is said."""
    return [{"name": name, "description": _NAMES[name]} for name in _present(messages) if name != "user"]


def prompt(name: Any, messages: Messages, talk: Iterable[str]) -> dict[str, Any] | None:
    """Return the result of `prompts/get`, None where there is no such prompt."""
    if name not in {each["name"] for each in listed_prompts(messages)}:
        return None
    text = policy(messages) if name == "policy" else instructions(messages, talk)
    return {"description": _NAMES[name], "messages": [{"role": "user", "content": {"type": "text", "text": text}}]}


def listed_resources(messages: Messages) -> list[dict[str, Any]]:
    """Return the descriptors of the resources; none where nothing is said."""
    return [{"uri": SCHEME + name, "name": name, "description": _NAMES[name], "mimeType": _MIME[name]}
            for name in _present(messages)]


def resource(uri: Any, messages: Messages, conversation: Messages, talk: Iterable[str]) -> dict[str, Any] | None:
    """Return the result of `resources/read`, None where there is no such resource."""
    name = uri.removeprefix(SCHEME) if isinstance(uri, str) and uri.startswith(SCHEME) else ""
    if name not in _present(messages):
        return None
    if name == "user":
        spoken = [message for message in (*messages, *conversation) if message["role"] in ("user", "assistant")]
        text = json.dumps(spoken, ensure_ascii=False)
    else:
        text = policy(messages) if name == "policy" else instructions(messages, talk)
    return {"contents": [{"uri": uri, "mimeType": _MIME[name], "text": text}]}


def _present(messages: Messages) -> list[str]:
    present = {"task": bool(messages), "policy": bool(policy(messages)), "user": has_user(messages)}
    return [name for name in _NAMES if present[name]]
