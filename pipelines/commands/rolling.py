"""Commands in which policies play: `rollout`, and `evaluate`, which says what a policy is worth."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.markup import escape

from pipelines.commands.completing import complete_policy, complete_task
from pipelines.commands.options import (
    Adapter,
    AgentOption,
    AgentTalks,
    AgentTimeout,
    Directory,
    Json,
    Perturbations,
    Rewards,
    RolloutFolder,
    Seed,
    TaskSplit,
    TaskStanding,
    Temperature,
)
from pipelines.inspection.tasks import task_rows
from pipelines.screen import bars, data, say, table
from warehouse.errors import GateFailed, InputError, Missing

if TYPE_CHECKING:
    from pipelines.rollouts.kept import Kept
    from pipelines.rollouts.orders import AgentCommand, Job, Order


def rollout(
    environment: Directory,
    policy: Annotated[str | None, typer.Option(
        help="Policy: openai:MODEL@URL, script:FILE, replay or oracle. With --agent: the model that it asks.",
        show_default=False, autocompletion=complete_policy)] = None,
    n: Annotated[int | None, typer.Option(
        "--tasks", min=1, help="Number of tasks to play; beyond the last task, the first comes again with the next seed.",
        show_default="all")] = None,
    group: Annotated[int, typer.Option(min=1, help="Episodes per task, all from the same start.")] = 1,
    task: Annotated[list[str] | None, typer.Option(
        help="Play only this task (id or the beginning of it). May be repeated.", show_default=False,
        autocompletion=complete_task)] = None,
    split: TaskSplit = None, standing: TaskStanding = None,
    band: Annotated[Literal["rarely", "sometimes", "often", "mostly"] | None, typer.Option(
        "--difficulty", help="Play only tasks at which this policy succeeds this often, and those that it has not tried.",
        show_default=False)] = None,
    on: Annotated[Literal["process", "processes", "containers", "ray"], typer.Option(
        "--executor", help="Where environments run: in this process, in local processes, in containers, or on Ray.")]
    = "process",
    parallel: Annotated[int | None, typer.Option(
        min=1, help="Maximum concurrent episodes.", show_default="8, on Ray its processors")] = None,
    deadline: Annotated[float | None, typer.Option(
        min=0.0, help="Seconds after which a group closes with the episodes that have ended.", show_default=False)] = None,
    prune: Annotated[bool, typer.Option("--prune", help="End an episode as soon as one of its gates cannot pass.")] = False,
    agent: AgentOption = None, adapter: Adapter = None, talk: AgentTalks = "auto", agent_timeout: AgentTimeout = 600.0,
    tokens: Annotated[bool, typer.Option(
        "--tokens", help="Ask the model's endpoint for token ids and log-probabilities, and record them.")] = False,
    seed: Seed = 0, perturbation: Perturbations = None, temperature: Temperature = None, rewards: Rewards = None,
    out: RolloutFolder = None, json: Json = False,
) -> None:
    """Let a policy play an environment's tasks in parallel; write trajectories, groups with advantages, and datasets.

    If it is interrupted, run the same command again: it continues, and plays no episode twice.
    """
    rows = task_rows(environment)
    from pipelines.rollouts import policies
    from pipelines.rollouts.orders import ordered

    folder = out or rollouts_of(environment)
    job = job_of(environment, rewards, policy, temperature, agent_of(agent, adapter, talk, agent_timeout))._replace(
        on=on, perturbations=tuple(perturbation or ()), prune=prune, tokens=tokens)
    if job.agent is not None and on == "ray":
        raise InputError("agents play on this machine", "--executor ray", "choose process, processes or containers")
    named = policies.named(job)
    task_ids = [task_id for task_id in select_tasks(rows, task or (), split)
                if named.plays is None or task_id in named.plays]
    if standing is not None:
        from pipelines.rollouts.standings import of_standing

        task_ids = of_standing(folder, standing, task_ids)
    if band is not None:
        from pipelines.rollouts.results import in_band

        task_ids = in_band(folder, named.name, band, task_ids)
    orders = ordered(job, named.name, task_ids, n, group, seed)
    if not orders:
        raise InputError("there is no task to play", str(environment),
                         "choose others with --task, --split, --standing or --difficulty")
    play_orders(job, orders, folder, parallel, deadline,
                lambda kept, played: _tell(kept, environment, orders, group, played, json))


def rollouts_of(environment: Path) -> Path:
    """Return the default folder of an environment's rollouts."""
    return environment.absolute().parent.parent / "rollouts" / environment.name


def job_of(
    environment: Path, rewards: Path | None, policy: str | None, temperature: float | None, agent: AgentCommand | None = None,
) -> Job:
    """Return the job with absolute paths: its players may run in another folder. Raises InputError if nobody plays."""
    from pipelines.rollouts.orders import Job

    if policy is None:
        if agent is None:
            raise InputError("nobody is named to play", "--policy", "name a policy, or an agent with --agent")
        policy = "none"
    kind, _, file = policy.partition(":")
    return Job(str(environment.absolute()), str(rewards.absolute()) if rewards else None,
               f"script:{Path(file).absolute()}" if kind == "script" and file else policy, temperature=temperature, agent=agent)


def agent_of(command: str | None, adapters: Sequence[str] | None, talk: str, seconds: float) -> AgentCommand | None:
    """Return the agent that plays, None if the policy itself does. Raises InputError, Missing."""
    from pipelines.rollouts.agents import adapters as adapting
    from pipelines.rollouts.agents import launching
    from pipelines.rollouts.orders import AgentCommand

    if command is None:
        if adapters:
            raise InputError("there is no agent to adapt", "--adapter", "name it with --agent")
        return None
    adapting.check(adapters or ())
    agent = AgentCommand(command, tuple(sorted(set(adapters or ()))), talk, seconds)
    launching.check(agent)
    return agent


def select_tasks(rows: Sequence[dict[str, Any]], wanted: Sequence[str], split: str | None) -> list[str]:
    """Ids of the tasks of a split that begin with one of `wanted`, in the environment's order. Raises Missing."""
    task_ids = [row["task_id"] for row in rows]
    for beginning in wanted:
        if not any(task_id.startswith(beginning) for task_id in task_ids):
            raise Missing.named("task", beginning, task_ids)
    return [row["task_id"] for row in rows if split in (None, row["split"])
            and (not wanted or row["task_id"].startswith(tuple(wanted)))]


def play_orders(
    job: Job, orders: Sequence[Order], folder: Path, parallel: int | None, deadline: float | None, tell: Any,
    backend: Any = None,
) -> None:
    """Play what the folder lacks, then call `tell` with it and with what was played. Raises GateFailed if an episode could
    not be played. `backend`: where; None: where the job says."""
    from pipelines.rollouts.backends import Cluster, Local
    from pipelines.rollouts.kept import Kept

    begun = time.monotonic()
    with Kept(folder) as kept:
        n_before = len(kept.episodes)
        n_missing = sum(order.episode_id not in kept.episodes for order in orders)
        is_remote = job.on == "ray" and n_missing
        if backend is None:
            backend = Cluster(job, parallel or 0) if is_remote else Local(job, max(1, min(parallel or 8, n_missing)))
        try:
            with bars(), contextlib.redirect_stdout(sys.stderr):  # what a script or Ray prints
                failed = asyncio.run(_watch(orders, backend, kept, deadline))
        finally:
            backend.close()
        tell(kept, {"played": len(kept.episodes) - n_before, "failed": failed, "seconds": round(time.monotonic() - begun, 3)})
    if failed:
        raise GateFailed(f"{len(failed)} episodes could not be played ({failed[0]['error']})", job.environment,
                         "fix it, then run the same command again: what was played stays")


async def _watch(orders: Sequence[Order], backend: Any, kept: Kept, deadline: float | None) -> list[dict[str, Any]]:
    """Play, show the progress, and return what could not be played."""
    from pipelines import progress
    from pipelines.rollouts.scheduling import Episode, Failed, rollouts

    stage, total, failed = "rollout", len(orders), []
    done = sum(order.episode_id in kept.episodes for order in orders)
    n_scored = n_good = 0
    progress.tell(stage, done, total)
    async for ended in rollouts(orders, backend, kept, deadline):
        if isinstance(ended, Failed):
            failed.append({"episode_id": ended.order.episode_id, "task_id": ended.order.task_id, "error": str(ended.error)})
            progress.warn(stage, f"{ended.order.task_id[:12]}: {ended.error}")
        elif isinstance(ended, Episode):
            reward = kept.episodes[ended.order.episode_id]["reward"]
            done, n_scored, n_good = done + 1, n_scored + (reward is not None), n_good + (reward == 1.0)
            progress.tell(stage, done, total, f"{n_good} of {n_scored} succeed")
    progress.tell(stage, done, total, f"{done:,} of {total:,} episodes", finished=True)
    return failed


def _number(value: float | None, places: int = 3) -> str:
    return "–" if value is None else f"{value:.{places}f}"


def _tell(kept: Kept, environment: Path, orders: Sequence[Order], group: int, played: dict[str, Any], json: bool) -> None:
    from pipelines.rollouts import datasets, results

    results.write(kept.folder, kept.episodes)
    files = datasets.write(kept.folder, environment)
    wanted = {order.episode_id for order in orders}
    rows = results.results((about for name, about in kept.episodes.items() if name in wanted), group)
    groups = [row for name, row in kept.groups.items() if name in {order.group_id for order in orders}]
    n_signal = sum(row["signal"] for row in groups)
    for row in rows:  # one per policy; a rare column only where it is not 0
        shown = {"policy": row["policy"], "n": row["episodes"], "reward": _number(row["mean_reward"]),
                 "pass@1": _number(row["pass_1"]), **({f"pass^{group}": _number(row[f"pass^{group}"])} if group > 1 else {}),
                 **{name: row[name] for name in ("unscored", "unknown", "truncated", "pruned") if row[name]},
                 "steps": _number(row["steps"], 1), "seconds": _number(row["seconds"])}
        table("Results", [shown], right=tuple(shown)[1:])
    if group > 1:
        say(f"[bold]{len(groups):,}[/] groups closed, [bold]{n_signal:,}[/] of them with a signal")
    say(f"[bold]{played['played']:,}[/] episodes played in {played['seconds']:.1f} s; all episodes are in "
        f"{escape(os.path.relpath(kept.folder))}")
    if json:
        n_late = sum(row["closed_by"] == "deadline" for row in groups)
        data({"rollouts": str(kept.folder), "results": rows, **played,
              "groups": {"closed": len(groups), "with_signal": n_signal, "by_deadline": n_late},
              "datasets": [str(path.relative_to(kept.folder)) for path in files]})


def evaluate(
    environment: Directory,
    policy: Annotated[str, typer.Option(help="Policy to evaluate, as for rollout.", autocompletion=complete_policy)],
    log: Annotated[list[Path] | None, typer.Option(
        help="Rollouts of another policy: a folder or its trajectories.jsonl. May be repeated.", show_default=False)] = None,
    group: Annotated[int, typer.Option(min=1, help="Episodes per task that the policy plays.")] = 1,
    split: TaskSplit = None, seed: Seed = 0,
    parallel: Annotated[int | None, typer.Option(min=1, help="Maximum concurrent episodes.", show_default="8")] = None,
    temperature: Temperature = None, rewards: Rewards = None, out: RolloutFolder = None, json: Json = False,
) -> None:
    """Estimate a policy's success rate by playing it, by another policy's log, and by both, each with an interval."""
    rows = task_rows(environment)
    from env_builder import evaluation
    from pipelines.rollouts import past, policies
    from pipelines.rollouts.orders import ordered
    from pipelines.rollouts.player import Grader

    job = job_of(environment, rewards, policy, temperature)
    named = policies.named(job)
    tasks = set(select_tasks(rows, (), split))
    logged = list(past.trajectories(log or ()))
    others = [row for row in logged if row["extra"]["traceroom"]["task_id"] in tasks
              and row["extra"]["traceroom"]["policy"] != named.name]
    if logged and not others:
        raise InputError("the log contains no episode of another policy on these tasks", ", ".join(map(str, log or ())),
                         "name the log of a policy that played this environment")
    wanted = {row["extra"]["traceroom"]["task_id"] for row in others} or tasks
    orders = ordered(job, named.name, [row["task_id"] for row in rows if row["task_id"] in wanted and (
        named.plays is None or row["task_id"] in named.plays)], None, group, seed)
    played: dict[str, list[float | None]] = {}

    def collect(kept: Kept, _: dict[str, Any]) -> None:
        for order in orders:
            if order.episode_id in kept.episodes:
                played.setdefault(order.task_id, []).append(kept.episodes[order.episode_id]["reward"])

    play_orders(job, orders, out or rollouts_of(environment), parallel, None, collect)
    episodes = past.logged(others, Grader(job).environment, named)
    estimates = evaluation.evaluate(episodes, played)
    table("Worth", [{
        "method": one.method, "value": _number(one.value),
        "95 %": "–" if one.value is None else f"{_number(one.low)} to {_number(one.high)}", "n": one.n,
        "effective": "–" if one.ess is None else f"{one.ess:.0f}", "support": _number(one.support)} for one in estimates],
        right=("value", "95 %", "n", "effective", "support"))
    for reason in dict.fromkeys(one.refused for one in estimates if one.refused):
        say(f"{', '.join(one.method for one in estimates if one.refused == reason)}: {reason}.")
    scores = [one.reward for one in episodes if one.reward is not None]
    mean = sum(scores) / len(scores) if scores else None
    if mean is not None:
        say(f"The log's own episodes are worth {mean:.3f} ({len(scores):,} of them).")
    if json:
        data({"policy": named.name, "estimates": [one._asdict() for one in estimates],
              "log": {"n": len(scores), "mean_reward": mean, "left": len(logged) - len(others)}})
    if all(one.refused for one in estimates):
        raise GateFailed("no method can estimate what the policy is worth", str(environment), estimates[0].refused or "")
