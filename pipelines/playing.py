"""An episode by hand: moves of a person or a script in, steps and a grade out.

Loads room and grader into this process (docs/environment.md, "Three sides"): for people and trusted scripts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from env_builder import verify
from env_builder.audit import DEEP
from env_builder.runtime import Environment
from env_builder.runtime.records import Grade
from env_builder.runtime.trajectory import OWN
from env_builder.runtime.trajectory import journal as journal_of
from pipelines.resources import Ask
from warehouse.errors import EnvironmentBroken, InputError, Missing

Move = dict[str, Any]
"""{"tool", "arguments"} or {"say"}."""

DRAWN = ("fault", "expired", "paged", "latency_ms")
"""What a journal row of a call says beside the answer, where a condition drew it."""
_LIKE_A_CALL = re.compile(r"\S+(?: \S+)?\s*\{.*\}")
"""A word or two and something in braces: nobody speaks so."""


class Room:
    """An environment in which a task has begun."""

    def __init__(self, environment: Environment, task_id: str, seed: int, conditions: Sequence[str] = ()) -> None:
        self.environment = environment
        self.observation = environment.reset(task_id, seed=seed, conditions=conditions)
        self.tools: list[dict[str, Any]] = self.observation.tools

    @property
    def ended(self) -> str | None:
        """None, "terminated" or "truncated"."""
        return self.environment.ended


def begin(
    path: Path, rewards: Path | None, task_id: str, seed: int, conditions: Sequence[str] = (),
    bindings: Mapping[str, str] | None = None, ask: Ask | None = None,
) -> Room:
    """Load the environment at `path` and begin a task. Raises EnvironmentBroken.

    `conditions`: names as `Environment.reset` takes them; `bindings`: tool -> source as `Environment.bind` takes
    them; `ask`: a model that answers what would be `unknown`.
    """
    environment = load(path, rewards)
    try:
        for tool, source in (bindings or {}).items():
            environment.bind(tool, source)
        environment.live(ask)
        return Room(environment, task_id, seed, conditions)
    except (KeyError, ValueError, ImportError, AttributeError, OSError) as error:
        said = error if isinstance(error, OSError) or not error.args else error.args[0]
        raise InputError(f"the room cannot begin so ({said})", str(path), "see docs/environment.md") from error


def load(path: Path, rewards: Path | None) -> Environment:
    """The environment at `path`, with the grader's side at `rewards` or where a run puts it. Raises EnvironmentBroken."""
    try:
        return Environment.load(str(path), rewards=str(rewards) if rewards else None)
    except (OSError, ValueError, KeyError) as error:
        raise EnvironmentBroken(
            f"the environment cannot be loaded ({error})", str(path), "build it again with: traceroom run") from error


def scripted(path: Path) -> Iterator[Move]:
    """Moves of a file of JSON lines. Raises InputError with file and line."""
    if not path.is_file():
        raise InputError("there is no such script", str(path), "give a file of JSON lines")
    for number, line in enumerate(path.read_text("utf-8").split("\n"), 1):
        if line.strip():
            yield _move(line, f"{path}, line {number}")


def _move(line: str, where: str) -> Move:
    mend = 'write {"tool": "…", "arguments": {…}} or {"say": "…"}'
    try:
        move = json.loads(line)
    except ValueError as error:
        raise InputError(f"this is no JSON ({error})", where, mend) from error
    told = isinstance(move, dict) and isinstance(move.get("say"), str)
    called = isinstance(move, dict) and isinstance(move.get("tool"), str) and isinstance(move.get("arguments", {}), dict)
    if told == called:
        raise InputError("this is neither a call nor something said", where, mend)
    return {"say": move["say"]} if told else {"tool": move["tool"], "arguments": move.get("arguments", {})}


def typed(line: str, tools: set[str]) -> Move:
    """The move that a person typed: a tool's name and a JSON object, or words. Raises InputError, and Missing where
    something like a call names no tool."""
    called = [name for name in tools if line == name or line.startswith(f"{name} ")]
    if not called and _LIKE_A_CALL.fullmatch(line):
        raise Missing.named("tool", line.partition("{")[0].strip(), tools, "/tools says what each does")
    if not called:
        return {"say": line}
    name = max(called, key=len)  # names may hold spaces, and one begin another
    return _move(json.dumps({"tool": name, "arguments": _arguments(line[len(name):])}), "your line")


def _arguments(text: str) -> Any:
    try:
        return json.loads(text) if text.strip() else {}
    except ValueError as error:
        raise InputError(f"the arguments are no JSON ({error})", "your line", 'write them as {"argument": 1}') from error


def played(room: Room, moves: Iterable[Move]) -> Iterator[dict[str, Any]]:
    """Make the moves until they or the episode end; gives each step as a row of the journal."""
    for move in moves:
        if "say" in move:
            reply = room.environment.say(move["say"])
            yield {"kind": "say", "content": move["say"], "reply": reply}
        else:
            result = room.environment.call(move["tool"], move["arguments"])
            drawn = {name: value for name, value in room.environment.journal[-1].items() if name in DRAWN}
            yield {"kind": "call", **move, "content": result.content, "is_error": result.is_error, "tier": result.tier, **drawn}
        if room.ended:
            return
    room.environment.finish()


def graded(room: Room, mode: str = "eval", ask: Ask | None = None) -> dict[str, Any] | None:
    """{"reward", "tally", "checks"} of the episode; None where its task has no verified reward. `ask`: for judges."""
    try:
        grade = room.environment.grade(mode, ask)
    except ValueError as error:
        raise InputError(f"the episode cannot be graded ({error})", mend="see docs/rewards.md") from error
    return None if grade.reward is None and not grade.checks else _told(grade)


def _told(grade: Grade) -> dict[str, Any]:
    return {"reward": grade.reward, "tally": grade.tally, "checks": [check._asdict() for check in grade.checks]}


class Asked(NamedTuple):
    """How journals are to be graded."""

    mode: str = "eval"
    ask: Ask | None = None
    """The model that judges ask."""
    discount: float | None = None
    """Of later rewards, where those of steps are wanted too."""


def graded_journals(
    path: Path, rewards: Path | None, journals: Path, bindings: Mapping[str, str], asked: Asked
) -> Iterator[dict[str, Any]]:
    """{"task_id", "seed", "reward", "tally", "checks", and "steps" where asked for} of each line of a file of journals.

    Raises InputError with file and line. What a line says of task, seed and conditions is the word of who served it.
    """
    if not journals.is_file():
        raise InputError("there is no such file of journals", str(journals), "write one with: traceroom serve --journals FILE")
    environment = load(path, rewards)
    for tool, source in bindings.items():
        environment.bind(tool, source)
    known = {task.task_id for task in environment.tasks}
    for number, line in enumerate(journals.read_text("utf-8").split("\n"), 1):
        if not line:
            continue
        where = f"{journals}, line {number}"
        try:
            row = json.loads(line)
            if "schema_version" in row:  # a trajectory of `rollout`
                row = {**row["extra"][OWN], "journal": journal_of(row)}
            task_id, journal = row["task_id"], list(row["journal"])
            rolled = (row.get("seed", 0), tuple(row.get("conditions", ())))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"this is no journal ({error})", where, "take the lines as serve or rollout wrote them") from error
        if task_id not in known:
            raise Missing.named("task", str(task_id), known, f"the line is {where}")
        try:
            grade = environment.grade_journal(task_id, journal, *rolled, asked.mode, asked.ask)
            steps = {} if asked.discount is None else {
                "steps": environment.shaped(task_id, journal, *rolled, asked.discount, asked.ask)}
        except ValueError as error:
            raise InputError(f"the episode cannot be graded ({error})", where, "see docs/rewards.md") from error
        yield {"task_id": task_id, "seed": rolled[0], **_told(grade), **steps}


def verified(path: Path, rewards: Path | None, deep: bool = False) -> dict[str, Any]:
    """{"n_tasks", "tasks": ids that hold, "verdicts", "plays", "audit"} of the environment at `path`."""
    depth = DEEP if deep else None
    found = verify.verify(path, rewards or path.parent.parent / "rewards" / path.name, depth=depth)
    return {"n_tasks": found.verdicts.height, "tasks": found.task_ids, "verdicts": found.verdicts.to_dicts(),
            "plays": found.plays.to_dicts(), "audit": found.report.totals}
