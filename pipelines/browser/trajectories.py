"""List and read the trajectories of a task: the known solution, its recorded sessions, the episodes of rollouts.

Input: the warehouse, and the files of a run and of rollouts (OUT/rollouts/NAME, docs/rollouts.md), also of unfinished ones.
Output: moves, each with the answer that was given: of rollouts also tier, time, state after the move, rewards and checks. Does
not see rollouts in another folder (`--out`)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from env_builder.runtime.canonical import canonical
from env_builder.runtime.files import rows_of
from env_builder.runtime.trajectory import OWN, journal
from pipelines.browser.library import Library
from pipelines.inspection.views import SIZE, Paged, begins, paged
from pipelines.playing import Move
from pipelines.rollouts.kept import TRAJECTORIES, summary, trajectories
from pipelines.rollouts.results import DIFFICULTY, EPISODES, is_good, known_difficulty, results
from warehouse.errors import Missing

Row = dict[str, Any]


class TaskTrajectory(NamedTuple):
    """Moves that somebody made."""

    name: str
    """`solution`, `session:ID` or `episode:ID`."""
    description: str
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


def trajectories_of(library: Library, room: Path, task: Row) -> list[Row]:
    """List the trajectories of a task: {"name", "description"}."""
    listed = []
    if _solution(library, room, task["task_id"]) is not None:
        listed.append({"name": "solution", "description": "the known solution"})
    if task.get("of_room") != "site":   # of a site the known solution is what the session did
        listed += [{"name": f"session:{row['session_id']}", "description": f"session {row['session_id']}"}
                   for row in task["sessions"]]
    return listed + [{"name": f"episode:{row['episode_id']}", "description": _describe(row)}
                    for row in episodes_of(library, room.name, task["task_id"])]


def _describe(row: Row) -> str:
    """Return an episode in a line."""
    reward = "unscored" if row["reward"] is None else f"reward {row['reward']:g}"
    drawn = f", seed {row['seed']}" if row["seed"] else ""
    return f"rollout of {row['policy']}, attempt {row['attempt'] + 1}{drawn}: {reward}"


def trajectory_of(library: Library, room: Path, task: Row, name: str) -> TaskTrajectory:
    """Read the trajectory of this name. Raises Missing."""
    kind, _, own = name.partition(":")
    if kind == "session":
        moves, answers = _of_session(library, own)
        if moves:
            return TaskTrajectory(name, f"session {own}", moves, answers, {"session_id": own})
    elif kind == "episode":
        row = read_trajectory(library, room.name, own)
        about = row["extra"][OWN] if row else {}
        if row is not None and about.get("task_id") == task["task_id"]:
            return _of_episode(name, row, about)
    elif kind == "solution" and (row := _solution(library, room, task["task_id"])) is not None:
        steps: list[Move] = row["steps"]
        return TaskTrajectory("solution", "the known solution", steps, _recorded(library, task, steps), {})
    raise Missing(f"no way {name!r} through task {task['task_id']}", hint="choose one that the task's page lists")


def _solution(library: Library, room: Path, task_id: str) -> Row | None:
    return library.line(library.out / "rewards" / room.name / "solutions.jsonl", "task_id", task_id)


def _of_episode(name: str, trajectory: Row, about: Row) -> TaskTrajectory:
    rows, rest = moves_of(trajectory)
    moves = [row for row in rows if row["kind"] in ("say", "call")]
    finish = next((row for row in rows if row["kind"] == "finish"), None)
    return TaskTrajectory(name, _describe(about), *_moves(moves), {**about, "finish": finish, "rest": rest})


def _of_session(library: Library, session_id: str) -> tuple[list[Move], list[Row | None]]:
    """Return the agent's moves of a recorded session after the task's opening, with what was answered."""
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
    """Return what was answered to the known solution's steps in the good session that it is; None where nobody logged it."""
    for session_id in task.get("succeeded_session_ids") or ():
        moves, answers = _of_session(library, session_id)
        if [key_of(move) for move in moves[:len(steps)]] == [key_of(step) for step in steps]:
            return answers[:len(steps)]
    return [None] * len(steps)


def key_of(move: Row) -> str:
    """Return what makes a move the same as another one: what was said, or the call with its arguments."""
    if "tool" in move:
        return canonical([move["tool"], move["arguments"]])
    return canonical(["say", move["say"] if "say" in move else move["content"]])


ROLLOUTS = "rollouts"
MOST = 200
"""Episodes of one task on a page."""
_KEPT = ("episode_id", "task_id", "policy", "reward", "seed", "perturbations", "attempt", "ended", "n_moves", "n_unknown",
         "n_refused", "seconds", "content_digest", "rewards_digest")
_MARKS = ("latency_ms", "state_hash", "reward")


def rolled_out(library: Library) -> list[Row]:
    """Return environments with rollouts: {"environment", "n", "policies"}, a policy a row of `pipelines.rollouts.results`."""
    folder = library.out / ROLLOUTS
    rooms = sorted(path.parent for path in folder.glob(f"*/{TRAJECTORIES}")) if folder.is_dir() else []
    listed = []
    for room in rooms:
        by_task = episodes_by_task(library, room)
        episodes = [row for rows in by_task.values() for row in rows]
        listed.append({"environment": room.name, "n": len(episodes), "policies": results(episodes, 1)})
    return listed


def policies_by_task(library: Library, name: str, after: str | None = None, size: int | None = SIZE) -> Paged:
    """Return a page of (policy, task) of a room, what succeeds least first: how often, and an episode to inspect. `size`
    None: all of them."""
    folder = library.out / ROLLOUTS / name
    episodes = episodes_by_task(library, folder)
    rows = sorted(known_difficulty(folder) if (folder / DIFFICULTY).is_file() else [],
                  key=lambda row: (row["n_succeeded"] / row["n"], row["task_id"], row["policy"]))
    begin = next((key for key in begins(after, 1) if isinstance(key, int) and key > 0), 0)
    shown = []
    for place, row in enumerate(rows[begin:None if size is None else begin + size + 1], begin + 1):
        own = [each for each in episodes.get(row["task_id"], ()) if each["policy"] == row["policy"]]
        worst = next((each for each in own if not is_good(each["reward"])), own[0] if own else None)
        shown.append({**row, "place": place, "episode": worst, "goal": goal_of(library, row["task_id"])})
    return Paged(shown, None) if size is None else paged(shown, ("place",))


def goal_of(library: Library, task_id: str) -> str | None:
    """Return what a task's user wants; None if the warehouse does not have the task."""
    row = library.row("select goal from mart.tasks where task_id = $id union all select goal from mart.variants "
                      "where task_id = $id", id=task_id)
    return row["goal"] if row else None


def episodes_of(library: Library, name: str, task_id: str) -> list[Row]:
    """Return what rollouts made of a task, those that failed first: what is known of each episode but its moves."""
    episodes = episodes_by_task(library, library.out / ROLLOUTS / name).get(task_id, [])
    return sorted(episodes, key=lambda row: (is_good(row["reward"]), row["policy"], row["seed"], row["attempt"]))[:MOST]


def read_trajectory(library: Library, name: str, episode_id: str) -> Row | None:
    """Return the trajectory of an episode; None where it is not kept."""
    # a trajectory says its session's id before anything that an agent wrote
    row = library.line(library.out / ROLLOUTS / name / TRAJECTORIES, "session_id", episode_id)
    return row if row is not None and row.get("extra", {}).get(OWN, {}).get("episode_id") == episode_id else None


def moves_of(trajectory: Row) -> tuple[list[Row], list[Row]]:
    """Return the moves of a trajectory as rows of a journal, in the room's own names, each with what was kept of it besides:
    `latency_ms`, `state_hash`, `reward`, `thought` and `refused`, calls before it that never reached the room. And those
    calls that no move came after."""
    marks, refused = list[Row](), list[Row]()
    for step in trajectory["steps"]:
        extra, thought = step.get("extra") or {}, step.get("reasoning_content")
        own = [extra["say"]] if "say" in extra else []
        results = {result["source_call_id"]: result for result in (step.get("observation") or {}).get("results", ())}
        for call in step.get("tool_calls") or ():
            result = results.get(call["tool_call_id"])
            if result is not None and result["extra"].get("refused"):
                refused.append({"tool": call["function_name"], "content": result["content"],
                                "arguments": result["extra"].get("arguments", call["arguments"])})
            elif result is not None:
                own.append(result["extra"])
        own += [extra["finish"]] if "finish" in extra else []
        for mark in own:
            marks.append({**{kept: mark.get(kept) for kept in _MARKS}, "thought": thought, "refused": refused})
            refused, thought = [], None
    return [{**mark, **row} for row, mark in zip(journal(trajectory), marks, strict=True)], refused


def episodes_by_task(library: Library, folder: Path) -> dict[str, list[Row]]:
    """Return task -> its episodes. `episodes.jsonl` is made at the end of a rollout; until then the trajectories are read."""
    episodes, made = folder / EPISODES, folder / TRAJECTORIES
    if episodes.is_file() and (not made.is_file() or episodes.stat().st_mtime_ns >= made.stat().st_mtime_ns):
        return library.read(episodes, lambda path: _grouped(rows_of(path))) or {}
    return library.read(made, lambda path: _grouped(map(summary, trajectories(path.parent)))) or {}


def _grouped(rows: Iterable[Row]) -> dict[str, list[Row]]:
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(row["task_id"], []).append({name: row[name] for name in _KEPT})
    return groups
