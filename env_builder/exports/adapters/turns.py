"""A turn of an agent as text or as words and calls, for consumers whose agent speaks and acts in one message.

What is written without a call is said to the user, and where the user answers nothing, the episode ends. Words beside calls
are said first. Thoughts (`<think>…</think>`) are nobody's. Text calls are those of Hermes and Qwen:
`<tool_call>{"name": …, "arguments": {…}}</tool_call>`.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from . import play

_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
_CALL = re.compile(r"<tool_call>(.*?)(?:</tool_call>|\Z)", re.DOTALL)


class Call(NamedTuple):
    """A call as the agent wrote it; `arguments` that are no object are refused by the episode."""

    name: str
    arguments: Any


class Taken(NamedTuple):
    """What came of a turn."""

    answers: list[str]
    """Of the calls, in order."""
    reply: str | None
    """The user's."""
    over: bool


def words(text: str) -> str:
    """What is said to the user in a message: without thoughts, and without calls."""
    return _CALL.sub("", _THOUGHT.sub("", text).rpartition("</think>")[2]).strip()


def calls(text: str) -> list[Call]:
    """The calls in a message, in order; one that cannot be read has no name."""
    return [_read(each) for each in _CALL.findall(_THOUGHT.sub("", text).rpartition("</think>")[2])]


def take(episode: play.Episode, said: str, made: list[Call]) -> Taken:
    """Say, call, and end where nothing was called and nobody answers."""
    reply = episode.say(said) if said.strip() else None
    answers = [episode.call(*call)[0] for call in made]
    if not made and reply is None:
        episode.finish()
    return Taken(answers, reply, episode.ended is not None)


def guide(tools: list[dict[str, Any]]) -> str:
    """How to call these tools, in words for a model that is given text alone."""
    listed = "\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools)
    return (
        "# Tools\n\nYou may call one or more functions. Their signatures stand within <tools></tools>:\n"
        f"<tools>\n{listed}\n</tools>\n\nFor each call write a JSON object with its name and arguments within these tags:\n"
        '<tool_call>\n{"name": <name>, "arguments": <object>}\n</tool_call>\nEverything else you write is said to the user.')


def _read(text: str) -> Call:
    try:
        asked = json.loads(text)
    except (ValueError, RecursionError):
        return Call("", None)
    if not isinstance(asked, dict) or not isinstance(asked.get("name"), str):
        return Call("", None)
    return Call(asked["name"], asked.get("arguments", {}))
