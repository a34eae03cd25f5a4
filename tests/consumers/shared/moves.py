"""Known steps as the turns of an agent that waits for answers: words, or words and the call that follows them."""

from __future__ import annotations

import json
from typing import Any

Move = tuple[str, list[dict[str, Any]]]


def moves(room: Any, task_id: str, steps: list[dict[str, Any]]) -> list[Move]:
    """(words, calls) of each turn; words that nobody answers stand beside the call after them."""
    episode, found, words = room.begin(task_id), [], ""
    for step in steps:
        if "say" in step:
            assert not words, "two turns of words without an answer cannot be told by an agent that waits"
            words = step["say"] if episode.say(step["say"]) is None else found.append((step["say"], [])) or ""
        else:
            episode.call(step["tool"], step["arguments"])
            found.append((words, [step]))
            words = ""
    return [*found, (words, [])]


def text(move: Move) -> str:
    """Return a turn as a model writes it."""
    words, calls = move
    made = [json.dumps({"name": call["tool"], "arguments": call["arguments"]}) for call in calls]
    return "\n".join([*([words] if words else []), *(f"<tool_call>\n{each}\n</tool_call>" for each in made)])


def can_wait(room: Any, task_id: str) -> bool:
    """Can the known solution be made by an agent that ends where nobody answers?"""
    try:
        return bool(moves(room, task_id, room.solution(task_id)))
    except AssertionError:
        return False
