"""Ways through a task: the known solution, its recorded sessions, the episodes of rollouts.

In: the warehouse, and the files that a run and rollouts wrote. Out: moves, each with what was answered where it was made.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from env_builder.runtime.canonical import canonical
from env_builder.runtime.trajectory import OWN
from pipelines.browser import rolled
from pipelines.browser.library import Library
from pipelines.playing import Move
from warehouse.errors import Missing

Row = dict[str, Any]


class Way(NamedTuple):
    """Moves that somebody made."""

    name: str
    """`solution`, `session:ID` or `episode:ID`."""
    says: str
    moves: list[Move]
    answers: list[Row | None]
    """What was answered to each move where it was made: {"content", "is_error", "reply"}, of an episode also what `rolled`
    keeps of a move; None: it is not on record."""
    about: Row
    """Of an episode what the rollout says of it (docs/rollouts.md), `finish`: what was kept of its end, and `rest`: calls after
    its last move that never reached the room."""

    @property
    def is_rollout(self) -> bool:
        """Was it played in a room, so that what was answered is what the room answered then?"""
        return self.name.startswith("episode:")


def ways(library: Library, room: Path, task: Row) -> list[Row]:
    """The ways there are through a task: {"name", "says"}."""
    found = []
    if _solution(library, room, task["task_id"]) is not None:
        found.append({"name": "solution", "says": "the known solution"})
    found += [{"name": f"session:{row['session_id']}", "says": f"session {row['session_id']}"} for row in task["sessions"]]
    return found + [{"name": f"episode:{row['episode_id']}", "says": _says(row)}
                    for row in rolled.of_task(library, room.name, task["task_id"])]


def _says(row: Row) -> str:
    """An episode in a line."""
    reward = "unscored" if row["reward"] is None else f"reward {row['reward']:g}"
    drawn = f", seed {row['seed']}" if row["seed"] else ""
    return f"rollout of {row['policy']}, attempt {row['attempt'] + 1}{drawn}: {reward}"


def way(library: Library, room: Path, task: Row, name: str) -> Way:
    """The way called so. Raises Missing."""
    kind, _, own = name.partition(":")
    if kind == "session":
        moves, answers = _of_session(library, own)
        if moves:
            return Way(name, f"session {own}", moves, answers, {"session_id": own})
    elif kind == "episode":
        row = rolled.trajectory(library, room.name, own)
        about = row["extra"][OWN] if row else {}
        if row is not None and about.get("task_id") == task["task_id"]:
            return _of_episode(name, row, about)
    elif kind == "solution" and (row := _solution(library, room, task["task_id"])) is not None:
        steps: list[Move] = row["steps"]
        return Way("solution", "the known solution", steps, _recorded(library, task, steps), {})
    raise Missing(f"no way {name!r} through task {task['task_id']}", mend="choose one that the task's page lists")


def _solution(library: Library, room: Path, task_id: str) -> Row | None:
    return library.line(library.out / "rewards" / room.name / "solutions.jsonl", "task_id", task_id)


def _of_episode(name: str, told: Row, about: Row) -> Way:
    rows, rest = rolled.moves_of(told)
    moves = [row for row in rows if row["kind"] in ("say", "call")]
    finish = next((row for row in rows if row["kind"] == "finish"), None)
    return Way(name, _says(about), *_moves(moves), {**about, "finish": finish, "rest": rest})


def _of_session(library: Library, session_id: str) -> tuple[list[Move], list[Row | None]]:
    """The agent's moves of a recorded session after the task's opening, with what was answered."""
    rows = library.rows(
        "select kind, role, content, tool, arguments, is_error, requestor from core.turns where session_id = $id "
        "order by position", id=session_id)
    moves: list[Row] = []
    for row in rows:
        if row["kind"] == "message" and row["role"] == "assistant" and row["content"]:
            moves.append({"kind": "say", "content": row["content"], "reply": None})
        elif row["kind"] == "message" and row["role"] == "user" and moves and moves[-1]["kind"] == "say":
            moves[-1]["reply"] = row["content"]
        elif row["kind"] == "call" and row["requestor"] != "user" and row["arguments"] is not None:
            moves.append({"kind": "call", "tool": row["tool"], "arguments": json.loads(row["arguments"]),
                          "content": row["content"], "is_error": row["is_error"]})
    return _moves(moves)


def _moves(rows: Sequence[Row]) -> tuple[list[Move], list[Row | None]]:
    moves = [{"say": row["content"]} if row["kind"] == "say" else {"tool": row["tool"], "arguments": row["arguments"]}
             for row in rows]
    return moves, [{"reply": None, "content": None, "is_error": None, **row} for row in rows]


def _recorded(library: Library, task: Row, steps: Sequence[Move]) -> list[Row | None]:
    """What was answered to the known solution's steps in the good session that it is; None where nobody logged it."""
    for session_id in task.get("good_session_ids") or ():
        moves, answers = _of_session(library, session_id)
        if [key_of(move) for move in moves[:len(steps)]] == [key_of(step) for step in steps]:
            return answers[:len(steps)]
    return [None] * len(steps)


def key_of(move: Row) -> str:
    """What makes a move the same as another one: what was said, or the call with its arguments."""
    if "tool" in move:
        return canonical([move["tool"], move["arguments"]])
    return canonical(["say", move["say"] if "say" in move else move["content"]])
