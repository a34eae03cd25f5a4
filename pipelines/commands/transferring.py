"""The command `transfer`: does success in an environment mean success on the real service?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipelines.commands.options import Directory, Json, RolloutFolder, Seed
from pipelines.screen import data, many, say, table
from warehouse.errors import GateFailed, InputError

if TYPE_CHECKING:
    from pipelines.rollouts.transfer import PlacedResult

MOST_TASKS = 10
"""Tasks that disagree most, as printed; the file has all."""


def transfer_results(
    environment: Directory,
    matrix: Annotated[list[Path], typer.Option(
        help="Recorded results: JSON lines with policy, task_id, place and success. May be repeated.")],
    seed: Seed = 0, out: RolloutFolder = None, json: Json = False,
) -> None:
    """Compare results in an environment with results on the real service: same policies, same tasks.

    The environment's own rollouts count too. The comparison is kept in OUT/transfer, where the browser shows it. Exits 1 if
    no result has a partner.
    """
    from pipelines.commands.rolling import rollouts_of
    from pipelines.rollouts import measured
    from pipelines.rollouts.matrix import read_matrix
    from pipelines.rollouts.transfer import transfer

    results = [result for path in matrix for result in read_matrix(path)]
    folder, root, name = out or rollouts_of(environment), environment.absolute().parent.parent, environment.absolute().name
    digests = measured.digests_of(root, name)
    if digests["content_digest"] is None:
        raise InputError("this is no environment", str(environment), "name a folder OUT/environments/NAME")
    results += _rollouts(folder, digests, {result.policy for result in results if result.journal is not None})
    try:
        comparison = transfer(results, seed=seed)
    except ValueError as error:
        raise InputError(str(error), ", ".join(map(str, matrix)), "name each result once, or choose rollouts with --out"
                         ) from error
    if not comparison.n_pairs:
        raise GateFailed("no result has a partner in the other place", str(environment),
                         "record the same policy, task_id and seed in both places")
    document = {"environment": name, **digests, "seed": seed, **_plain(comparison)}
    measured.keep(root, name, document)
    _show(document)
    if json:
        data(document)


def _rollouts(folder: Path, digests: dict[str, str | None], examined: set[str]) -> list[PlacedResult]:
    """Return the results of a folder's rollouts with these digests. `examined`: policies whose journals are needed."""
    from env_builder.runtime.trajectory import journal
    from pipelines.rollouts.kept import summary, trajectories
    from pipelines.rollouts.matrix import played_results

    rows = []
    for trajectory in trajectories(folder):
        about = summary(trajectory)
        if all(about[field] == own for field, own in digests.items()):
            rows.append({**about, "journal": tuple(journal(trajectory))} if about["policy"] in examined else about)
    return played_results(rows, "environment")


def _plain(comparison: Any) -> dict[str, Any]:
    return {**comparison._asdict(), "policies": [each._asdict() for each in comparison.policies],
            "tasks": [each._asdict() for each in comparison.tasks],
            "cause_shares": [each._asdict() for each in comparison.cause_shares]}


def _show(comparison: dict[str, Any]) -> None:
    table("Policies", [{
        "policy": row["policy"], "n": row["n"], "environment": f"{row['environment']:.3f}", "real": f"{row['real']:.3f}",
        "difference": f"{row['difference']:+.3f}", "95 %": f"{row['low']:+.3f} to {row['high']:+.3f}",
        "unscored": row["n_unscored"]} for row in comparison["policies"]],
        right=("n", "environment", "real", "difference", "95 %", "unscored"))
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
