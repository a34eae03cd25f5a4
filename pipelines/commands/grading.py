"""The command that grades journals: `grade`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pipelines.commands.building import Json
from pipelines.reading import task_rows
from pipelines.screen import data, say, table

Mode = Annotated[str, typer.Option(
    "--mode", help="eval: in [0, 1]; train: in [-1, 1], penalties go below 0.", show_default=True)]


def grade(
    environment: Annotated[Path, typer.Argument(help="OUT/environments/NAME.")],
    journals: Annotated[Path, typer.Argument(help="What `serve --journals` or `rollout` wrote: JSON lines, an episode each.")],
    mode: Mode = "eval",
    steps: Annotated[bool, typer.Option("--steps", help="With --json: also of each step, potential-based.")] = False,
    discount: Annotated[float, typer.Option(help="Of later rewards, with --steps.")] = 1.0,
    bind: Annotated[list[str] | None, typer.Option(
        "--bind", help="TOOL=SOURCE, as in the rollout; may be repeated.", show_default=False)] = None,
    ask: Annotated[bool, typer.Option(
        "--ask", help="Let the model of TRACEROOM_MODEL judge; without it judges are unscored.")] = False,
    rewards: Annotated[
        Path | None, typer.Option(help="The grader's side; OUT/rewards/NAME where not given.", show_default=False)] = None,
    json: Json = False,
) -> None:
    """Grade episodes by their journals alone: each is replayed on the grader's own copy of the world."""
    task_rows(environment)
    from pipelines import outside, playing

    bound = outside.bindings(environment, bind or (), None)
    asked = playing.Asked(mode, outside.live(ask), discount if steps else None)
    grades: list[dict[str, Any]] = list(playing.graded_journals(environment, rewards, journals, bound, asked))
    if json:
        data(grades)
    table("Grades", [{"task": row["task_id"][:12], "reward": "none" if row["reward"] is None else f"{row['reward']:g}",
                      "checks": row["tally"]} for row in grades])
    scored = [row["reward"] for row in grades if row["reward"] is not None]
    mean = f", on average [bold]{sum(scored) / len(scored):.3f}[/]" if scored else ""
    say(f"[bold]{len(scored)}[/] of {len(grades)} episodes scored{mean}")
