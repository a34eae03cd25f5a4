"""Replay: a recorded way through a task played step by step in the task's own room, and two ways side by side.

In: a room, a task, a way (the known solution, a recorded session, a rollout's episode). Out: rows, one a step, with the answer
of the room and its tier, the answer on record where there is one, what both differ in, and what the step changed. A play is
made anew for each page; the room is kept. Sees: what a policy would see. Does not see: what a real tool would answer today.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, NamedTuple

from env_builder.runtime import Environment
from env_builder.runtime.canonical import canonical
from env_builder.runtime.trajectory import OWN, journal
from pipelines.browser.changes import MOST, differences
from pipelines.browser.library import Library
from pipelines.playing import Move, Room, graded, load, played
from warehouse.errors import Missing

Row = dict[str, Any]
Look = Callable[[str], tuple[str | None, str | None]]
"""Name of a document -> as the episode began, and now."""


class Way(NamedTuple):
    """Moves that somebody made."""

    name: str
    """`solution`, `session:ID` or `episode:ID`."""
    says: str
    moves: list[Move]
    answers: list[Row | None]
    """What was answered to each move where it was made: {"content", "is_error", "reply"}; None: it is not on record."""
    about: Row


class Rooms:
    """The room that was looked into last, kept as long as its directory is the same."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._key: tuple[str, str] | None = None
        self._environment: Environment | None = None

    def play(self, path: Path, task_id: str, moves: Sequence[Move]) -> tuple[list[Row], Row]:
        """(messages that the task opens with, {"steps", "grade", "ended"}). Raises EnvironmentBroken, InputError."""
        with self._lock:
            digest = (path / "manifest.json").read_text("utf-8")
            if self._key != (str(path), digest):
                self._environment = load(path, None)
                self._key = str(path), digest
            assert self._environment is not None
            room = Room(self._environment, task_id, 0)
            return room.observation.messages, _played(room, moves)


def _played(room: Room, moves: Sequence[Move]) -> Row:
    before: Row = {"documents": {}, "acts": []}
    steps = []
    for step in played(room, moves):
        after = json.loads(canonical(room.environment.difference()))
        steps.append({**step, "changed": _moved(before, after, room.environment.episode().look)})
        before = after
    return {"steps": steps, "grade": graded(room), "ended": room.ended}


def _moved(before: Row, after: Row, look: Look | None) -> list[Row]:
    """What a step changed of the room's difference: its documents, and acts that leave none."""
    found = []
    for name, value in after.get("documents", {}).items():
        if value != before.get("documents", {}).get(name):
            begun = look(name)[0] if look else None
            one, other = _loaded(before.get("documents", {}).get(name, begun)), _loaded(value)
            moves = list(differences(one, other))[:MOST] if one is not None else []
            found.append({"key": name, "moves": moves, "after": value if isinstance(value, str) else canonical(value)})
    acts = after.get("acts", [])[len(before.get("acts", [])):]
    return [*found, *({"key": "an act that leaves no document", "moves": [], "after": canonical(act)} for act in acts)]


def _loaded(value: Any) -> Any:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return value


def ways(library: Library, room: Path, task: Row) -> list[Row]:
    """The ways there are through a task: {"name", "says"}."""
    found = []
    if library.line(_rewards(library, room) / "solutions.jsonl", "task_id", task["task_id"]):
        found.append({"name": "solution", "says": "the known solution"})
    found += [{"name": f"session:{row['session_id']}", "says": f"session {row['session_id']}"} for row in task["sessions"]]
    return found + [{"name": f"episode:{row['episode_id']}", "says": f"{row['policy']}, reward {row['reward']}"}
                    for row in episodes(library, room, task["task_id"])]


def way(library: Library, room: Path, task: Row, name: str) -> Way:
    """The way called so. Raises Missing."""
    kind, _, own = name.partition(":")
    if kind == "session":
        moves, answers = _of_session(library, own)
        if moves:
            return Way(name, f"session {own}", moves, answers, {"session_id": own})
    elif kind == "episode":
        row = library.line(_rollouts(library, room) / "trajectories.jsonl", "episode_id", own)
        about = row["extra"][OWN] if row else {}
        if row is not None and about.get("task_id") == task["task_id"]:
            rows = [each for each in journal(row) if each["kind"] in ("say", "call")]
            return Way(name, f"the rollout of {about.get('policy', 'a policy')}", *_moves(rows), about)
    elif (row := library.line(_rewards(library, room) / "solutions.jsonl", "task_id", task["task_id"])) is not None:
        steps: list[Move] = row["steps"]
        return Way("solution", "the known solution", steps, _recorded(library, task, steps), {})
    raise Missing(f"no way {name!r} through task {task['task_id']}", mend="choose one that the task's page lists")


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
    return moves, [{"reply": row.get("reply"), "content": row.get("content"), "is_error": row.get("is_error")} for row in rows]


def _recorded(library: Library, task: Row, steps: Sequence[Move]) -> list[Row | None]:
    """What was answered to the known solution's steps in the good session that it is; None where nobody logged it."""
    for session_id in task.get("good_session_ids") or ():
        moves, answers = _of_session(library, session_id)
        if [_key(move) for move in moves[:len(steps)]] == [_key(step) for step in steps]:
            return answers[:len(steps)]
    return [None] * len(steps)


def told(way: Way, play: Row) -> Iterator[Row]:
    """The steps of a play beside what was answered where they were first made: `differs` where both are not the same."""
    for place, step in enumerate(play["steps"]):
        answer = way.answers[place] if place < len(way.answers) else None
        own = step["content"] if step["kind"] == "call" else step["reply"]
        on_record = None if answer is None else answer["content"] if step["kind"] == "call" else answer["reply"]
        differs = answer is not None and step["kind"] == "call" and on_record is not None and own != on_record
        moves = list(differences(_loaded(on_record), _loaded(own)))[:MOST] if differs else []
        yield {**step, "place": place + 1, "own": own, "recorded": on_record, "is_recorded": answer is not None,
               "differs": differs, "moves": moves}


def aligned(one: Sequence[Row], other: Sequence[Row]) -> list[tuple[Row | None, Row | None, bool]]:
    """The steps of two plays side by side: (step or None, step or None, are they the same move)."""
    left_keys, right_keys = ([_key(step) for step in steps] for steps in (one, other))
    found: list[tuple[Row | None, Row | None, bool]] = []
    for what, a, b, c, d in SequenceMatcher(None, left_keys, right_keys, autojunk=False).get_opcodes():
        if what == "equal":
            found += [(left, right, True) for left, right in zip(one[a:b], other[c:d], strict=True)]
        else:
            pairs = max(b - a, d - c)
            found += [(one[a + n] if a + n < b else None, other[c + n] if c + n < d else None, False) for n in range(pairs)]
    return found


def _key(move: Row) -> str:
    if "tool" in move:
        return canonical([move["tool"], move["arguments"]])
    return canonical(["say", move["say"] if "say" in move else move["content"]])


def episodes(library: Library, room: Path, task_id: str) -> list[Row]:
    """What rollouts made of a task: {"episode_id", "policy", "reward", "seed", "attempt"}, at most 200."""
    path = _rollouts(library, room) / "episodes.jsonl"
    found = []
    if path.is_file():
        with path.open(encoding="utf-8") as file:
            rows = (json.loads(line) for line in file if task_id in line)
            found = [row for row in rows if row.get("task_id") == task_id]
    return found[:200]


def _rollouts(library: Library, room: Path) -> Path:
    return library.out / "rollouts" / room.name


def _rewards(library: Library, room: Path) -> Path:
    return library.out / "rewards" / room.name
