"""Rollouts as pages show them: what each policy came to, the episodes of a task, and one episode move by move.

In: OUT/rollouts/NAME, as `traceroom rollout` keeps it (docs/rollouts.md), also of one that is still going or was killed. Out:
rows. Sees: what was kept when it was played: answers, tiers, times, the state after each move, rewards and checks. Does not
see: rollouts that were kept in another folder (`--out`).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from env_builder.runtime.files import rows_of
from env_builder.runtime.trajectory import OWN, journal
from pipelines.browser.library import Library
from pipelines.browser.paging import SIZE, Paged, begins, paged
from pipelines.rollouts.kept import TRAJECTORIES, summary, trajectories
from pipelines.rollouts.results import DIFFICULTY, EPISODES, is_good, known_difficulty, results

Row = dict[str, Any]
ROLLOUTS = "rollouts"
MOST = 200
"""Episodes of one task on a page."""
_KEPT = ("episode_id", "task_id", "policy", "reward", "seed", "conditions", "attempt", "ended", "n_moves", "n_unknown",
         "n_refused", "seconds", "content_digest", "rewards_digest")
_MARKS = ("latency_ms", "state_hash", "reward")


def rolled(library: Library) -> list[Row]:
    """Rooms that were rolled out in: {"environment", "n", "policies"}, a policy a row of `pipelines.rollouts.results`."""
    folder = library.out / ROLLOUTS
    rooms = sorted(path.parent for path in folder.glob(f"*/{TRAJECTORIES}")) if folder.is_dir() else []
    found = []
    for room in rooms:
        by_task = _episodes(library, room)
        told = [row for rows in by_task.values() for row in rows]
        found.append({"environment": room.name, "n": len(told), "policies": results(told, 1)})
    return found


def by_task(library: Library, name: str, after: str | None = None) -> Paged:
    """A page of (policy, task) of a room, what succeeds least first: how often, and an episode to look at."""
    folder = library.out / ROLLOUTS / name
    episodes = _episodes(library, folder)
    rows = sorted(known_difficulty(folder) if (folder / DIFFICULTY).is_file() else [],
                  key=lambda row: (row["n_good"] / row["n"], row["task_id"], row["policy"]))
    begin = next((key for key in begins(after, 1) if isinstance(key, int) and key > 0), 0)
    shown = []
    for place, row in enumerate(rows[begin:begin + SIZE + 1], begin + 1):
        own = [each for each in episodes.get(row["task_id"], ()) if each["policy"] == row["policy"]]
        worst = next((each for each in own if not is_good(each["reward"])), own[0] if own else None)
        shown.append({**row, "place": place, "episode": worst, "goal": _goal(library, row["task_id"])})
    return paged(shown, ("place",))


def _goal(library: Library, task_id: str) -> str | None:
    row = library.row("select goal from mart.tasks where task_id = $id union all select goal from mart.variants "
                      "where task_id = $id", id=task_id)
    return row["goal"] if row else None


def of_task(library: Library, name: str, task_id: str) -> list[Row]:
    """What rollouts made of a task, those that failed first: what is known of each episode but its moves."""
    found = _episodes(library, library.out / ROLLOUTS / name).get(task_id, [])
    return sorted(found, key=lambda row: (is_good(row["reward"]), row["policy"], row["seed"], row["attempt"]))[:MOST]


def trajectory(library: Library, name: str, episode_id: str) -> Row | None:
    """The trajectory of an episode; None where it is not kept."""
    # a trajectory says its session's id before anything that an agent wrote
    row = library.line(library.out / ROLLOUTS / name / TRAJECTORIES, "session_id", episode_id)
    return row if row is not None and row.get("extra", {}).get(OWN, {}).get("episode_id") == episode_id else None


def moves_of(told: Row) -> tuple[list[Row], list[Row]]:
    """The moves of a trajectory as rows of a journal, in the room's own names, each with what was kept of it besides:
    `latency_ms`, `state_hash`, `reward`, `thought` and `refused`, calls before it that never reached the room. And those
    calls that no move came after."""
    marks, rest = _marks(told)
    return [{**mark, **row} for row, mark in zip(journal(told), marks, strict=True)], rest


def _marks(told: Row) -> tuple[list[Row], list[Row]]:
    marks, refused = list[Row](), list[Row]()
    for step in told["steps"]:
        extra, thought = step.get("extra") or {}, step.get("reasoning_content")
        own = [extra["say"]] if "say" in extra else []
        asked = {result["source_call_id"]: result for result in (step.get("observation") or {}).get("results", ())}
        for call in step.get("tool_calls") or ():
            result = asked.get(call["tool_call_id"])
            if result is not None and result["extra"].get("refused"):
                refused.append({"tool": call["function_name"], "content": result["content"],
                                "arguments": result["extra"].get("arguments", call["arguments"])})
            elif result is not None:
                own.append(result["extra"])
        own += [extra["finish"]] if "finish" in extra else []
        for mark in own:
            marks.append({**{kept: mark.get(kept) for kept in _MARKS}, "thought": thought, "refused": refused})
            refused, thought = [], None
    return marks, refused


def _episodes(library: Library, folder: Path) -> dict[str, list[Row]]:
    """Task -> its episodes. `episodes.jsonl` is made at the end of a rollout; until then the trajectories are read."""
    told, made = folder / EPISODES, folder / TRAJECTORIES
    if told.is_file() and (not made.is_file() or told.stat().st_mtime_ns >= made.stat().st_mtime_ns):
        return library.read(told, lambda path: _grouped(rows_of(path))) or {}
    return library.read(made, lambda path: _grouped(map(summary, trajectories(path.parent)))) or {}


def _grouped(rows: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row["task_id"], []).append({name: row[name] for name in _KEPT})
    return found
