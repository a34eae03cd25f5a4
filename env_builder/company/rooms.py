"""Write the environment of a company: all its apps over one world, and tasks that each begin at an instant for one person.

In: a company's content, and tasks with whom the agent acts for, when, what it is asked, and the rubric if there is one. Out: an
environment and its rewards in the layout of all others. One app holds the world; a task adds nothing to it but its row, so that
an environment of many tasks is as large as one without any.
Sees: whether the person is known at the instant. Does not see: whether a task is right, which is for `env_builder.verify`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from env_builder.audit import AuditReport
from env_builder.backends import assemble, company_source
from env_builder.bundle import MINIMUM_STEPS, MINIMUM_TOKENS, SECONDS, STEPS_OVER_RECORDED, Digests
from env_builder.company.content import CompanyContent
from env_builder.runtime.environment import Environment
from env_builder.runtime.grading import grade
from env_builder.runtime.office.company import CompanySuite
from env_builder.runtime.rubrics import ParsedRubric

Row = dict[str, Any]


class CompanyTask(NamedTuple):
    """A piece of work as a task."""

    task_id: str
    starts_at: str
    """ISO instant: how the company stood then is where the task begins."""
    acting_for: str
    """Address of the person whom the agent works for."""
    opening: str
    """What the agent is asked, as that person was."""
    goal: str = ""
    """A sentence on it; the opening by default."""
    family: str = "work"
    split: str = "train"
    rubric: Mapping[str, Any] | None = None
    """A document as docs/rewards.md says; None: the task has no reward."""
    solution: Sequence[Row] = ()
    """Steps that are known to be right; without any the rubric cannot be verified."""
    session_ids: tuple[str, ...] = ()
    """Sessions of agents that were a part of it."""
    user: Mapping[str, Any] = {"turns": ()}
    """The script of who asked (runtime/user.py)."""
    slots: Mapping[str, Any] = {}
    colleagues: Mapping[str, Any] | None = None
    """Who answers what in it, without the task's id (runtime/office/colleagues.py); None: nobody answers."""
    own: tuple[str, ...] | None = None
    """What belongs to its piece of work (runtime/company/ongoing.py), while all else goes on; None: the world stands still."""

    @property
    def is_graded(self) -> bool:
        """Whether there is a rubric and what to verify it by."""
        return self.rubric is not None and len(self.solution) > 0


def unknown_people(app: CompanySuite, tasks: Iterable[CompanyTask]) -> dict[str, str]:
    """Return why tasks cannot begin, by their ids: nothing is on record of the person at that instant, or it is none."""
    reasons = {}
    for task in tasks:
        try:
            app.start_of(task.starts_at, task.acting_for)
        except (LookupError, ValueError) as error:
            reasons[task.task_id] = str(error)
    return reasons


def shortened(environment: Environment, task: CompanyTask) -> CompanyTask:
    """Return a task without the steps of its known solution that the reward does not need, tried in its environment.

    People take steps that nothing is left of, such as a status on the way to another; an audit leaves out each."""
    rubric, steps = ParsedRubric.read(dict(task.rubric or {})), list(task.solution)
    if worth(environment, task.task_id, rubric, steps) != 1.0:
        return task
    place = 0
    while place < len(steps):
        rest = steps[:place] + steps[place + 1:]
        if worth(environment, task.task_id, rubric, rest) == 1.0:
            steps = rest
        else:
            place += 1
    return task._replace(solution=tuple(steps))


def worth(environment: Environment, task_id: str, rubric: ParsedRubric, steps: Sequence[Row]) -> float | None:
    """Return the reward of steps in a task."""
    environment.reset(task_id)
    for step in steps:
        environment.call(step["tool"], step["arguments"])
    environment.finish()
    return grade(rubric, environment.episode()).reward


def write_company(
    name: str, content: CompanyContent, tasks: Sequence[CompanyTask], environment: Path, rewards: Path,
    perturbations: Iterable[Row] = (), privacy: str = "off", audit: AuditReport | None = None,
) -> Digests:
    """Write the environment with these tasks, and its rewards. Errors: InputError for a rubric that is none."""
    n_steps = max((len(task.solution) for task in tasks), default=0)
    graded = [task for task in tasks if task.rubric is not None]
    content = content._replace(colleagues=[
        {**task.colleagues, "task_id": task.task_id} for task in tasks if task.colleagues is not None])
    goes_on = {task.task_id: list(task.own) for task in sorted(tasks, key=lambda each: each.task_id) if task.own is not None}
    solutions = [{"task_id": task.task_id, "steps": list(task.solution)} for task in graded if task.solution]
    return assemble(
        name, [company_source(content, goes_on)], [_row(task, n_steps) for task in tasks],
        [dict(task.rubric or {}) for task in graded], environment, rewards, solutions, perturbations,
        privacy=privacy, audit=audit)


def _row(task: CompanyTask, n_steps: int) -> Row:
    """Return a task's row of tasks.jsonl; `n_steps`: of the longest known solution."""
    limits = {"steps": max(MINIMUM_STEPS, STEPS_OVER_RECORDED * n_steps), "seconds": SECONDS, "tokens": MINIMUM_TOKENS}
    user = dict(task.user)
    return {"task_id": task.task_id, "session_ids": list(task.session_ids), "split": task.split, "family": task.family,
            "slots": dict(task.slots), "goal": task.goal or task.opening, "starts_at": task.starts_at,
            "acting_for": task.acting_for, "segment_of": None, "derived_from": None, "limits": limits,
            "opening": [{"role": "user", "content": task.opening}], "user": {**user, "turns": list(user.get("turns", ()))}}
