"""The command that lets policies play: `rollout`."""

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

from pipelines.commands.acting import Conditions, Directory, Rewards
from pipelines.commands.building import Json
from pipelines.reading import task_rows
from pipelines.screen import bars, data, say, table
from warehouse.errors import GateFailed, InputError, Missing

if TYPE_CHECKING:
    from pipelines.rollouts.backends import Backend
    from pipelines.rollouts.kept import Kept
    from pipelines.rollouts.orders import Job, Order



def rollout(
    environment: Directory,
    policy: Annotated[str, typer.Option(help="openai:MODEL@URL, script:FILE, replay or oracle.")],
    n: Annotated[int | None, typer.Option(
        "--n", min=1, help="Tasks to play, a group each; more than there are: again with the next seed.",
        show_default="all")] = None,
    group: Annotated[int, typer.Option(min=1, help="Episodes of each task, from one beginning.")] = 1,
    task: Annotated[list[str] | None, typer.Option(help="Only this task; may be repeated.", show_default=False)] = None,
    split: Annotated[Literal["train", "validation", "held_out"] | None, typer.Option(
        help="Only tasks of this side.", show_default=False)] = None,
    band: Annotated[Literal["rarely", "sometimes", "often", "mostly"] | None, typer.Option(
        help="Only tasks that this policy was seen to succeed at so often, or was never seen at.", show_default=False)] = None,
    on: Annotated[Literal["process", "processes", "containers", "ray"], typer.Option(
        help="Where rooms are: in this process, in local processes, in containers; or all of it on Ray.")] = "process",
    parallel: Annotated[int | None, typer.Option(
        min=1, help="Episodes at once.", show_default="8, on Ray its processors")] = None,
    deadline: Annotated[float | None, typer.Option(
        min=0.0, help="Seconds after which a group closes with the episodes that have ended.", show_default=False)] = None,
    prune: Annotated[bool, typer.Option("--prune", help="End an episode whose gate is lost beyond repair.")] = False,
    seed: Annotated[int, typer.Option(help="0: as recorded.")] = 0,
    condition: Conditions = None,
    temperature: Annotated[float | None, typer.Option(help="Of the model.", show_default="the endpoint's")] = None,
    rewards: Rewards = None,
    out: Annotated[Path | None, typer.Option(
        "--out", help="Folder of the rollouts; OUT/rollouts/NAME where not given.", show_default=False)] = None,
    json: Json = False,
) -> None:
    """Let a policy play an environment's tasks, many at once; keep trajectories, groups with advantages, and datasets.

    Stopped or killed, the same command goes on from there: nothing is lost, and nothing played twice.
    """
    rows = task_rows(environment)
    from pipelines.rollouts import policies
    from pipelines.rollouts.kept import Kept
    from pipelines.rollouts.orders import Job, ordered

    folder = out or environment.absolute().parent.parent / "rollouts" / environment.name
    kind, _, file = policy.partition(":")  # whoever plays it may stand in another folder
    job = Job(str(environment.absolute()), str(rewards.absolute()) if rewards else None,
              f"script:{Path(file).absolute()}" if kind == "script" and file else policy, on, tuple(condition or ()),
              temperature, prune)
    acting = policies.named(job)
    name = acting.name
    task_ids = [task_id for task_id in chosen(rows, task or (), split) if acting.plays is None or task_id in acting.plays]
    if band is not None:
        from pipelines.rollouts.results import in_band

        task_ids = in_band(folder, name, band, task_ids)
    orders = ordered(job, name, task_ids, n, group, seed)
    if not orders:
        raise InputError("no task is left to play", str(environment), "choose others with --task, --split or --band")
    begun = time.monotonic()
    with Kept(folder) as kept:
        n_before = len(kept.episodes)
        failed = play_all(job, orders, kept, parallel, deadline)
        played = {"played": len(kept.episodes) - n_before, "failed": failed, "seconds": round(time.monotonic() - begun, 3)}
        _tell(kept, environment, orders, group, played, json)
    if failed:
        raise GateFailed(f"{len(failed)} episodes could not be played ({failed[0]['error']})", str(environment),
                         "mend it, then run the same command again: what was played stays")


def chosen(rows: Sequence[dict[str, Any]], wanted: Sequence[str], split: str | None) -> list[str]:
    """Ids of the tasks that begin so and stand on this side, in the environment's order. Raises Missing."""
    known = [row["task_id"] for row in rows]
    for beginning in wanted:
        if not any(task_id.startswith(beginning) for task_id in known):
            raise Missing.named("task", beginning, known)
    return [row["task_id"] for row in rows if split in (None, row["split"])
            and (not wanted or any(row["task_id"].startswith(beginning) for beginning in wanted))]


def play_all(
    job: Job, orders: Sequence[Order], kept: Kept, parallel: int | None, deadline: float | None
) -> list[dict[str, Any]]:
    """Play what is not kept; gives what could not be played."""
    n_left = sum(order.episode_id not in kept.episodes for order in orders)
    backend = _backend(job, parallel or 0, n_left)
    try:
        with bars(), contextlib.redirect_stdout(sys.stderr):  # a script's and Ray's talk
            return asyncio.run(_watched(orders, backend, kept, deadline))
    finally:
        backend.close()


def _backend(job: Job, n_seats: int, n_left: int) -> Backend:
    from pipelines.rollouts.backends import Local

    if job.on == "ray" and n_left:
        from pipelines.rollouts.cluster import Cluster

        return Cluster(job, n_seats)
    return Local(job, max(1, min(n_seats or 8, n_left)))


async def _watched(
    orders: Sequence[Order], backend: Backend, kept: Kept, deadline: float | None
) -> list[dict[str, Any]]:
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


def _shown(row: dict[str, Any], group: int) -> dict[str, Any]:
    """A row of the results for a table: what is rare only where it is there."""
    often = {"policy": row["policy"], "n": row["episodes"], "reward": _number(row["mean_reward"], 3),
             "pass@1": _number(row["pass_1"], 3), **({f"pass^{group}": _number(row[f"pass^{group}"], 3)} if group > 1 else {})}
    rare = {name: row[name] for name in ("unscored", "unknown", "truncated", "pruned") if row[name]}
    return {**often, **rare, "steps": _number(row["steps"], 1), "seconds": _number(row["seconds"], 3)}


def _number(value: float | None, places: int) -> str:
    return "–" if value is None else f"{value:.{places}f}"


def _tell(
    kept: Kept, environment: Path, orders: Sequence[Order], group: int, played: dict[str, Any], json: bool
) -> None:
    from pipelines.rollouts import datasets, results

    results.write(kept.folder, kept.episodes)
    files = datasets.write(kept.folder, environment)
    wanted = {order.episode_id for order in orders}
    found = results.results((about for name, about in kept.episodes.items() if name in wanted), group)
    groups = [row for name, row in kept.groups.items() if name in {order.group_id for order in orders}]
    n_signal = sum(row["signal"] for row in groups)
    document = {
        "rollouts": str(kept.folder), "results": found, "groups": {"closed": len(groups), "with_signal": n_signal,
        "by_deadline": sum(row["closed_by"] == "deadline" for row in groups)}, **played,
        "datasets": [str(path.relative_to(kept.folder)) for path in files]}
    for row in found:  # one policy's
        shown = _shown(row, group)
        table("Results", [shown], right=tuple(shown)[1:])
    if group > 1:
        say(f"[bold]{len(groups):,}[/] groups closed, [bold]{n_signal:,}[/] of them with a signal")
    say(f"[bold]{played['played']:,}[/] episodes played in {played['seconds']:.1f} s; all that is kept: "
        f"{escape(os.path.relpath(kept.folder))}")
    if json:
        data(document)
