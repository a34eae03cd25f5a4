"""Sessions of logs of chat messages as steps: what the agent called, what was answered, what it said.

A result answers the latest unanswered call of its id, without an id the oldest unanswered call; results in parts are joined
by their text. That is how the scorers in ../shared/acceptance read them, so that figures agree; they do not read the text of
parts that hold it as `content`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from fidelity_data import rows


class Step(NamedTuple):
    """A call with its recorded answer, or words of the agent."""

    tool: str | None
    """None: the agent speaks."""
    arguments: dict[str, Any]
    content: str


def sessions(folder: Path) -> Iterator[tuple[str, list[Step]]]:
    """Each session's steps, in the order of the logs; of a log of completions the longest history is the session."""
    longest: dict[str, list[dict[str, Any]]] = {}
    for file in sorted((folder / "logs").glob("*.jsonl")):
        for row in rows(file):
            if "messages" in row:
                yield row["session_id"], list(_steps(row["messages"]))
            elif "request" in row:
                messages = [*row["request"]["messages"], row["response"]["choices"][0]["message"]]
                session_id = row["metadata"]["session_id"]
                if len(messages) > len(longest.get(session_id, ())):
                    longest[session_id] = messages
    for session_id, messages in longest.items():
        yield session_id, list(_steps(messages))


def _steps(messages: list[dict[str, Any]]) -> Iterator[Step]:
    waiting: list[tuple[str | None, dict[str, Any]]] = []
    done: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] == "assistant":
            calls = message.get("tool_calls") or []
            for call in calls:
                step = {"call": call, "content": None}
                waiting.append((call.get("id"), step))
                done.append(step)
            if _text(message.get("content")) and not calls:
                done.append({"call": None, "content": _text(message["content"])})
        elif message["role"] == "tool" and waiting:
            answers = message.get("tool_call_id") or message.get("id")
            pick = next((each for each in reversed(waiting) if answers and each[0] == answers), waiting[0])
            pick[1]["content"] = _text(message.get("content"))
            waiting.remove(pick)
    for step in done:
        if step["content"] is None:
            continue
        name, arguments = _call_of(step["call"])
        if arguments is not None:
            yield Step(name, arguments, step["content"])


def _call_of(call: dict[str, Any] | None) -> tuple[str | None, dict[str, Any] | None]:
    """Tool and arguments; arguments that are no JSON are None: nobody can make that call."""
    if call is None:
        return None, {}
    function = call["function"] if isinstance(call.get("function"), dict) else {
        "name": call.get("name") or call.get("function"), "arguments": call.get("arguments", call.get("args"))}
    arguments = function["arguments"]
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return function["name"], None
    return function["name"], arguments


def _text(content: Any) -> Any:
    if not isinstance(content, list):
        return content
    return "".join(part.get("text", part.get("content", "")) for part in content)
