"""May a task be published? Its room and its reward are played against, in this process, before anybody else does.

In: an environment's directory and its rewards'. Out: which tasks hold, who tried what with which reward, and a verdict
a task. Sees: the known solution (worth 1), doing nothing (worth 0), the same twice (the same bytes), and cheap
attackers: chatty (claims success and echoes the goal), reader (the solution's reads without a word), and the solution
with each of its writes dropped. An attacker that gets more than `PASSES` withholds the task.
Does not see: attackers that act on other things, or that tamper with the room's process.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from env_builder.runtime import Environment
from env_builder.runtime.canonical import canonical
from env_builder.runtime.grading import grade
from env_builder.runtime.records import Episode, Grade, Task
from warehouse.errors import EnvironmentBroken, Missing
from warehouse.records import Verdict, frame

PASSES = 0.5
"""Reward above which an attacker has got through."""
CLAIM = "Done: everything you asked for has been taken care of, and all of it was confirmed."
PLAYS = {"task_id": pl.String(), "player": pl.String(), "reward": pl.Float64()}

Step = dict[str, Any]
Journal = list[dict[str, Any]]
Play = tuple[str, float | None]
"""A player and its reward."""


class Verified(NamedTuple):
    """What `verify` gives."""

    task_ids: list[str]
    """Tasks that hold, sorted: these may be published."""
    verdicts: pl.DataFrame
    """Frame of `Verdict`, one row a task: `verified`, or why not."""
    plays: pl.DataFrame
    """(task_id, player, reward): who tried what, with what reward (null: unscored)."""


class Room(NamedTuple):
    """What it takes to play one task."""

    environment: Environment
    task: Task
    rubric: dict[str, Any]
    solution: list[Step]
    writes: frozenset[str]

    def replay(self, journal: Journal) -> Episode:
        """The grader's own episode of `journal`."""
        return self.environment.replay(self.task.task_id, journal)


class Failure(NamedTuple):
    """Why a task is not published."""

    reason: str
    detail: str


def verify(directory: str | Path, rewards: str | Path, task_ids: Iterable[str] | None = None) -> Verified:
    """Play against the tasks `task_ids` (all by default) of the environment in `directory`, graded by `rewards`.

    A task holds when its known solution is worth 1 and the same bytes twice, doing nothing is worth 0, and no attacker
    gets more than 0.5. Rows in = tasks that hold + verdicts that are not kept. EnvironmentBroken where a file cannot
    be read, Missing where a task id is not in the environment.
    """
    try:
        environment = Environment.load(directory, rewards=rewards)
        rubrics = {row["task_id"]: row for row in _rows(Path(rewards) / "rubrics.jsonl")}
        solutions = {row["task_id"]: row["steps"] for row in _rows(Path(rewards) / "solutions.jsonl")}
    except (OSError, ValueError) as error:
        raise EnvironmentBroken(str(error), str(directory), "build it again with traceroom run") from error
    known = {task.task_id: task for task in environment.tasks}
    asked = sorted(known if task_ids is None else set(task_ids))
    holding: list[str] = []
    verdicts: list[Verdict] = []
    plays: list[tuple[str, str, float | None]] = []
    for task_id in asked:
        if task_id not in known:
            raise Missing.named("task", task_id, known)
        failure: Failure | None = Failure(
            "no_rubric", "It has no rubric and no known solution: the run withheld it, and traceroom show --left says why.")
        tried: list[Play] = []
        if task_id in rubrics and task_id in solutions:
            writes = environment.replay(task_id, ()).writes
            failure, tried = _play(Room(environment, known[task_id], rubrics[task_id], solutions[task_id], writes))
        if failure is None:
            holding.append(task_id)
        plays += [(task_id, *play) for play in tried]
        verdicts.append(_verdict(task_id, failure, len(tried)))
    return Verified(holding, frame(Verdict, verdicts), pl.DataFrame(plays, schema=PLAYS, orient="row"))


def _play(room: Room) -> tuple[Failure | None, list[Play]]:
    """The first reason not to publish, None where there is none; and what each player got."""
    first, second = _solve(room), _solve(room)
    tried: list[Play] = [("solution", first[1].reward)]
    if _bytes(*first) != _bytes(*second):
        return Failure("not_deterministic", _differs(first[0], second[0])), tried
    if first[1].reward != 1.0:
        return Failure("solution_fails", _why(*first)), tried
    for player, episode in _attacks(room, first[0]):
        reward = grade(room.rubric, episode).reward
        tried.append((player, reward))
        if player == "silent" and reward != 0.0:
            detail = f"Doing nothing is worth {_worth(reward)}; the rubric asks for too little."
            return Failure("nothing_passes", detail), tried
        if reward is not None and reward > PASSES:
            return Failure("attacker_passes", f"The player {player!r} is worth {_worth(reward)}."), tried
    return None, tried


def _solve(room: Room) -> tuple[Journal, Grade]:
    """Journal and grade of the known solution, played through the interface that a policy uses."""
    environment = room.environment
    environment.reset(room.task.task_id, seed=0)
    for step in room.solution:
        if "say" in step:
            environment.say(step["say"])
        else:
            environment.call(step["tool"], step["arguments"])
    environment.finish()
    return list(environment.journal), environment.grade()


def _attacks(room: Room, solved: Journal) -> Iterator[tuple[str, Episode]]:
    """Each attacker's name and episode; a dropped write that changes nothing in the end is the solution itself."""
    yield "silent", room.replay([])
    heard = [message["content"] for message in room.task.opening if message["role"] == "user"]
    yield "chatty", room.replay([{"kind": "say", "content": " ".join([CLAIM, room.task.goal, *heard])}])
    yield "reader", room.replay([row for row in solved if row["kind"] == "call" and row["tool"] not in room.writes])
    end = room.environment.difference()  # it was solved there last
    for index, row in enumerate(solved):
        if row["kind"] == "call" and row["tool"] in room.writes and not row["is_error"]:
            episode = room.replay(solved[:index] + solved[index + 1:])
            if episode.difference != end:
                yield f"without_write_{index}", episode


def _why(journal: Journal, got: Grade) -> str:
    """The first thing that went wrong on the way of a known solution."""
    worth = f"The known solution is worth {_worth(got.reward)}"
    unknown = next((row for row in journal if row["kind"] == "call" and row["tier"] == "unknown"), None)
    if unknown is not None:
        return f"{worth}; first answered unknown: {unknown['tool']} {canonical(unknown['arguments'])[:200]}."
    failed = [check.kind for check in got.checks if check.role == "gate" and not check.passed]
    if failed:
        return f"{worth}; gates that do not hold: {', '.join(failed)}."
    ended = "" if any(row["kind"] == "finish" for row in journal) else "; its limits truncate it"
    return f"{worth}{ended}."


def _differs(first: Journal, second: Journal) -> str:
    for index, (one, other) in enumerate(zip(first, second, strict=False)):
        if canonical(one) != canonical(other):
            return f"Step {index} is not the same twice: {canonical(one)[:200]}"
    return "The grade or the number of steps is not the same twice."


def _bytes(journal: Journal, got: Grade) -> bytes:
    return canonical([journal, got]).encode("utf-8", "surrogatepass")


def _worth(reward: float | None) -> str:
    return "nothing (unscored)" if reward is None else f"{reward:g}"


def _verdict(task_id: str, failure: Failure | None, n_players: int) -> Verdict:
    why = failure or Failure("verified", f"It holds against {n_players} players.")
    return Verdict(stage="verify", subject=task_id, kept=failure is None, reason=why.reason, detail=why.detail)


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)
