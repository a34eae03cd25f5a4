"""May a task be published? Its room and its reward are played against, before anybody else does.

In: an environment's directory and its rewards'. Out: which tasks hold, who tried what with which reward, a verdict a task, and
the audit as it ships with the rewards. What is tried on a task, and what it must stand, is in `env_builder.audit`.
Does not see: what a program inside the room's container can do; `audit/tampering.py` looks there.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from env_builder.audit import Audited, Depth, Failure, Session, Subject, audit
from env_builder.audit.kept import again, given_to_all, key_of, written
from env_builder.audit.plays import Play
from env_builder.audit.report import Report, report
from env_builder.audit.watched import Watched
from env_builder.runtime.files import TASKS
from env_builder.runtime.rubrics import Rubric
from warehouse.errors import EnvironmentBroken, Missing
from warehouse.records import Verdict, frame

PLAYS = {"task_id": pl.String(), "player": pl.String(), "kind": pl.String(), "reward": pl.Float64(),
         "should": pl.String(), "says": pl.String()}
NO_RUBRIC = Failure(
    "no_rubric", "It has no rubric and no known solution: the run withheld it, and traceroom show --left says why.")


class Verified(NamedTuple):
    """What `verify` gives."""

    task_ids: list[str]
    """Tasks that hold, sorted: these may be published."""
    verdicts: pl.DataFrame
    """Frame of `Verdict`, one row a task: `verified`, or why not."""
    plays: pl.DataFrame
    """(task_id, player, kind, reward, should, says): who tried what, with what reward (null: unscored), and what a right
    reward does with it (null: nobody knows)."""
    report: Report
    """The audit as it ships with the rewards."""
    audits: dict[str, str]
    """What was played, to be `kept` next time; {} where nothing was kept."""


class _Side(NamedTuple):
    """The grader's side, by task."""

    rubrics: dict[str, str]
    """As JSON: read, they take ten times as much."""
    solutions: dict[str, list[dict[str, Any]]]
    sessions: dict[str, list[Session]]


def verify(
    directory: str | Path, rewards: str | Path, task_ids: Iterable[str] | None = None, depth: Depth | None = None,
    executor: Executor | None = None, n_beside: int = 1, kept: Mapping[str, str] | None = None,
) -> Verified:
    """Play against the tasks `task_ids` (all by default) of the environment in `directory`, graded by `rewards`.

    A task holds when its known solution is worth 1 and the same bytes twice, doing nothing is worth 0, and no attacker, no
    mutant of the solution and no session known to be bad gets more than 0.5. Rows in = tasks that hold + verdicts that are
    not kept. EnvironmentBroken where a file cannot be read, Missing where a task id is not in the environment.
    `executor`: `n_beside` processes, which take their shares of the tasks; what comes of it is the same.
    `kept`: `audits` of the same code's last time: what would be played as it was then is not played again.
    """
    depth = depth or Depth()
    environment, side = _load(directory, rewards)
    known = {task.task_id: task for task in environment.tasks}
    asked = sorted(known if task_ids is None else set(task_ids))
    for task_id in asked:
        if task_id not in known:
            raise Missing.named("task", task_id, known)
    keys = {} if kept is None else _keys(environment, Path(directory), side, asked, depth)
    stands = {task_id: kept[key] for task_id, key in keys.items() if kept and key in kept}
    found = {task_id: told for task_id, text in stands.items() if (
        told := again(text, side.sessions.get(task_id, []), environment.sources(known[task_id])))}
    new = [task_id for task_id in asked if task_id not in found]
    n_shares = 1 + n_beside if executor and 2 * len(new) > len(asked) else 1  # a few are played before a process has begun
    others = [executor.submit(_share, str(directory), str(rewards), new[n::n_shares], depth)
              for n in range(1, n_shares)] if executor else []
    played = _audited(environment, side, new[::n_shares], depth)
    for other in others:
        played |= other.result()
    found |= {task_id: audited for task_id, (audited, _) in played.items()}
    audits = {key: played[task_id][1] if task_id in played else stands[task_id] for task_id, key in keys.items()}
    rubric_ids = {task_id: json.loads(rubric).get("rubric_id") for task_id, rubric in side.rubrics.items()}
    return _verified(dict(sorted(found.items())), rubric_ids, depth, audits)


def _keys(environment: Watched, directory: Path, side: _Side, task_ids: list[str], depth: Depth) -> dict[str, str]:
    """What names the audit of each task that has one."""
    rows = {row["task_id"]: row for row in _rows(directory / TASKS)}
    given = given_to_all(environment.tools, _rows(directory / "behaviour.jsonl"))
    return {
        name: key_of(given, rows[name], json.loads(side.rubrics[name]), side.solutions[name], side.sessions.get(name, []),
                     depth)
        for name in task_ids if name in side.rubrics and name in side.solutions}


def _load(directory: str | Path, rewards: str | Path) -> tuple[Watched, _Side]:
    try:
        return Watched.opened(directory), _side(Path(rewards))
    except (OSError, ValueError) as error:
        raise EnvironmentBroken(str(error), str(directory), "build it again with traceroom run") from error


def _share(directory: str, rewards: str, task_ids: list[str], depth: Depth) -> dict[str, tuple[Audited, str]]:
    """What comes of these tasks, in a process that has loaded nothing yet."""
    return _audited(*_load(directory, rewards), task_ids, depth)


def _audited(environment: Watched, side: _Side, task_ids: list[str], depth: Depth) -> dict[str, tuple[Audited, str]]:
    """What comes of these tasks, and as text that is kept ("" of a task that has no rubric)."""
    known = {task.task_id: task for task in environment.tasks}
    found: dict[str, tuple[Audited, str]] = {}
    for task_id in task_ids:
        if task_id not in side.rubrics or task_id not in side.solutions:
            found[task_id] = Audited(NO_RUBRIC, []), ""
            continue
        task, sessions = known[task_id], side.sessions.get(task_id, [])
        notes = environment.watch(task)
        subject = Subject(environment, task, Rubric.read(json.loads(side.rubrics[task_id])), side.solutions[task_id], sessions)
        audited = audit(subject, environment.values, depth)
        found[task_id] = audited, written(audited, notes.written(environment.sources(task)))
    return found


def _verified(
    found: dict[str, Audited], rubric_ids: dict[str, str | None], depth: Depth, audits: dict[str, str]
) -> Verified:
    plays = [(task_id, play.player, play.kind, play.reward, play.should, play.says)
             for task_id, audited in found.items() for play in audited.plays]
    verdicts = [_verdict(task_id, audited.failure, audited.plays) for task_id, audited in found.items()]
    return Verified(
        [task_id for task_id, audited in found.items() if audited.failure is None], frame(Verdict, verdicts),
        pl.DataFrame(plays, schema=PLAYS, orient="row"), report(found, rubric_ids, depth), audits)


def _verdict(task_id: str, failure: Failure | None, plays: list[Play]) -> Verdict:
    why = failure or Failure("verified", f"It holds against {len(plays)} players.")
    return Verdict(stage="verify", subject=task_id, kept=failure is None, reason=why.reason, detail=why.detail)


def _side(rewards: Path) -> _Side:
    sessions: dict[str, list[Session]] = defaultdict(list)
    if (rewards / "sessions.jsonl").exists():
        for row in _rows(rewards / "sessions.jsonl"):
            sessions[row["task_id"]].append(Session(row["session_id"], row["probability"], row["steps"]))
    return _Side(
        {json.loads(line)["task_id"]: line for line in _lines(rewards / "rubrics.jsonl")},
        {row["task_id"]: row["steps"] for row in _rows(rewards / "solutions.jsonl")}, sessions)


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    return map(json.loads, _lines(path))


def _lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8") as lines:
        yield from lines
