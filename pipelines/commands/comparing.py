"""The command `test`: does an agent still do its tasks, compared with a baseline? For continuous integration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from pipelines.commands.completing import complete_policy
from pipelines.commands.options import (
    Adapter,
    AgentOption,
    AgentTalks,
    AgentTimeout,
    Directory,
    Json,
    Rewards,
    RolloutFolder,
    Seed,
    TaskSplit,
    TaskStanding,
    Temperature,
)
from pipelines.commands.rolling import agent_of, job_of, play_orders, rollouts_of, select_tasks
from pipelines.inspection.tasks import task_rows
from pipelines.screen import data, say
from warehouse.errors import GateFailed, InputError

if TYPE_CHECKING:
    from pipelines.rollouts.baselines import Comparison


def compare_policy(
    environment: Directory,
    policy: Annotated[str | None, typer.Option(
        help="Policy to test, as for rollout. With --agent: the model that it asks.", show_default=False,
        autocompletion=complete_policy)] = None,
    baseline: Annotated[Path | None, typer.Option(help="Baseline file to compare with.", show_default=False)] = None,
    save: Annotated[Path | None, typer.Option(
        help="Write the rewards to this file, as a baseline.", show_default=False)] = None,
    least: Annotated[float | None, typer.Option(
        min=0.0, max=1.0, help="Fail if the mean reward is below this.", show_default=False)] = None,
    tolerance: Annotated[float, typer.Option(
        min=0.0, help="Fail if the whole 95 % interval of the difference lies further than this below 0.")] = 0.0,
    summary: Annotated[Path | None, typer.Option(
        help="Append the table as Markdown to this file, such as $GITHUB_STEP_SUMMARY.", show_default=False)] = None,
    n: Annotated[int | None, typer.Option("--tasks", min=1, help="Number of tasks to play.", show_default="all")] = None,
    group: Annotated[int, typer.Option(min=1, help="Episodes per task.")] = 1,
    agent: AgentOption = None, adapter: Adapter = None, talk: AgentTalks = "auto", agent_timeout: AgentTimeout = 600.0,
    split: TaskSplit = None, standing: TaskStanding = None, seed: Seed = 0,
    parallel: Annotated[int | None, typer.Option(min=1, help="Maximum concurrent episodes.", show_default="8")] = None,
    temperature: Temperature = None, rewards: Rewards = None, out: RolloutFolder = None, json: Json = False,
) -> None:
    """Test an agent on an environment's tasks, and compare its rewards with a baseline.

    Exits 1 if it is surely worse than the baseline, or below --least. The rewards of the same tasks are paired.
    """
    from pipelines.rollouts import policies
    from pipelines.rollouts.baselines import compare, markdown, read_baseline, rewards_by_task, write_baseline
    from pipelines.rollouts.orders import digests, ordered

    before = read_baseline(baseline) if baseline is not None else None
    rows = task_rows(environment)
    job = job_of(environment, rewards, policy, temperature, agent_of(agent, adapter, talk, agent_timeout))
    named = policies.named(job)
    task_ids = [task_id for task_id in select_tasks(rows, (), split) if named.plays is None or task_id in named.plays]
    if standing is not None:
        from pipelines.rollouts.standings import of_standing

        task_ids = of_standing(out or rollouts_of(environment), standing, task_ids)
    orders = ordered(job, named.name, task_ids, n, group, seed)
    if not orders:
        raise InputError("there is no task to play", str(environment), "choose others with --split or --standing")
    episodes: list[dict[str, Any]] = []
    play_orders(job, orders, out or rollouts_of(environment), parallel, None, lambda kept, _: episodes.extend(
        kept.episodes[order.episode_id] for order in orders if order.episode_id in kept.episodes))
    scored = rewards_by_task(episodes)
    comparison = compare(scored, before)
    content, rewards_digest = digests(job)
    if save is not None:
        write_baseline(save, scored, {"environment": environment.name, "content_digest": content,
                                      "rewards_digest": rewards_digest, "policy": named.name, "seed": seed})
    text = markdown(comparison, {row["task_id"]: str(row.get("goal") or "") for row in rows})
    if summary is not None:
        with summary.open("a", encoding="utf-8") as file:
            file.write(f"### {environment.name}: {named.name}\n\n{text}\n")
    say(escape(text))
    if json:
        data({"environment": str(environment), "policy": named.name, "comparison": comparison._asdict(),
              "worse": [each._asdict() for each in comparison.worse], "better": [each._asdict() for each in comparison.better]})
    if failure := _failure(comparison, least, tolerance):
        raise GateFailed(failure, str(environment), "see the tasks above")


def _failure(comparison: Comparison, least: float | None, tolerance: float) -> str | None:
    """Return why the test fails, None if it passes."""
    if comparison.mean is None:
        return "no episode has a reward"
    if least is not None and comparison.mean < least:
        return f"the mean reward is {comparison.mean:.3f}, below {least:g}"
    if not comparison.is_worse(tolerance):
        return None
    return f"the policy is worse than the baseline by {-(comparison.difference or 0):.3f}"
