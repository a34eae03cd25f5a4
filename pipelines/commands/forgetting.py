"""The command `forget`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from pipelines.commands.building import Json, Out
from pipelines.commands.releasing import Config, Where
from pipelines.screen import data, many, say, table
from pipelines.settings import Settings
from warehouse.errors import GateFailed

if TYPE_CHECKING:
    from pipelines.erasing.forgetting import Forgot

STDIN = "-"


def forget(
    subject: Annotated[str, typer.Option(
        "--subject", help="Id, user name or e-mail address of the person; - reads it from stdin, so that no shell keeps it.")],
    also: Annotated[list[str] | None, typer.Option(
        help="Something else that stands for the person; may be repeated.", show_default=False)] = None,
    out: Out = "out",
    config: Config = None,
    registry: Where = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, and change nothing.")] = False,
    json: Json = False,
) -> None:
    """Take a person out of everything that a run wrote, and leave them out of what is read from now on."""
    from pipelines.erasing.forgetting import forget as take_out
    from pipelines.releases.releasing import registry_of

    settings = Settings(logs=(), out=out, configuration=config).checked()
    person = sys.stdin.readline().strip() if subject == STDIN else subject
    place = registry_of(settings, registry)
    done = take_out(settings, place, person, also or (), dry_run, lambda who: say(f"[yellow]Waiting for {escape(who)}.[/]"))
    if json:
        data(done._asdict() | {"releases": [each._asdict() for each in done.releases]})
    _tell(done, dry_run)
    if done.left:
        names = ", ".join(done.left)
        raise GateFailed(f"{len(done.left)} files still speak of the person, and no run wrote them: {names}", out,
                         "take them away, then forget again")


def _tell(done: Forgot, dry: bool) -> None:
    values = ", ".join(done.values) + (f"; {' '.join(done.name)} with a number of their record" if done.name else "")
    say(f"{'Would look' if dry else 'Looked'} for {escape(values)}")
    went = "would go" if dry else "went"
    say(f"{many(done.n_sessions, 'session')}, {many(done.n_events, 'event')} and {many(done.n_tasks, 'task')} {went}")
    table(f"Rows that {went}", [{"table": name, "rows": n} for name, n in done.rows.items()], right=("rows",))
    table(f"Withdrawn, to be built anew: {len(done.withdrawn)}", [{"directory": name} for name in done.withdrawn])
    for each in done.releases:
        anew = "would be issued anew" if dry else f"issued anew as {each.instead}" if each.instead else "nothing of it is left"
        say(f"Release [bold]{each.release}[/] held them: withdrawn, {anew}; without {escape(', '.join(each.left_out[:10]))}")
    if done.n_corrections:
        say(f"{many(done.n_corrections, 'correction')} of what was theirs {went}")
    if done.images:
        say(f"Container images built from them, to be removed: {escape(', '.join(done.images))}")
    if done.services:
        say(f"Supports, rates and calibrations of {escape(', '.join(done.services))} move at the next build: traceroom run")
    if not dry:
        say("From now on what the logs tell of them is left out; the logs themselves lie where they lay.")
