"""Tasks that begin in the midst of an episode: after an answer of the known solution, or where a failed session can be saved.

In: a kit. Out: the kit with such tasks beside its own, and a decision on every beginning that was tried. The world is in the
state after the steps before it, which the environment makes itself at reset (`prefix` in tasks.jsonl). The rubric is the
task's own, which stood its audit, and grades the whole episode. A start is kept if the rest of the known solution earns 1,
doing nothing earns 0, and neither the rest's words alone nor the rest without its write calls earn more than 0.5. What was
written is then loaded and played once more.

Sees: replays in the environment. Does not see: whether a person would have begun there; failures that another way than the
known solution's could still have saved.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import NamedTuple

import polars as pl

from env_builder import bundle
from env_builder.audit.plays import PASSES, play_through
from env_builder.exports.kit import Kit, Row, kit_of
from env_builder.runtime import Environment
from env_builder.runtime.canonical import canonical, digest
from env_builder.runtime.files import TASKS, rows_of
from warehouse.records import Decision, frame
from warehouse.vocabulary import FAILED, outcome_of

AFTER_ANSWER, BEFORE_FAILURE = "after-answer", "before-failure"
KINDS = (AFTER_ANSWER, BEFORE_FAILURE)
STAGE = "starts"
Steps = list[Row]


class MidwayStart(NamedTuple):
    """A beginning in the midst of an episode."""

    task: Row
    """The task that it is of, as tasks.jsonl has it."""
    prefix: Steps
    """Steps before it."""
    rest: Steps
    """Known solution from there."""
    kind: str
    origin: str
    """The task or session whose steps the prefix has."""

    @property
    def task_id(self) -> str:
        """Return its id: the same for the same steps of the same task."""
        own: str = self.task["task_id"]
        return digest(canonical(["start", own, self.prefix]))[:len(own)]

    @property
    def subject(self) -> str:
        """Return what it is called in decisions."""
        return f"{self.origin} step {len(self.prefix)}"


class Unusable(NamedTuple):
    """Why there is no start."""

    subject: str
    reason: str
    detail: str


def with_starts(kit: Kit, kinds: Collection[str], place: Path) -> tuple[Kit, pl.DataFrame]:
    """Write the kit with its starts of these `kinds` into the folder `place`; return it, and a frame of `Decision`.

    The room gets this version's runtime: an older one would not make the steps before the agent's first move.
    """
    tried = list(_tried(kit, kinds))
    starts = {start.task_id: start for start in reversed(tried) if isinstance(start, MidwayStart)}
    rejected = [each for each in tried if isinstance(each, Unusable)]
    room, grader = place / "environments" / kit.name, place / "rewards" / kit.name
    _write(kit, starts, room, grader)
    failed = _failed(Environment.load(room, grader), starts)
    if failed:
        _write(kit, {task_id: start for task_id, start in starts.items() if task_id not in failed}, room, grader)
    rejected += [Unusable(starts[task_id].subject, "not_deterministic", detail) for task_id, detail in failed.items()]
    decisions = [Decision(stage=STAGE, subject=each.subject, kept=False, reason=each.reason, detail=each.detail)
                 for each in rejected]
    decisions += [Decision(stage=STAGE, subject=start.subject, kept=True, reason=start.kind.replace("-", "_"),
                           detail=f"It is task {task_id}.") for task_id, start in starts.items() if task_id not in failed]
    return kit_of(room, grader), frame(Decision, decisions).sort("subject", "reason")


def _failed(environment: Environment, starts: dict[str, MidwayStart]) -> dict[str, str]:
    """Play each start as it was written; return what differs by task."""
    played = {task_id: (_reward(environment, task_id, start.rest), _reward(environment, task_id, []))
              for task_id, start in starts.items()}
    return {task_id: f"Written, its known solution earns {solved} and doing nothing {idle}."
            for task_id, (solved, idle) in played.items() if (solved, idle) != (1, 0)}


def _tried(kit: Kit, kinds: Collection[str]) -> Iterator[MidwayStart | Unusable]:
    """Try the beginnings of each task of the kit, in order."""
    environment = Environment.load(kit.room, kit.grader)
    solutions = {row["task_id"]: row["steps"] for row in rows_of(kit.grader / "solutions.jsonl")}
    sessions = list(rows_of(kit.grader / "sessions.jsonl"))
    for task in kit.tasks:
        solution = solutions.get(task["task_id"], [])
        if AFTER_ANSWER in kinds:
            for number, step in enumerate(solution, 1):
                if "tool" in step:
                    start = MidwayStart(task, solution[:number], solution[number:], AFTER_ANSWER, task["task_id"])
                    yield _judged(environment, start)
        if BEFORE_FAILURE in kinds and solution:
            for row in sessions:
                if row["task_id"] == task["task_id"] and outcome_of(row["probability"]) == FAILED:
                    yield _before_failure(environment, task, solution, row)


def _before_failure(environment: Environment, task: Row, solution: Steps, session: Row) -> MidwayStart | Unusable:
    """Return the last beginning in a failed session from which the rest of the known solution still earns 1."""
    steps = session["steps"]
    for number in range(len(steps), 0, -1):
        prefix = steps[:number]
        for rest in _rests(solution, prefix):
            if _reward(environment, task["task_id"], [*prefix, *rest]) == 1:
                return _judged(environment, MidwayStart(task, prefix, rest, BEFORE_FAILURE, session["session_id"]))
    return Unusable(session["session_id"], "certain_from_the_start",
                    "The rest of the known solution succeeds after none of its steps.")


def _rests(solution: Steps, prefix: Steps) -> Iterator[Steps]:
    """Yield what of the known solution may remain after other steps: the calls that were not made, with the words that were
    not spoken (the last ones always), or with all words."""
    made = Counter(_call(step) for step in prefix if "tool" in step)
    n_said = sum("say" in step for step in prefix)
    fewer: Steps = []
    every: Steps = []
    for number, step in enumerate(solution):
        if "tool" in step:
            made[_call(step)] -= 1
            kept = made[_call(step)] < 0
        else:
            n_said -= 1
            kept = n_said < 0 or number == len(solution) - 1
        fewer += [step] if kept else []
        every += [step] if kept or "say" in step else []
    yield fewer
    if every != fewer:
        yield every


def _judged(environment: Environment, start: MidwayStart) -> MidwayStart | Unusable:
    """Return the start if there is something left to do, and the rest of the known solution does it."""
    task_id, prefix, rest = start.task["task_id"], start.prefix, start.rest
    if not any("tool" in step for step in rest):
        return Unusable(start.subject, "only_words_left", "No call of the known solution remains after it.")
    idle = _reward(environment, task_id, prefix)
    if any(row.get("tier") == "unknown" for row in environment.journal):
        return Unusable(start.subject, "prefix_unknown", "An answer before it is unknown.")
    if idle is None:
        return Unusable(start.subject, "unscored", "Doing nothing after it is unscored.")
    if idle > 0:
        return Unusable(start.subject, "already_done", f"Doing nothing after it earns {idle:g}.")
    solved = _reward(environment, task_id, [*prefix, *rest])
    if solved != 1:
        return Unusable(start.subject, "rest_fails", f"The rest of the known solution earns {solved}.")
    for reason, what, some in (
            ("words_suffice", "its calls", [step for step in rest if "say" in step]),
            ("reads_suffice", "its write calls", [step for step in rest if step.get("tool") not in environment.writes])):
        reward = _reward(environment, task_id, [*prefix, *some]) if some != rest else 0.0
        if reward is None or reward > PASSES:
            return Unusable(start.subject, reason, f"The rest of the known solution earns {reward} without {what}.")
    return start


def _reward(environment: Environment, task_id: str, steps: Steps) -> float | None:
    """Return the reward of an episode of these steps."""
    play_through(environment, task_id, steps)
    return environment.grade().reward


def _call(step: Row) -> tuple[str, str]:
    return step["tool"], canonical(step["arguments"])


def _write(kit: Kit, starts: dict[str, MidwayStart], room: Path, grader: Path) -> None:
    """Write the kit's two directories with these tasks beside its own."""
    for folder, source in ((room, kit.room), (grader, kit.grader)):
        bundle.renew(folder)
        bundle.copy_files(source, folder, "runtime")
    bundle.copy_runtime(room)
    added = sorted(starts.items())
    _extend(room / TASKS, [{**start.task, "task_id": task_id, "derived_from": start.task["task_id"], "prefix": start.prefix}
                           for task_id, start in added])
    rubrics = {row["task_id"]: row for row in rows_of(kit.grader / "rubrics.jsonl")}
    _extend(grader / "rubrics.jsonl", [{**rubrics[start.task["task_id"]], "task_id": task_id} for task_id, start in added])
    _extend(grader / "solutions.jsonl", [{"task_id": task_id, "steps": start.rest} for task_id, start in added])
    bundle.rewrite(room, grader, len(kit.tasks) + len(added), len(rubrics) + len(added))


def _extend(path: Path, rows: list[Row]) -> None:
    """Add rows to a file of JSON lines, which stays sorted by task."""
    text = path.read_text("utf-8") if path.is_file() else ""
    lines = [f"{line}\n" for line in text.split("\n") if line]
    lines += [canonical(row) + "\n" for row in rows]
    path.write_text("".join(sorted(lines, key=lambda line: str(json.loads(line)["task_id"]))), "utf-8", newline="\n")
