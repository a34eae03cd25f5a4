"""The command that hands out what was made: `export`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from pipelines.commands.options import Json, RunConfig
from pipelines.screen import bars, data, say, table
from warehouse.errors import InputError

Many = list[str] | None


def export(
    name: Annotated[str, typer.Argument(help="Exporter, or `datasets` for every dataset format; a wrong name lists them.")],
    place: Annotated[Path, typer.Argument(help="OUT/environments/NAME; for datasets also OUT, or a folder of rollouts.")],
    to: Annotated[Path, typer.Option("--to", help="Folder to write to.")] = Path("exported"),
    split: Annotated[Many, typer.Option(
        help="Split: train, validation or held_out. May be repeated. Default: all for a dataset; train and validation for an "
             "environment.", show_default=False)] = None,
    form: Annotated[Many, typer.Option(
        help="For `datasets`: write only this format. May be repeated.", show_default=False)] = None,
    family: Annotated[Many, typer.Option(
        help="Family of tasks: its name, or the beginning of its id. May be repeated.", show_default=False)] = None,
    band: Annotated[Many, typer.Option(
        "--difficulty", help="How often the task succeeds: rarely, sometimes, often, mostly. May be repeated.",
        show_default=False)] = None,
    outcome: Annotated[str | None, typer.Option(
        help="Interval LOW:HIGH of the reward or probability of success; either may be omitted.", show_default=False)] = None,
    tier: Annotated[Many, typer.Option(
        help="Allowed tier of the answers in a rollout's episode. May be repeated.", show_default=False)] = None,
    policy: Annotated[Many, typer.Option(
        help="Agent or policy that played the episode, as the log names it. May be repeated.", show_default=False)] = None,
    duplicates: Annotated[bool, typer.Option("--duplicates", help="Keep episodes with identical steps.")] = False,
    discount: Annotated[float, typer.Option(help="Discount of the reward for each earlier action, for returns.")] = 1.0,
    pad: Annotated[int, typer.Option(help="Pad each episode to this many steps, if the format supports it.", min=0)] = 0,
    licence: Annotated[str, typer.Option(help="Licence to state on the dataset card.")] = "unknown",
    environment: Annotated[Path | None, typer.Option(
        help="Environment of rollouts that are stored elsewhere.", show_default=False)] = None,
    config: RunConfig = None, json: Json = False,
) -> None:
    """Export results in the format of another program: tasks and episodes as datasets, or the environment itself."""
    from env_builder.exports.selection import Selection
    from pipelines.building import export as outgoing

    low, colon, high = (outcome or ":").partition(":")
    try:
        least, most = (float(bound) if bound else None for bound in (low, high))
    except ValueError:
        colon, least, most = "", None, None
    if not colon:
        raise InputError(f"invalid interval {outcome!r} (expected LOW:HIGH)", "--outcome", "for example --outcome 0.8:1")
    selection = Selection(tuple(split or ()), tuple(family or ()), tuple(band or ()), least, most, tuple(tier or ()),
                          tuple(policy or ()), duplicates)
    wanted = outgoing.Wanted(selection, tuple(form or ()), discount, pad, licence, environment, config)
    with bars():
        written = outgoing.export(name, place, to, wanted)
    for path in written.paths:
        say(f"[bold]{escape(str(path))}[/]")
    rejected = written.decisions.unique(["subject", "reason"]).group_by("reason").len("n").sort("reason").to_dicts()
    table("Rejected", rejected, right=("n",))
    if json:
        data({"exporter": name, "paths": [str(path) for path in written.paths], "left": rejected})
