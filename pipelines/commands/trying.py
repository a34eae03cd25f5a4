"""The command `try`: what the checks of a person's file would change, before a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipelines.commands.options import Json, Out
from pipelines.screen import data, say, table
from warehouse.errors import GateFailed, InputError, Missing

if TYPE_CHECKING:
    from env_builder.audit.trial import PlayChange, Trial


def try_file(
    file: Annotated[Path, typer.Argument(help="TOML file of a family's checks: rubrics/FAMILY.toml.")],
    task: Annotated[str | None, typer.Option(
        help="Try on this task only: its id, or the beginning of it if no other begins so.", show_default=False)] = None,
    limit: Annotated[int, typer.Option(help="Number of tasks to try.", min=1)] = 40,
    out: Out = "out", json: Json = False,
) -> None:
    """Try a file of checks on a published run: play the audit again, and show the attacks and sessions whose reward changes.

    Nothing is written. The next run reads the file from the folder `rubrics` next to its configuration file.
    Exits with 1 if a task that holds now would not hold.
    """
    from pipelines.browser.library import Library
    from pipelines.inspection.summary import out_of
    from pipelines.trying import Workbench, edit_of_file, waiting_edit

    if not file.is_file():
        raise InputError("there is no such file", str(file), "write one as docs/configuration.md says")
    settings = out_of(out)
    library = Library(Path(settings.out))
    try:
        edit, task_ids = edit_of_file(library, file)
        if task is not None:
            task_ids = [_only(task, task_ids)]
        pending = waiting_edit(library, settings.corrections)
        tried = Workbench(library).try_tasks(task_ids, edit, pending, limit, task is not None)
    finally:
        library.close()
    table("Tasks", [_task_row(trial) for trial in tried.trials])
    table("Rewards that change", [
        {"task": trial.task_id[:12], **play_row(change)} for trial in tried.trials for change in trial.changes])
    say(tried.sentence)
    if json:
        data({"n_tasks": tried.n_tasks, "n_tried": tried.n_tried, "tasks": [
            {**trial._asdict(), "before": trial.before._asdict(), "after": trial.after._asdict(),
             "changes": [change._asdict() for change in trial.changes]} for trial in tried.trials]})
    if tried.n_lost:
        lost = next(trial for trial in tried.trials if trial.verified_before and not trial.verified_after)
        raise GateFailed(f"{tried.n_lost} of {tried.n_tried} tasks would no longer hold", str(file),
                         f"task {lost.task_id[:12]}: {lost.after.detail.rstrip('.')}")


def _only(beginning: str, task_ids: list[str]) -> str:
    matches = [task_id for task_id in task_ids if task_id.startswith(beginning)]
    if len(matches) > 1 and beginning not in matches:
        raise InputError(f"{len(matches)} tasks begin so", beginning, f"give more of it: {', '.join(matches[:3])}")
    if not matches:
        raise Missing.named("task", beginning, task_ids, "the file's family has no other tasks with a rubric")
    return beginning if beginning in matches else matches[0]


def _task_row(trial: Trial) -> dict[str, Any]:
    from pipelines.trying import REASONS

    reward = trial.after.solution_reward
    solution = "none" if reward is None else f"{reward:g}"
    return {"task": trial.task_id[:12], "now": REASONS.get(trial.before.reason, trial.before.reason),
            "then": REASONS.get(trial.after.reason, trial.after.reason),
            "known solution earns": solution + (f" (session {trial.after.solution})" if trial.after.solution else ""),
            "attacks, sessions that change": f"{sum(each.kind != 'session' for each in trial.changes)}, "
                                             f"{sum(each.kind == 'session' for each in trial.changes)}"}


def play_row(change: PlayChange) -> dict[str, Any]:
    """Return a play whose reward changes as a row."""
    rewards = [("not played" if not was_played else "unscored" if reward is None else f"{reward:g}")
               for reward, was_played in ((change.before, change.was_played), (change.after, change.is_played))]
    wanted = {"pass": "must earn it", "fail": "must not earn it"}.get(change.should or "", "does not decide")
    what = f"success {change.description}" if change.kind == "session" and change.description else change.description
    who = "known solution" if change.kind == "solution" else f"{change.kind} {change.player}"
    return {"who": who, "now": rewards[0], "then": rewards[1], "and": wanted,
            "what": what}
