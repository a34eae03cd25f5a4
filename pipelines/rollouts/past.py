"""Episodes of another policy, as off-policy evaluation needs them (env_builder/evaluation.py).

In: ATIF trajectories that a rollout kept, and the policy in question. Out: a `Logged` an episode: its reward, the
log-probabilities of its turns where they were recorded (the sum of a turn's `metrics.logprobs`), those under the policy where
it says them, and what the room gives the same moves. Sees turns as they were recorded; the end of an episode is a turn where
it stands as one.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from env_builder.evaluation import Logged
from env_builder.runtime import Environment
from env_builder.runtime.trajectory import OWN, journal
from pipelines.rollouts.kept import TRAJECTORIES, lines
from pipelines.rollouts.policies import Call, Named, Observation, Turn
from warehouse.errors import InputError

_ROLES = {"agent": "assistant", "user": "user", "system": "system"}
Row = dict[str, Any]


class Taken(NamedTuple):
    """A turn that was taken."""

    seen: Observation
    """What the policy would have seen before it."""
    turn: Turn
    logprob: float | None
    """Natural logarithm of its probability; None where it was not recorded."""


def trajectories(paths: Iterable[Path]) -> Iterator[Row]:
    """The rollouts' trajectories of these files, or folders with a trajectories.jsonl, each episode once. Raises InputError."""
    known = set()
    for path in paths:
        file = path / TRAJECTORIES if path.is_dir() else path
        if not file.is_file():
            raise InputError("there is no log of episodes", str(file), "name a folder of rollouts or its trajectories.jsonl")
        for row in lines(file):
            about = (row.get("extra") or {}).get(OWN) or {}
            if "task_id" not in about or "episode_id" not in about:
                raise InputError("a line is no trajectory of a rollout", str(file), "give what traceroom rollout kept")
            if about["episode_id"] not in known:
                known.add(about["episode_id"])
                yield row


def logged(rows: Iterable[Row], room: Environment, named: Named) -> list[Logged]:
    """Each episode, for the policy in question."""
    found = []
    for row in rows:
        about, turns = row["extra"][OWN], list(taken(row, room.tools))
        modelled = room.grade_journal(about["task_id"], journal(row), about["seed"], about["conditions"]).reward
        found.append(Logged(
            about["task_id"], about.get("reward"), [turn.logprob for turn in turns],
            [named.logprob(turn.seen, turn.turn) for turn in turns] if named.logprob else None, modelled))
    return found


def taken(trajectory: Row, tools: list[Row]) -> Iterator[Taken]:
    """The turns of an episode, each with what was to be seen before it."""
    about, messages, n_turns = trajectory["extra"][OWN], [], 0
    for step in trajectory["steps"]:
        calls = step.get("tool_calls") or ()
        if step["source"] != "agent" or not ("llm_call_count" in step or calls or "extra" in step):  # the opening
            messages.append({"role": _ROLES[step["source"]], "content": step["message"]})
            continue
        turn = Turn(step["message"], tuple(
            Call(call["function_name"], call["arguments"], call["tool_call_id"]) for call in calls))
        seen = Observation(about["task_id"], about["seed"], about["attempt"], list(messages), tools, n_turns)
        chances = (step.get("metrics") or {}).get("logprobs")
        yield Taken(seen, turn, math.fsum(chances) if chances else None)
        n_turns += 1
        messages += _told(step, turn)


def _told(step: Row, turn: Turn) -> Iterator[Row]:
    """A turn as chat messages, and what the tools answered."""
    message: Row = {"role": "assistant", "content": turn.said or None}
    if turn.calls:
        message["tool_calls"] = [
            {"id": call.call_id, "type": "function",
             "function": {"name": call.tool, "arguments": json.dumps(call.arguments, ensure_ascii=False)}}
            for call in turn.calls]
    yield message
    for result in (step.get("observation") or {}).get("results", ()):
        yield {"role": "tool", "tool_call_id": result["source_call_id"], "content": result["content"]}
