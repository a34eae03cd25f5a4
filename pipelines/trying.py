"""Try changes of rubrics before a run: corrections that wait, and a person's file, against the published build.

Input: the folder of a run, corrections or checks. Output: for each task that they reach what the audit makes of the changed
rubric (env_builder/audit/trial.py). Nothing is written. Tasks come from the published and the unverified environments,
rubrics, solutions and sessions from the warehouse. Does not see: tasks without a rubric or without an environment."""

from __future__ import annotations

import json
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from env_builder import users
from env_builder.audit import Depth, RecordedSession
from env_builder.audit.kept import Watched
from env_builder.audit.targets import ServiceTargets, Steps, service_targets
from env_builder.audit.trial import Trial, TrialSubject, try_rubric
from env_builder.rewards.corrections import Corrected, recorrected, renamed, uncorrected
from env_builder.rewards.persons import SUFFIX, StatedCheck
from env_builder.runtime.canonical import canonical
from env_builder.runtime.files import rows_of
from env_builder.runtime.rubrics import FORMAT
from pipelines.browser.corrections import waiting
from pipelines.browser.library import Library
from pipelines.browser.sites import find_any_task, rooms
from pipelines.building.rewards import stated_changes, stated_checks
from pipelines.screen import many
from warehouse.errors import EnvironmentBroken, InputError, Missing
from warehouse.records import Check
from warehouse.store import Store

MOST_TASKS = 40
"""Tasks that are tried at once by default."""
Row = dict[str, Any]


class Edit(NamedTuple):
    """What a person would change."""

    corrections: Mapping[str, Corrected | None]
    """By subject; None: a withdrawn one."""
    stated: Sequence[StatedCheck] = ()
    file: str = ""
    """A file whose former checks and changes they replace."""


class _Service(NamedTuple):
    """What the trials of a service's tasks share."""

    rubrics: dict[str, Row]
    """Task id -> {"checks", "solution"}."""
    sessions: dict[str, list[RecordedSession]]
    leading: dict[str, str]
    """Task id -> the session that gives its solution."""
    good: dict[str, list[str]]
    families: dict[str, str]
    chances: dict[str, float | None]


REASONS = {
    "verified": "holds", "solution_fails": "the known solution fails", "not_deterministic": "is not deterministic",
    "nothing_passes": "doing nothing passes", "attacker_passes": "an attack passes",
    "bad_session_passes": "a failed session passes", "mutant_survives": "a changed solution passes",
    "succeeded_session_fails": "a successful session fails"}
"""What the audit says of a task, in a few words."""


class _Change(NamedTuple):
    """A task's rubric as it stands and as changed."""

    task_id: str
    service: str
    room: Path
    before: Row
    after: Row


class TriedTasks(NamedTuple):
    """What came of the tasks that an edit reaches."""

    trials: list[Trial]
    """Those that it changes, in the order of the tasks."""
    n_tasks: int
    """Tasks that it reaches."""
    n_tried: int

    @property
    def n_gained(self) -> int:
        """Count the tasks that hold under the changed rubric alone."""
        return sum(trial.verified_after and not trial.verified_before for trial in self.trials)

    @property
    def n_lost(self) -> int:
        """Count the tasks that hold under the rubric as built alone."""
        return sum(trial.verified_before and not trial.verified_after for trial in self.trials)

    @property
    def sentence(self) -> str:
        """Return in one sentence what the edit does."""
        n_changed = sum(bool(trial.changes) or trial.before != trial.after for trial in self.trials)
        beyond = f" of {self.n_tasks:,}" if self.n_tasks > self.n_tried else ""
        changed = f"{many(n_changed, 'task')} {'changes' if n_changed == 1 else 'change'}"
        return (f"Tried on {many(self.n_tried, 'task')}{beyond}: {changed}; "
                f"{many(self.n_gained, 'task')} would newly hold in the audit, {self.n_lost:,} would no longer hold.")


def edit_of_file(library: Library, file: Path) -> tuple[Edit, list[str]]:
    """Return what a person's file changes, and the tasks with a rubric that it reaches. Raises InputError, Missing."""
    files = {file.name: file.read_text("utf-8")}
    stated, changes = library.with_store(lambda store: (
        stated_checks(store, files), stated_changes(store, files, store.read(
            "select task_id, family from mart.tasks union select task_id, family from mart.variants order by all"))))
    name = file.name.removesuffix(SUFFIX)
    named = library.rows("select distinct family, name from mart.names order by all")
    families = {row["family"] for row in named if name in (row["family"], row["name"])}
    if not families:
        raise Missing.named("family", name, [row["name"] for row in named], "the file's name is that of its family")
    rows = library.rows(
        "select task_id, family from mart.tasks where task_id in (select task_id from mart.rubrics) "
        "union select task_id, family from mart.variants order by all")
    return Edit(changes, stated, file.name), [row["task_id"] for row in rows if row["family"] in families]


def waiting_edit(library: Library, folder: Path) -> Edit:
    """Return the corrections of checks that no published build has read."""
    rows = [row for row in waiting(library, folder) if row["kind"] == "check"]
    return Edit({row["id"]: correction_of(row) for row in sorted(rows, key=lambda row: row["at"])})


def correction_of(line: Row) -> Corrected | None:
    """Return the correction of a check that a line of OUT/corrections states; None: it withdraws one."""
    return None if line["value"] is None else Corrected("waiting", line["by"], line["why"], renamed(line["value"]))


class Workbench:
    """Try edits on the tasks of a folder; what it loads serves one published build. Safe to use from several threads."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._lock = threading.Lock()

    def reach(self, task_id: str, scope: str) -> list[str]:
        """Return the tasks that a correction reaches, this one first: of scope `task`, `family`, or all that have the check."""
        task = find_any_task(self._library, task_id)
        rubrics = self._service(task["service"]).rubrics
        families = self._service(task["service"]).families
        if scope == "task":
            reached = [task_id]
        elif scope == "family":
            reached = [name for name in rubrics if families.get(name) == task["family"]]
        else:
            reached = [name for name, row in rubrics.items() if f'"check_id":"{scope}"' in row["checks"]]
        return sorted({task_id, *reached}, key=lambda name: (name != task_id, name))

    def try_tasks(
        self, task_ids: Sequence[str], edit: Edit, waiting: Edit, most: int = MOST_TASKS, is_deep: bool = False,
    ) -> TriedTasks:
        """Try an edit on top of corrections that wait for a run. `is_deep`: the first task is shown even if nothing changes,
        and compared by all plays. Raises InputError."""
        with self._lock:
            changes = [change for number, name in enumerate(task_ids)
                       if (change := self._change(name, edit, waiting)) is not None
                       and (change.before != change.after or (is_deep and number == 0))]
            trials = [self._try(change, is_deep and number == 0) for number, change in enumerate(changes[:most])]
        changed = [trial for number, trial in enumerate(trials)
                   if trial.changes or trial.before != trial.after or (is_deep and number == 0)]
        return TriedTasks(changed, len(changes), len(trials))

    def _change(self, task_id: str, edit: Edit, waiting: Edit) -> _Change | None:
        task = find_any_task(self._library, task_id)
        service = self._service(task["service"])
        if task_id not in service.rubrics or task["room"] is None:
            return None
        scopes = (task_id, task["family"], task["service"])
        built = [Check(**check) for check in json.loads(service.rubrics[task_id]["checks"])]
        before = recorrected(scopes, built, waiting.corrections, waiting.stated)
        after = recorrected(scopes, _without_file(before, edit.file), edit.corrections, edit.stated)
        return _Change(task_id, task["service"], task["room"], _document(task_id, before), _document(task_id, after))

    def _try(self, change: _Change, is_deep: bool) -> Trial:
        task_id, service = change.task_id, self._service(change.service)
        environment, targets = self._room(change.room, change.service)
        solution = json.loads(service.rubrics[task_id]["solution"])
        leading = service.leading.get(task_id, "")
        subject = TrialSubject(
            environment, next(each for each in environment.tasks if each.task_id == task_id), solution,
            RecordedSession(leading, service.chances.get(leading), solution) if leading else None,
            service.sessions.get(task_id, []), frozenset(service.good.get(task_id, ())), targets)
        try:
            return try_rubric(subject, change.before, change.after, environment.values, self._depth(change.room.name), is_deep)
        except ValueError as error:
            raise InputError(f"the changed rubric is refused ({error})", f"task {task_id}", "see docs/rewards.md") from error

    def _service(self, service: str) -> _Service:
        if any(room["environment"] == service for room in rooms(self._library)):
            return self._library.once(f"trials {service}", lambda: _read_files(self._library.out, service))
        return self._library.once(f"trials {service}", lambda: self._library.with_store(lambda store: _read(store, service)))

    def _room(self, room: Path, service: str) -> tuple[Watched, ServiceTargets]:
        def load() -> tuple[Watched, ServiceTargets]:
            try:
                environment = Watched.load_room(room)
            except (OSError, ValueError, KeyError) as error:
                raise EnvironmentBroken(str(error), str(room), "build it again with: traceroom run") from error
            service_data = self._service(service)
            trajectories: dict[str, Sequence[Steps]] = {
                task_id: [json.loads(row["solution"]), *(one.steps for one in service_data.sessions.get(task_id, ()))]
                for task_id, row in service_data.rubrics.items()}
            return environment, service_targets(environment, trajectories, service_data.families)

        return self._library.once(f"room {room}", load)

    def _depth(self, name: str) -> Depth:
        """Return how deep the run audited."""
        return self._library.read(self._library.out / "rewards" / name / "audit.json", _depth_of, "depth") or Depth()


def _depth_of(path: Path) -> Depth:
    return Depth(**json.loads(path.read_text("utf-8"))["depth"])


def _without_file(checks: Iterable[Check], file: str) -> list[Check]:
    """Return the checks without those that a file added, and without its changes."""
    kept = []
    for check in checks:
        is_added = bool(file) and check.provenance.get("file") == file and not check.provenance.get("mined")
        is_changed = bool(file) and check.provenance.get("author") == file
        if not is_added:
            kept.append(uncorrected(check) if is_changed else check)
    return kept


def _document(task_id: str, checks: Iterable[Check]) -> Row:
    return {"format": FORMAT, "task_id": task_id, "checks": [check.model_dump(mode="json") for check in checks]}


def _read_files(out: Path, environment: str) -> _Service:
    """Read what the run's audit was given, of all tasks of a site or a repository."""
    solutions = {row["task_id"]: row["steps"] for row in rows_of(out / "rewards" / environment / "solutions.jsonl")}
    rubrics = {row["task_id"]: {"checks": canonical([{"weight": 1.0, "provenance": {}, **check} for check in row["checks"]]),
                                "solution": canonical(solutions[row["task_id"]])}
               for row in rows_of(out / "rewards" / environment / "rubrics.jsonl") if row["task_id"] in solutions}
    families = {row["task_id"]: row["family"] for row in rows_of(out / "environments" / environment / "tasks.jsonl")}
    return _Service(rubrics, {}, {}, {}, families, {})


def _read(store: Store, service: str) -> _Service:
    """Read what the run's audit was given, of all tasks of a service."""
    logged, rubrics, made = (
        store.table(table, "service = $service", service=service) for table in ("mart.tasks", "mart.rubrics", "mart.variants"))
    turns = store.table("core.turns", "service = $service", service=service)
    outcomes = store.table("mart.outcomes", "session_id in (select session_id from core.sessions where service = $service)",
                           service=service)
    rubrics = pl.concat([rubrics, made.select(rubrics.columns)]).unique("task_id", keep="last").sort("task_id")
    logged = users.led_by_solution(logged, turns, rubrics)
    rewarded = logged.join(rubrics, on="task_id", how="semi")
    sessions: dict[str, list[RecordedSession]] = defaultdict(list)
    for task_id, session_id, probability, steps in users.sessions_of(rewarded, turns, outcomes).iter_rows():
        sessions[task_id].append(RecordedSession(session_id, probability, json.loads(steps)))
    good = {task_id: names or [] for task_id, names in rewarded.select("task_id", "succeeded_session_ids").iter_rows()}
    both = pl.concat([each.select("task_id", "family") for each in (logged, made)]).unique(maintain_order=True).sort("task_id")
    rows = {row["task_id"]: {"checks": row["checks"], "solution": row["solution"]} for row in rubrics.to_dicts()}
    return _Service(
        rows, dict(sessions), {task_id: names[0] for task_id, names in good.items() if names}, good, dict(both.iter_rows()),
        dict(outcomes.select("session_id", "probability").iter_rows()))
