"""Commands about what is forgotten, and people: `forget`, `pseudonym`, `relearn`."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from pipelines.commands.options import Json, Out, RegistryPath, RunConfig
from pipelines.screen import data, many, say, table
from pipelines.settings import Settings
from warehouse.errors import GateFailed, Missing

if TYPE_CHECKING:
    from pipelines.erasing.forgetting import Forgot


def forget(
    subject: Annotated[str, typer.Option(
        "--subject", help="Id, user name or e-mail address of the person; - reads it from stdin, and no shell stores it.")],
    also: Annotated[list[str] | None, typer.Option(
        help="Another value that identifies the person. May be repeated.", show_default=False)] = None,
    out: Out = "out", config: RunConfig = None, registry: RegistryPath = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be deleted; delete nothing.")] = False,
    json: Json = False,
) -> None:
    """Delete everything that a run derived from a person's data, and skip that person in later runs."""
    from pipelines.erasing.forgetting import forget as erase
    from pipelines.releases.releasing import registry_of

    settings = Settings(logs=(), out=out, configuration=config).checked()
    person = sys.stdin.readline().strip() if subject == "-" else subject
    done = erase(settings, registry_of(settings, registry), person, also or (), dry_run,
                 lambda who: say(f"[yellow]Waiting for {escape(who)}.[/]"))
    if json:
        data(done._asdict() | {"releases": [each._asdict() for each in done.releases]})
    _tell(done, dry_run)
    if done.remaining:
        names = ", ".join(done.remaining)
        raise GateFailed(f"{len(done.remaining)} files still mention the person, and no run wrote them: {names}", out,
                         "delete them, then run the same command again")


def _tell(done: Forgot, dry: bool) -> None:
    values = ", ".join(done.values) + (f"; {' '.join(done.name)} with a number of their record" if done.name else "")
    say(f"{'Would search' if dry else 'Searched'} for {escape(values)}")
    deleted = "would be deleted" if dry else "deleted"
    say(f"{many(done.n_sessions, 'session')}, {many(done.n_events, 'event')} and {many(done.n_tasks, 'task')} {deleted}")
    table(f"Rows {deleted}", [{"table": name, "rows": n} for name, n in done.rows.items()], right=("rows",))
    table(f"Removed, to be rebuilt: {len(done.withdrawn)}", [{"directory": name} for name in done.withdrawn])
    for each in done.releases:
        reissued = "would be reissued" if dry else f"reissued as {each.instead}" if each.instead else "nothing of it remains"
        say(f"Release [bold]{each.release}[/] contained them: yanked, {reissued}; "
            f"without {escape(', '.join(each.left_out[:10]))}")
    if done.n_corrections:
        say(f"{many(done.n_corrections, 'correction')} of their data {deleted}")
    if done.images:
        say(f"Container images built from their data, for you to remove: {escape(', '.join(done.images))}")
    if done.services:
        say(f"Supports, rates and calibrations of {escape(', '.join(done.services))} change at the next build: traceroom run")
    if not dry:
        say("Later runs skip the person's records; the logs themselves are unchanged.")


def pseudonym(
    value: Annotated[str, typer.Argument(help="Name, address, number or id, as it is written in the logs.")],
    kind: Annotated[str | None, typer.Option(
        help="Kind of the value: name, email, phone, address, zip, card, ending, account, id, ip or date. Default: detected.",
        show_default=False)] = None,
    json: Json = False,
) -> None:
    """Print the pseudonym of a value; needs the key that the run used."""
    from extractors.privacy import KINDS, Pseudonyms
    from extractors.privacy.credentials import cut_out
    from extractors.privacy.fields import guessed
    from extractors.privacy.pseudonyms import day_of
    from pipelines.privacy.keys import owner_key

    if kind is not None and kind not in KINDS:
        raise Missing.named("kind", kind, KINDS)
    kind = kind or ("secret" if cut_out(value) != value else "date" if day_of(value) else guessed(value))
    made = Pseudonyms(*owner_key(os.environ, say)).of(kind, value)
    if json:
        data({"kind": kind, "pseudonym": made})
    else:
        typer.echo(made)


def relearn(
    out: Out = "out",
    service: Annotated[list[str] | None, typer.Option(
        help="Only the tools of this service. May be repeated.", show_default=False)] = None,
    json: Json = False,
) -> None:
    """Forget the programs of tools that were learnt: the next run learns them from the whole log."""
    from pipelines.building.worlds import relearn as forget_programs
    from warehouse.catalogs import catalog_of
    from warehouse.lock import writing
    from warehouse.store import Store

    settings = Settings(logs=(), out=out).checked()
    if not catalog_of(settings.warehouse).is_there():
        raise Missing("there is no warehouse here", str(settings.warehouse), "name the folder of a run: --out DIR")
    with (writing(settings.warehouse, "forgetting programs of tools",
                  lambda who: say(f"[yellow]Waiting for {escape(who)}.[/]")), Store.open(settings.warehouse) as store):
        n_programs = forget_programs(store, service or ())
    if json:
        data({"programs": n_programs})
    say(f"{many(n_programs, 'program')} will be learnt again: traceroom run")
