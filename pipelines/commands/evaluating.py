"""The command that says what a policy is worth from another one's episodes and the rebuilt room: `evaluate`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pipelines.commands.acting import Directory, Rewards
from pipelines.commands.building import Json
from pipelines.commands.rolling import chosen, play_all
from pipelines.reading import task_rows
from pipelines.screen import data, say, table
from warehouse.errors import GateFailed, InputError

if TYPE_CHECKING:
    from env_builder.evaluation import Estimate
    from pipelines.rollouts.orders import Job
    from pipelines.rollouts.policies import Named


def evaluate(
    environment: Directory,
    policy: Annotated[str, typer.Option(help="The policy in question, as for rollout.")],
    log: Annotated[list[Path] | None, typer.Option(
        help="Folder of rollouts of another policy, or its trajectories.jsonl; may be repeated.", show_default=False)] = None,
    group: Annotated[int, typer.Option(min=1, help="Episodes that the policy plays of each task.")] = 1,
    split: Annotated[Literal["train", "validation", "held_out"] | None, typer.Option(
        help="Only tasks of this side.", show_default=False)] = None,
    seed: Annotated[int, typer.Option(help="0: as recorded.")] = 0,
    parallel: Annotated[int | None, typer.Option(min=1, help="Episodes at once.", show_default="8")] = None,
    temperature: Annotated[float | None, typer.Option(help="Of the model.", show_default="the endpoint's")] = None,
    rewards: Rewards = None,
    out: Annotated[Path | None, typer.Option(
        "--out", help="Folder of the rollouts; OUT/rollouts/NAME where not given.", show_default=False)] = None,
    json: Json = False,
) -> None:
    """What is a policy worth? By playing it in the rebuilt room, by another policy's log, and by both; each with an interval,
    or with the reason why it cannot be told.
    """
    rows = task_rows(environment)
    from env_builder import evaluation
    from pipelines.rollouts import past, policies
    from pipelines.rollouts.orders import Job
    from pipelines.rollouts.player import Grader

    kind, _, file = policy.partition(":")
    job = Job(str(environment.absolute()), str(rewards.absolute()) if rewards else None,
              f"script:{Path(file).absolute()}" if kind == "script" and file else policy, temperature=temperature)
    named = policies.named(job)
    tasks = set(chosen(rows, (), split))
    known = list(past.trajectories(log or ()))
    others = [row for row in known if row["extra"]["traceroom"]["task_id"] in tasks
              and row["extra"]["traceroom"]["policy"] != named.name]
    if known and not others:
        raise InputError("the log holds no episode of another policy on these tasks", ", ".join(map(str, log or ())),
                         "name the log of a policy that played this environment")
    wanted = {row["extra"]["traceroom"]["task_id"] for row in others} or tasks
    played = _played(job, named, [task_id for task_id in chosen(rows, (), None) if task_id in wanted], group, seed, parallel,
                     out or environment.absolute().parent.parent / "rollouts" / environment.name)
    episodes = past.logged(others, Grader(job).environment, named)
    found = evaluation.evaluate(episodes, played)
    _tell(named.name, found, [one.reward for one in episodes if one.reward is not None], len(known) - len(others), json)
    if all(one.refused for one in found):
        raise GateFailed("no method can say what the policy is worth", str(environment), found[0].refused or "")


def _played(
    job: Job, named: Named, task_ids: Sequence[str], group: int, seed: int, parallel: int | None, folder: Path
) -> dict[str, list[float | None]]:
    """Task -> rewards of the policy's own episodes, which are kept like those of any rollout."""
    from pipelines.rollouts.kept import Kept
    from pipelines.rollouts.orders import ordered

    orders = ordered(job, named.name, [task_id for task_id in task_ids if named.plays is None or task_id in named.plays],
                     None, group, seed)
    found: dict[str, list[float | None]] = {}
    with Kept(folder) as kept:
        failed = play_all(job, orders, kept, parallel, None)
        for order in orders:
            if order.episode_id in kept.episodes:
                found.setdefault(order.task_id, []).append(kept.episodes[order.episode_id]["reward"])
    if failed:
        raise GateFailed(f"{len(failed)} episodes could not be played ({failed[0]['error']})", job.environment,
                         "mend it, then run the same command again: what was played stays")
    return found


def _tell(policy: str, found: Sequence[Estimate], logged: Sequence[float], n_left: int, json: bool) -> None:
    shown: list[dict[str, Any]] = [
        {"method": one.method, "value": _number(one.value), "95 %": "–" if one.value is None else
         f"{_number(one.low)} to {_number(one.high)}", "n": one.n, "effective": "–" if one.ess is None else f"{one.ess:.0f}",
         "support": _number(one.support)} for one in found]
    table("Worth", shown, right=tuple(shown[0])[1:])
    for reason in dict.fromkeys(one.refused for one in found if one.refused):
        say(f"{', '.join(one.method for one in found if one.refused == reason)}: {reason}.")
    mean = sum(logged) / len(logged) if logged else None
    if mean is not None:
        say(f"The log's own episodes are worth {mean:.3f} ({len(logged):,} of them).")
    if json:
        data({"policy": policy, "estimates": [one._asdict() for one in found],
              "log": {"n": len(logged), "mean_reward": mean, "left": n_left}})


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
