"""May a task be published? Its room and its reward are played against, before anybody else does.

In: an environment's directory and its rewards'. Out: which tasks hold, who tried what with which reward, a decision a task, and
the audit as it ships with the rewards. What is tried on a task, and what it must stand, is in `env_builder.audit`.
Does not see: what a program inside the room's container can do (`tests/env_builder/audit/test_tampering.py` does).
"""

from __future__ import annotations

import gc
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Executor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from env_builder.audit import (
    Audited,
    AuditReport,
    Depth,
    Failure,
    GradedAttack,
    RecordedSession,
    Subject,
    audit,
    play_battery,
    report,
)
from env_builder.audit.kept import Watched, again, given_to_all, key_of, written
from env_builder.audit.plays import GradedPlay
from env_builder.audit.targets import ServiceTargets, service_targets
from env_builder.audit.values import Arrivals
from env_builder.runtime import Environment
from env_builder.runtime.canonical import canonical
from env_builder.runtime.files import TASKS, rows_of
from env_builder.runtime.records import Task
from env_builder.runtime.rubrics import ParsedRubric
from warehouse.errors import EnvironmentBroken, Missing
from warehouse.records import Decision, frame

PLAYS = {"task_id": pl.String(), "player": pl.String(), "kind": pl.String(), "reward": pl.Float64(),
         "should": pl.String(), "description": pl.String()}
NO_RUBRIC = Failure(
    "no_rubric", "It has no rubric and no known solution: the run could not verify it, and traceroom show --rejected says why.")


class Verified(NamedTuple):
    """What `verify` gives."""

    task_ids: list[str]
    """Tasks that hold, sorted: these may be published."""
    decisions: pl.DataFrame
    """Frame of `Decision`, one row a task: `verified`, or why not."""
    plays: pl.DataFrame
    """(task_id, player, kind, reward, should, description): who tried what, with what reward (null: unscored), and what a right
    reward does with it (null: unknown)."""
    report: AuditReport
    """The audit as it ships with the rewards."""
    audits: dict[str, str]
    """What was played, to be `kept` next time; {} where nothing was kept."""


class _TaskRows(NamedTuple):
    """The grader's side, by task."""

    rubrics: dict[str, str]
    """As JSON: read, they take ten times as much."""
    solutions: dict[str, list[dict[str, Any]]]
    sessions: dict[str, list[RecordedSession]]
    targets: ServiceTargets


class AuditedRoom(NamedTuple):
    """An environment with its rewards, as it is played."""

    environment: Watched
    side: _TaskRows


def verify(
    directory: str | Path, rewards: str | Path, task_ids: Iterable[str] | None = None, depth: Depth | None = None,
    executor: Executor | None = None, n_beside: int = 1, kept: Mapping[str, str] | None = None,
    arrivals: Arrivals | None = None, loaded: AuditedRoom | None = None,
) -> Verified:
    """Play against the tasks `task_ids` (all by default) of the environment in `directory`, graded by `rewards`.

    A task holds when its known solution is worth 1 and the same bytes twice, doing nothing is worth 0, and no attacker, no
    mutant of the solution and no session known to be bad gets more than 0.5. Rows in = tasks that hold + decisions that are
    not kept. EnvironmentBroken where a file cannot be read, Missing where a task id is not in the environment.
    `executor`: `n_beside` processes, which take their shares of the tasks; what comes of it is the same.
    `kept`: `audits` of the same code's last time: what would be played as it was then is not played again.
    `arrivals`: which calls on record the attackers of a task draw from; all where there is none. `loaded`: as `load` gives.
    """
    depth = depth or Depth()
    environment, side = loaded or load(directory, rewards)
    environment.arrived(arrivals or Arrivals({}, {}))
    tasks = {task.task_id: task for task in environment.tasks}
    ordered_ids = _ordered_ids(tasks, task_ids)
    keys = {} if kept is None else _keys(environment, Path(directory), side, ordered_ids, depth)
    stands = {task_id: kept[key] for task_id, key in keys.items() if kept and key in kept}
    still_valid = _still_valid(environment, side, stands)
    new = [task_id for task_id in ordered_ids if task_id not in still_valid]
    # a few are played before a process has begun
    n_shares = 1 + n_beside if executor and 2 * len(new) > len(ordered_ids) else 1
    others = [executor.submit(_share, str(directory), str(rewards), new[n::n_shares], depth, arrivals)
              for n in range(1, n_shares)] if executor else []
    played = _audited(environment, side, new[::n_shares], depth)
    for other in others:
        played |= other.result()
    still_valid |= {task_id: audited for task_id, (audited, _) in played.items()}
    audits = {key: played[task_id][1] if task_id in played else stands[task_id] for task_id, key in keys.items()}
    rubric_ids = {task_id: json.loads(rubric).get("rubric_id") for task_id, rubric in side.rubrics.items()}
    audited_tasks = dict(sorted(still_valid.items()))
    decisions = [_decision(task_id, audited.failure, audited.plays) for task_id, audited in audited_tasks.items()]
    return Verified(
        [task_id for task_id, audited in audited_tasks.items() if audited.failure is None], frame(Decision, decisions),
        _plays_frame(audited_tasks), report(audited_tasks, rubric_ids, depth), audits)


def _plays_frame(audited_tasks: Mapping[str, Audited]) -> pl.DataFrame:
    plays = [(task_id, *play) for task_id, audited in audited_tasks.items() for play in audited.plays]
    return pl.DataFrame(plays, schema=PLAYS, orient="row")


def attack(
    directory: str | Path, rewards: str | Path, task_ids: Iterable[str] | None = None
) -> dict[str, list[GradedAttack] | Failure]:
    """Play the whole battery against tasks (all by default); by task id, what came of each attack or why none was played.
    Raises what `verify` does."""
    environment, side = load(directory, rewards)
    tasks = {task.task_id: task for task in environment.tasks}
    subjects = ((task_id, _subject(environment, side, tasks[task_id])) for task_id in _ordered_ids(tasks, task_ids))
    return {task_id: play_battery(subject, environment.values) if subject else NO_RUBRIC for task_id, subject in subjects}


def _ordered_ids(tasks: Mapping[str, Task], task_ids: Iterable[str] | None) -> list[str]:
    """Return the ids of the tasks to play, sorted. Raises Missing."""
    ordered_ids = sorted(tasks if task_ids is None else set(task_ids))
    for task_id in ordered_ids:
        if task_id not in tasks:
            raise Missing.named("task", task_id, tasks)
    return ordered_ids


def _keys(environment: Watched, directory: Path, side: _TaskRows, task_ids: list[str], depth: Depth) -> dict[str, str]:
    """Return what names the audit of each task that has one; none if apps of other kinds than `records` answer, unwatched."""
    if [app["kind"] for app in environment.manifest["apps"]] != ["records"]:
        return {}
    rows = {row["task_id"]: row for row in rows_of(directory / TASKS)}
    given = given_to_all(environment)
    presumed, usual = sorted(side.targets.presumed_reads), side.targets.usual_writes
    return {
        name: key_of(given, rows[name] | {"targets": [presumed, usual.get(name)]}, json.loads(side.rubrics[name]),
                     side.solutions[name], side.sessions.get(name, []), depth)
        for name in task_ids if name in side.rubrics and name in side.solutions}


def load(directory: str | Path, rewards: str | Path) -> AuditedRoom:
    """Load what is played. Raises EnvironmentBroken."""
    try:
        environment = Watched.load_room(directory)
        environment.verify_with(Path(rewards))
        return AuditedRoom(environment, _side(Path(rewards), environment))
    except (OSError, ValueError) as error:
        raise EnvironmentBroken(str(error), str(directory), "build it again with traceroom run") from error


def _share(
    directory: str, rewards: str, task_ids: list[str], depth: Depth, arrivals: Arrivals | None,
) -> dict[str, tuple[Audited, str]]:
    """Return what comes of these tasks, in a process that has loaded nothing yet."""
    environment, side = load(directory, rewards)
    environment.arrived(arrivals or Arrivals({}, {}))
    return _audited(environment, side, task_ids, depth)


@contextmanager
def _settled() -> Iterator[None]:
    """Let garbage be looked for among what is new alone: what is loaded is much, and stays."""
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


@_settled()
def _still_valid(environment: Watched, side: _TaskRows, kept: Mapping[str, str]) -> dict[str, Audited]:
    """Return what came of the tasks whose kept audits (by task id) count today."""
    tasks = {task.task_id: task for task in environment.tasks}
    return {task_id: valid for task_id, text in kept.items() if (
        valid := again(text, side.sessions.get(task_id, []), environment.sources(tasks[task_id])))}


@_settled()
def _audited(environment: Watched, side: _TaskRows, task_ids: list[str], depth: Depth) -> dict[str, tuple[Audited, str]]:
    """Return what comes of these tasks, and as text that is kept ("" of a task that has no rubric)."""
    tasks = {task.task_id: task for task in environment.tasks}
    audits: dict[str, tuple[Audited, str]] = {}
    for task_id in task_ids:
        task = tasks[task_id]
        subject = _subject(environment, side, task)
        if subject is None:
            audits[task_id] = Audited(NO_RUBRIC, []), ""
            continue
        notes = environment.watch(task)
        audited = audit(subject, environment.values, depth)
        audits[task_id] = audited, written(audited, notes.written(environment.sources(task)))
    return audits


def _subject(environment: Environment, side: _TaskRows, task: Task) -> Subject | None:
    """Return the task with all that is tried on it, None if it has no rubric."""
    task_id = task.task_id
    if task_id not in side.rubrics or task_id not in side.solutions:
        return None
    document = json.loads(side.rubrics[task_id])
    return Subject(environment, task, ParsedRubric.read(document), side.solutions[task_id], side.sessions.get(task_id, []),
                   side.targets.of(task_id, document))


def _decision(task_id: str, failure: Failure | None, plays: list[GradedPlay]) -> Decision:
    why = failure or Failure("verified", f"It holds against {len(plays)} players.")
    return Decision(stage="verify", subject=task_id, kept=failure is None, reason=why.reason, detail=why.detail)


def _side(rewards: Path, environment: Environment) -> _TaskRows:
    sessions: dict[str, list[RecordedSession]] = defaultdict(list)
    if (rewards / "sessions.jsonl").exists():
        for row in rows_of(rewards / "sessions.jsonl"):
            sessions[row["task_id"]].append(RecordedSession(row["session_id"], row["probability"], row["steps"]))
    solutions = {row["task_id"]: row["steps"] for row in rows_of(rewards / "solutions.jsonl")}
    trajectories = {task_id: [steps, *(one.steps for one in sessions.get(task_id, ()))] for task_id, steps in solutions.items()}
    return _TaskRows({row["task_id"]: canonical(row) for row in rows_of(rewards / "rubrics.jsonl")}, solutions, sessions,
                     service_targets(environment, trajectories))
