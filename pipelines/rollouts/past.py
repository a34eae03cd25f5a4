"""Episodes of another policy, as off-policy evaluation needs them (env_builder/evaluation.py).

In: ATIF trajectories of a rollout, and the policy to evaluate. Out: a `Logged` per episode: its reward, the log-probabilities
of its turns if they were recorded (the sum of a turn's `metrics.logprobs`), those under the policy if it tells them, and the
reward that the environment gives the same moves. Sees turns as they were recorded; the end of an episode is a turn if it is
recorded as one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from env_builder.evaluation import Logged
from env_builder.runtime import Environment
from env_builder.runtime.trajectory import OWN, journal
from pipelines.rollouts.datasets import ROLES
from pipelines.rollouts.kept import TRAJECTORIES, distinct, lines
from pipelines.rollouts.policies import Call, Named, Observation, Turn
from warehouse.errors import InputError

Row = dict[str, Any]


class Taken(NamedTuple):
    """A turn that was taken."""

    observation: Observation
    """What the policy would have seen before it."""
    turn: Turn
    logprob: float | None
    """Natural logarithm of its probability; None where it was not recorded."""


def trajectories(paths: Iterable[Path]) -> Iterator[Row]:
    """Yield the trajectories of these files, or folders with a trajectories.jsonl, each episode once. Raises InputError."""
    def checked(path: Path) -> Iterator[Row]:
        file = path / TRAJECTORIES if path.is_dir() else path
        if not file.is_file():
            raise InputError("there is no log of episodes", str(file), "name a folder of rollouts or its trajectories.jsonl")
        for row in lines(file):
            about = (row.get("extra") or {}).get(OWN) or {}
            if "task_id" not in about or "episode_id" not in about:
                raise InputError("a line is no trajectory of a rollout", str(file), "name a file that traceroom rollout wrote")
            yield row

    return distinct(row for path in paths for row in checked(path))


def logged(rows: Iterable[Row], room: Environment, named: Named) -> list[Logged]:
    """Return each episode, as the evaluation of the policy takes it."""
    episodes = []
    for row in rows:
        about, turns = row["extra"][OWN], list(taken(row, room.tools))
        modelled = room.grade_journal(about["task_id"], journal(row), about["seed"], about["perturbations"]).reward
        episodes.append(Logged(
            about["task_id"], about.get("reward"), [turn.logprob for turn in turns],
            [named.logprob(turn.observation, turn.turn) for turn in turns] if named.logprob else None, modelled))
    return episodes


def taken(trajectory: Row, tools: list[Row]) -> Iterator[Taken]:
    """Yield the turns of an episode, each with the observation before it."""
    about, messages, n_turns = trajectory["extra"][OWN], [], 0
    for step in trajectory["steps"]:
        calls = step.get("tool_calls") or ()
        if step["source"] != "agent" or not ("llm_call_count" in step or calls or "extra" in step):  # the opening
            messages.append({"role": ROLES[step["source"]], "content": step["message"]})
            continue
        turn = Turn(step["message"], tuple(
            Call(call["function_name"], call["arguments"], call["tool_call_id"]) for call in calls))
        observation = Observation(about["task_id"], about["seed"], about["attempt"], list(messages), tools, n_turns)
        chances = (step.get("metrics") or {}).get("logprobs")
        yield Taken(observation, turn, math.fsum(chances) if chances else None)
        n_turns += 1
        messages.append(turn.as_message())
        messages += [{"role": "tool", "tool_call_id": result["source_call_id"], "content": result["content"]}
                     for result in (step.get("observation") or {}).get("results", ())]
