"""The command `transfer`: does success in an environment mean success on the real service?"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from pipelines.commands.completing import complete_policy, complete_task
from pipelines.commands.options import (
    Adapter,
    AgentOption,
    AgentTalks,
    AgentTimeout,
    Directory,
    Json,
    Perturbations,
    RolloutFolder,
    Seed,
    TaskSplit,
    Temperature,
)
from pipelines.inspection.tasks import task_rows
from pipelines.screen import data, many, say, table
from warehouse.errors import GateFailed, InputError

if TYPE_CHECKING:
    from pipelines.rollouts.orders import Job
    from pipelines.rollouts.real import RealService
    from pipelines.rollouts.transfer import PlacedResult

MOST_TASKS = 10
"""Tasks that disagree most, as printed; the file has all."""


CheckpointsOf = Annotated[str | None, typer.Option(
    "--checkpoints-of", help="With --bind: the policies are checkpoints of this one, in the order of their tuning. Shows what "
                             "tuning gained, and what of it arrives.", show_default=False)]


def transfer_results(
    environment: Directory,
    matrix: Annotated[list[Path] | None, typer.Option(
        help="Recorded results: JSON lines with policy, task_id, place and success. May be repeated.",
        show_default=False)] = None,
    bind: Annotated[list[str] | None, typer.Option(
        "--bind", help="Real service to play on: SOURCE for all tools, TOOL=SOURCE for one. May be repeated. Every call goes "
                       "there, write calls too.", show_default=False)] = None,
    reset: Annotated[str | None, typer.Option(
        help="SOURCE that brings the real service to the state in which a task begins; asked before each episode.",
        show_default=False)] = None,
    verdict: Annotated[str | None, typer.Option(
        help="SOURCE that judges an episode on the real service.", show_default="the environment's reward")] = None,
    policy: Annotated[list[str] | None, typer.Option(
        help="With --bind: policy to play in both places, as for rollout; with --agent, the agent's model. May be repeated.",
        show_default=False, autocompletion=complete_policy)] = None,
    agent: AgentOption = None, adapter: Adapter = None, talk: AgentTalks = "auto", agent_timeout: AgentTimeout = 600.0,
    checkpoints: CheckpointsOf = None,
    n: Annotated[int | None, typer.Option("--tasks", min=1, help="With --bind: number of tasks to play.",
                                          show_default="all")] = None,
    group: Annotated[int, typer.Option(min=1, help="With --bind: episodes per task in each place.")] = 1,
    task: Annotated[list[str] | None, typer.Option(
        help="With --bind: play only this task (id or the beginning of it). May be repeated.", show_default=False,
        autocompletion=complete_task)] = None,
    split: TaskSplit = None, perturbation: Perturbations = None, temperature: Temperature = None,
    seed: Seed = 0, out: RolloutFolder = None, json: Json = False,
) -> None:
    """Compare results in an environment with results on the real service: same policies, same tasks.

    With --bind the policies play in both places; results of the real service may also be recorded ones. The environment's own
    rollouts count too. The comparison is kept in OUT/transfer, where the browser shows it. Exits 1 if no result has a partner.
    """
    from pipelines.commands.rolling import agent_of, job_of, rollouts_of
    from pipelines.rollouts import measured
    from pipelines.rollouts.matrix import read_matrix
    from pipelines.rollouts.real import service_of

    folder, root, name = out or rollouts_of(environment), environment.absolute().parent.parent, environment.absolute().name
    digests = measured.digests_of(root, name)
    if digests["content_digest"] is None:
        raise InputError("this is no environment", str(environment), "name a folder OUT/environments/NAME")
    _check_places(matrix, bind, policy, agent, checkpoints)
    results, switches = [result for path in matrix or () for result in read_matrix(path)], None
    if bind:
        service, switches = service_of(environment, bind, reset, verdict), sorted(perturbation or ())
        if reset is None:
            say("[yellow]![/] Without --reset each episode begins in the state that the one before left at the service.")
        command = agent_of(agent, adapter, talk, agent_timeout)
        jobs = [job_of(environment, None, each, temperature, command)._replace(perturbations=tuple(switches))
                for each in policy or (["none"] if command else [])]
        for job in jobs:
            _play(job, service, _Played(n, group, tuple(task or ()), split, seed), folder, root / measured.FOLDER / name)
        results += _labelled(_real(root / measured.FOLDER / name, digests, service.service_id), checkpoints, jobs)
    results += _rollouts(folder, digests, {result.policy for result in results if result.journal is not None}, switches)
    document = {"environment": name, **digests, "seed": seed, **_compared(results, seed, environment)}
    measured.keep(root, name, document)
    _show(document)
    if json:
        data(document)


def _check_places(
    matrix: list[Path] | None, bind: list[str] | None, policy: list[str] | None, agent: str | None, checkpoints: str | None,
) -> None:
    """Raise InputError where the options name no results of the real service, or no checkpoints."""
    if not matrix and not (bind and (policy or agent)):
        raise InputError("there is nothing to compare with", "--matrix, --bind",
                         "name recorded results with --matrix, or a service with --bind and --policy or --agent to play on it")
    if checkpoints is not None and not (bind and len(policy or ()) > 1):
        raise InputError("there are no checkpoints to play", "--checkpoints-of",
                         "name the checkpoints with --policy, at least two, and a service with --bind; a matrix has `step`")


def _labelled(results: list[PlacedResult], of: str | None, jobs: Iterable[Job]) -> list[PlacedResult]:
    """Return the results with the step of each policy, if the policies that played are checkpoints of one."""
    from pipelines.rollouts.policies import named

    steps = {named(job).name: step for step, job in enumerate(jobs if of is not None else ())}
    return [each._replace(checkpoint_of=of, step=steps[each.policy]) if each.policy in steps else each for each in results]


def _compared(results: list[PlacedResult], seed: int, environment: Path) -> dict[str, Any]:
    """Compare the results. Raises InputError if one is there twice, GateFailed if none has a partner."""
    from pipelines.rollouts.transfer import transfer

    try:
        comparison = transfer(results, seed=seed)
    except ValueError as error:
        raise InputError(str(error), str(environment), "name each result once, or choose rollouts with --out") from error
    if not comparison.n_pairs:
        raise GateFailed("no result has a partner in the other place", str(environment),
                         "record the same policy, task_id and seed in both places")
    return _plain(comparison)


class _Played(NamedTuple):
    """Which episodes both places play."""

    n: int | None
    group: int
    tasks: tuple[str, ...]
    split: str | None
    seed: int


def _play(job: Job, service: RealService, played: _Played, folder: Path, real_folder: Path) -> None:
    """Play what is missing, first in the environment."""
    from pipelines.commands.rolling import play_orders, select_tasks
    from pipelines.rollouts import policies
    from pipelines.rollouts.orders import ordered
    from pipelines.rollouts.real import RealSeats

    named = policies.named(job)
    task_ids = [task_id for task_id in select_tasks(task_rows(Path(job.environment)), played.tasks, played.split)
                if named.plays is None or task_id in named.plays]
    real = job._replace(perturbations=())
    for place, policy, where, seats in ((job, named.name, folder, None),
                                        (real, f"{named.name} on {service.service_id}", real_folder, RealSeats(real, service))):
        orders = ordered(place, policy, task_ids, played.n, played.group, played.seed)
        play_orders(place, orders, where, None, None, lambda *_: None, seats)


def _real(folder: Path, digests: dict[str, str | None], service_id: str) -> list[PlacedResult]:
    """Return the results at a real service that were played with these digests."""
    from env_builder.runtime.trajectory import journal
    from pipelines.rollouts.kept import summary, trajectories
    from pipelines.rollouts.real import real_results

    about = ({**summary(trajectory), "journal": tuple(journal(trajectory))} for trajectory in trajectories(folder))
    wanted = {**digests, "service_id": service_id}
    return real_results([row for row in about if all(row[field] == own for field, own in wanted.items())])


def _rollouts(
    folder: Path, digests: dict[str, str | None], examined: set[str], switches: list[str] | None,
) -> list[PlacedResult]:
    """Return the results of a folder's rollouts with these digests and perturbations (None: any). `examined`: policies whose
    journals are needed."""
    from env_builder.runtime.trajectory import journal
    from pipelines.rollouts.kept import summary, trajectories
    from pipelines.rollouts.matrix import played_results

    rows = []
    for trajectory in trajectories(folder):
        about = summary(trajectory)
        if all(about[field] == own for field, own in digests.items()) and switches in (None, about["perturbations"]):
            rows.append({**about, "journal": tuple(journal(trajectory))} if about["policy"] in examined else about)
    return played_results(rows, "environment")


def _plain(comparison: Any) -> dict[str, Any]:
    return {**comparison._asdict(), "policies": [each._asdict() for each in comparison.policies],
            "tasks": [each._asdict() for each in comparison.tasks],
            "tuning": [each._asdict() for each in comparison.tuning],
            "cause_shares": [each._asdict() for each in comparison.cause_shares]}


def _show(comparison: dict[str, Any]) -> None:
    table("Policies", [{
        "policy": row["policy"], "n": row["n"], "environment": f"{row['environment']:.3f}", "real": f"{row['real']:.3f}",
        "difference": f"{row['difference']:+.3f}", "95 %": f"{row['low']:+.3f} to {row['high']:+.3f}",
        "unscored": row["n_unscored"]} for row in comparison["policies"]],
        right=("n", "environment", "real", "difference", "95 %", "unscored"))
    if comparison["tuning"]:
        table("Tuning", [{
            "policy": row["policy"], "checkpoints": row["n_checkpoints"], "tasks": row["n_tasks"],
            "chosen": ", ".join(row["chosen"]), "gain": f"{row['gain_environment']:+.3f}",
            "real gain": f"{row['gain_real']:+.3f}",
            "arrives": _number(row["arrives"]), "95 %": f"{_number(row['arrives_low'])} to {_number(row['arrives_high'])}",
            "regret": f"{row['regret']:.3f}"} for row in comparison["tuning"]],
            right=("checkpoints", "tasks", "gain", "real gain", "arrives", "95 %", "regret"))
    if comparison["tasks"]:
        table("Tasks that disagree most", [{
            "task": row["task_id"], "pairs": row["n"], "disagree": row["n_disagree"],
            "only environment": row["n_only_environment"],
            "causes": ", ".join(f"{name} {n}" for name, n in row["causes"].items())}
            for row in comparison["tasks"][:MOST_TASKS]],
            right=("pairs", "disagree", "only environment"))
    table("Causes of disagreements", [{
        "cause": row["cause"].replace("_", " "), "n": row["n"], "share": f"{row['share']:.0%}",
        "tools": ", ".join(row["tools"]),
        "worst tasks": ", ".join(task_id[:12] for task_id in row["tasks"])} for row in comparison["cause_shares"]],
        right=("n", "share"))
    say(f"Rank correlation {_number(comparison['spearman'])} (95 %: {_number(comparison['spearman_low'])} to "
        f"{_number(comparison['spearman_high'])}); slope {_number(comparison['slope'])}, "
        f"intercept {_number(comparison['intercept'])}; "
        f"regret of choosing {_number(comparison['regret'])}.")
    say(f"{many(comparison['n_pairs'], 'pair')}; {many(comparison['n_alone'], 'result')} without a partner.")


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"
