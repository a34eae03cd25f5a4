"""A model that plays the known solutions of an environment's tasks: a real endpoint on loopback that speaks chat completions.

It knows a task by what its user says first, and where a conversation stands by how many answers it holds. Calls that stand in a
row are one answer, to be made side by side.
"""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from env_builder.runtime.files import rows_of
from tests.endpoint import Endpoint, chatting

Row = dict[str, Any]


def scripted(environment: Path) -> AbstractContextManager[Endpoint]:
    """Return the endpoint of an environment's solutions, while it runs."""
    rewards = environment.parent.parent / "rewards" / environment.name
    openings = {row["task_id"]: next(each["content"] for each in row["opening"] if each["role"] == "user")
                for row in rows_of(environment / "tasks.jsonl")}
    turns = {openings[row["task_id"]]: turns_of(row["steps"]) for row in rows_of(rewards / "solutions.jsonl")}

    def converse(asked: Row) -> Row:
        words = next((_text(each) for each in asked["messages"] if each["role"] == "user"), "")
        own = [turns[opening] for opening in turns if opening in words]
        place = sum(each["role"] == "assistant" for each in asked["messages"])
        if len(own) != 1 or place >= len(own[0]):
            return {"content": "Goodbye."}
        names = [each["function"]["name"] for each in asked.get("tools") or ()]
        return _message(own[0][place], place, names)

    return chatting(converse)


def turns_of(steps: list[Row]) -> list[list[Row]]:
    """Return the steps of a solution as turns: words, or calls side by side."""
    turns: list[list[Row]] = []
    for step in steps:
        if "tool" in step and turns and "tool" in turns[-1][0]:
            turns[-1].append(step)
        else:
            turns.append([step])
    return turns


def _message(turn: list[Row], place: int, names: list[str]) -> Row:
    if "say" in turn[0]:
        return {"content": turn[0]["say"]}
    return {"content": None, "tool_calls": [
        {"id": f"call_{place}_{number}", "type": "function", "function": {
            "name": next((name for name in names if name.endswith(call["tool"])), call["tool"]),
            "arguments": json.dumps(call["arguments"])}} for number, call in enumerate(turn)]}


def _text(message: Row) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "".join(str(part.get("text", "")) for part in content)
