"""The command that hands out what was made: `export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from pipelines.commands.building import Json
from pipelines.screen import bars, data, say, table
from warehouse.errors import InputError

Many = list[str] | None


def export(
    name: Annotated[str, typer.Argument(help="Name of an exporter, or `datasets`: every form; a wrong one lists them.")],
    place: Annotated[Path, typer.Argument(help="OUT/environments/NAME; of datasets also OUT, or a folder of rollouts.")],
    to: Annotated[Path, typer.Option("--to", help="Folder to write to.")] = Path("exported"),
    split: Annotated[Many, typer.Option(
        help="train, validation or held_out; may be repeated. By default all of a dataset, and train and validation of a room.",
        show_default=False)] = None,
    form: Annotated[Many, typer.Option(help="Of `datasets`: this form; may be repeated.", show_default=False)] = None,
    family: Annotated[Many, typer.Option(
        help="Name of a family of tasks, or the beginning of its id; may be repeated.", show_default=False)] = None,
    band: Annotated[Many, typer.Option(
        help="How often the task succeeds: rarely, sometimes, often, mostly; may be repeated.", show_default=False)] = None,
    outcome: Annotated[str | None, typer.Option(
        help="LOW:HIGH, interval of the reward or probability of success; either may be left out.", show_default=False)] = None,
    tier: Annotated[Many, typer.Option(
        help="Tier of answers that an episode of a rollout may hold; may be repeated.", show_default=False)] = None,
    policy: Annotated[Many, typer.Option(
        help="Who acted, as the log names it; may be repeated.", show_default=False)] = None,
    duplicates: Annotated[bool, typer.Option("--duplicates", help="Keep episodes that are step for step the same.")] = False,
    discount: Annotated[float, typer.Option(help="Of a reward for each act before it, in returns.")] = 1.0,
    pad: Annotated[int, typer.Option(help="Steps to pad each episode to, where the form knows of it.", min=0)] = 0,
    licence: Annotated[str, typer.Option(help="Licence to state on the dataset card.")] = "unknown",
    environment: Annotated[Path | None, typer.Option(
        help="Of rollouts that lie elsewhere: their environment.", show_default=False)] = None,
    config: Annotated[str | None, typer.Option(help="TOML file that the run was given.", show_default=False)] = None,
    json: Json = False,
) -> None:
    """Write what was made in the form that another program takes: tasks and episodes as datasets, or the room to act in."""
    from env_builder.exports.selection import Selection
    from pipelines import outgoing

    least, most = _interval(outcome)
    selection = Selection(tuple(split or ()), tuple(family or ()), tuple(band or ()), least, most, tuple(tier or ()),
                          tuple(policy or ()), duplicates)
    wanted = outgoing.Wanted(selection, tuple(form or ()), discount, pad, licence, environment, config)
    with bars():
        written = outgoing.export(name, place, to, wanted)
    for path in written.paths:
        say(f"[bold]{escape(str(path))}[/]")
    left = written.verdicts.unique(["subject", "reason"]).group_by("reason").len("n").sort("reason").to_dicts()
    table("Left, and why", left, right=("n",))
    if json:
        data({"exporter": name, "paths": [str(path) for path in written.paths], "left": left})


def _interval(text: str | None) -> tuple[float | None, float | None]:
    """LOW:HIGH as numbers; a part that was left out is None."""
    if text is None:
        return None, None
    low, colon, high = text.partition(":")
    try:
        least, most = (float(part) if part else None for part in (low, high))
    except ValueError:
        colon, least, most = "", None, None
    if not colon:
        raise InputError("an interval is LOW:HIGH", text, "write for example --outcome 0.8:1")
    return least, most
