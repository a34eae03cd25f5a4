"""A model in the place of a tool that nobody knows the answer of, where whoever runs the rollout asked for it.

In: the tool's descriptor, a call that was answered `unknown`, the nearest calls on record, and the episode so far. Out: the
question for a model, and from its reply an answer of tier `model`. Such an answer stands in the journal alone: nothing is
learnt of it, what the call may have changed stays unknown, and the grader, who replays without a model, holds the
episode for one that leaned on an unknown answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from .canonical import canonical
from .records import Result

LONGEST = 2000
"""Signs of each answer that are shown."""
LATEST = 20
"""Steps of the episode that are shown."""

_ASKS = """\
You stand in for one tool of a service. Answer the last call as the real tool would: in the form of its answers on record, in
agreement with what the episode has shown so far, and with an error in the tool's own words where it would refuse.

The tool:
{tool}

Calls of it on record, the nearest first, each with its answer:
{examples}

The episode so far:
{journal}

The call to answer:
{call}

Reply with one JSON object and nothing else: {{"content": "the answer as the text that the tool would send", "is_error": false}}
"""


def question(
    tool: dict[str, Any], arguments: dict[str, Any], examples: Iterable[tuple[str, str]], journal: list[dict[str, Any]]
) -> str:
    """What to ask a model. `examples`: (canonical arguments, answer); `journal`: the steps before the call."""
    shown = [f"{asked}\n-> {content[:LONGEST]}" for asked, content in examples]
    steps = [_step(row) for row in journal[-LATEST:]]
    return _ASKS.format(
        tool=canonical(tool), examples="\n".join(shown) or "none", journal="\n".join(steps) or "nothing was done yet",
        call=f"{tool['name']} {canonical(arguments)}")


def answer(reply: str) -> Result | None:
    """What the model answers, None where its reply is no such object."""
    begin, end = reply.find("{"), reply.rfind("}")
    try:
        found = json.loads(reply[begin:end + 1])
    except (ValueError, RecursionError):
        return None
    content, is_error = (found.get("content"), found.get("is_error", False)) if isinstance(found, dict) else (None, None)
    return Result(content, is_error, "model") if isinstance(content, str) and isinstance(is_error, bool) else None


def _step(row: dict[str, Any]) -> str:
    if row["kind"] != "call":
        return canonical({name: row[name] for name in ("kind", "content", "reply") if name in row})
    return f"{row['tool']} {canonical(row['arguments'])}\n-> {row['content'][:LONGEST]}"
