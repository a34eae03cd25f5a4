"""Commands on live sources: `sources add`, `sources list`, `sources test`, `sources pull`."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from pipelines.commands.options import Json
from pipelines.screen import bars, data, many, printable, say, table
from warehouse.errors import InputError, TraceroomError, Unavailable

if TYPE_CHECKING:
    from extractors.configuration import Source

Config = Annotated[str, typer.Option("--config", help="Configuration file with the sources.")]
Names = Annotated[list[str] | None, typer.Argument(help="Names of sources; without any, all.", show_default=False)]
_FILE = "traceroom.toml"


def add(
    name: Annotated[str, typer.Argument(help="Name of the source; part of the ids of its records.")],
    platform: Annotated[str, typer.Argument(help="Platform; a wrong name lists them.")],
    config: Config = _FILE,
    url: Annotated[str | None, typer.Option(help="Address of the platform.", show_default="its own service")] = None,
    project: Annotated[str | None, typer.Option(help="Project, where the key alone does not decide it.",
                                                show_default=False)] = None,
    only: Annotated[list[str] | None, typer.Option(
        "--filter", help="NAME=VALUE: pull only such records. May be repeated.", show_default=False)] = None,
    option: Annotated[list[str] | None, typer.Option(
        "--option", help="NAME=VALUE: a setting of this platform. May be repeated.", show_default=False)] = None,
    credential: Annotated[list[str] | None, typer.Option(
        "--credential", help="VARIABLE=env:NAME or VARIABLE=file:PATH: where a credential is. May be repeated. Default: the "
                             "environment variable of that name.", show_default=False)] = None,
    since: Annotated[str | None, typer.Option(help="First day or instant of the records.", show_default=False)] = None,
    until: Annotated[str | None, typer.Option(help="Day or instant that they end before.", show_default=False)] = None,
    limit: Annotated[int | None, typer.Option(help="Records that one pull takes at most.", show_default=False, min=1)] = None,
    folder: Annotated[str | None, typer.Option(
        help="Folder to pull into, relative to the configuration file.", show_default="inbox/NAME")] = None,
    service: Annotated[str | None, typer.Option(help="Service of everything in it.", show_default=False)] = None,
    json: Json = False,
) -> None:
    """Add a live source to the configuration file. Credentials stay in the environment or in files."""
    from pipelines.sources import adding
    from pipelines.sources.accounts import account_of

    source = adding.add(Path(config), {
        "name": name, "paths": [folder or f"inbox/{name}"], "service": service, "pull": {
            "platform": _platform(platform), "url": url, "project": project, "since": since, "until": until, "limit": limit,
            "filter": _pairs(only, "--filter"), "options": _pairs(option, "--option"),
            "credentials": _pairs(credential, "--credential")}})
    say(f"[bold]{escape(name)}[/] is a source of {escape(config)}, pulled into {escape(source.paths[0])}")
    try:
        account_of(source)
    except TraceroomError as error:
        say(f"[yellow]![/] {escape(str(error))}")
    say(f"Next: traceroom sources test {escape(name)} --config {escape(config)}")
    if json:
        data(source.model_dump(mode="json"))


def _platform(name: str) -> str:
    from extractors import sources

    return sources.named(name).name


def _pairs(given: list[str] | None, option: str) -> dict[str, str]:
    pairs = [each.partition("=") for each in given or ()]
    for key, equals, _ in pairs:
        if not key or not equals:
            raise InputError(f"invalid {key or '='!r} (expected NAME=VALUE)", option, "write it as NAME=VALUE")
    return {key: value for key, _, value in pairs}


def list_sources(config: Config = _FILE, json: Json = False) -> None:
    """List the live sources: platform, cursor, last pull, records."""
    from pipelines.sources.accounts import pulled_sources
    from pipelines.sources.listing import rows_of

    rows = [row for source in pulled_sources(config) for row in rows_of(source)]
    if json:
        data(rows)
    elif rows:
        table("Sources", rows, right=("records",))
    else:
        say(f"{escape(config)} has no live source; add one: traceroom sources add NAME PLATFORM")


def test(names: Names = None, config: Config = _FILE, json: Json = False) -> None:
    """Test whether address, key and project work, and count the records that wait."""
    from pipelines.sources.accounts import pulled_sources
    from pipelines.sources.pulling import first_page

    def tested(source: Source) -> dict[str, Any]:
        project, page, stream = first_page(source)
        n_groups = len({stream.identify(each).group for each in page.records})
        waiting = f"{'' if page.is_last else 'at least '}{many(n_groups, 'trace')} waiting"
        say(f"[green]✓[/] {escape(source.name)}: address, key and project ({escape(printable(project))}) work; {waiting}")
        return {"source": source.name, "works": True, "project": project, "n_waiting": n_groups,
                "is_all": page.is_last}

    _for_each(pulled_sources(config, tuple(names or ())), tested, json)


def pull(
    names: Names = None, config: Config = _FILE,
    since: Annotated[str | None, typer.Option(
        help="Pull records from this day or instant on, instead of from where the last pull ended.",
        show_default=False)] = None,
    until: Annotated[str | None, typer.Option(help="Pull records before this day or instant.", show_default="now")] = None,
    limit: Annotated[int | None, typer.Option(
        help="Pull this many records of each stream at most; the next pull continues.", show_default=False, min=1)] = None,
    json: Json = False,
) -> None:
    """Pull what is new from live sources into their folders. A pull that was interrupted continues."""
    from pipelines.sources.accounts import pulled_sources

    pull_all(pulled_sources(config, tuple(names or ())), _instant(since, "--since"), _instant(until, "--until"), limit, json)


def pull_all(every: list[Source], since: datetime | None = None, until: datetime | None = None, limit: int | None = None,
             json: bool = False) -> None:
    """Pull sources one after the other. Raises `Unavailable` at the end if one failed."""
    from pipelines.sources.pulling import Bounds
    from pipelines.sources.pulling import pull as pull_one

    def pulled(source: Source) -> dict[str, Any]:
        def tell(why: str) -> None:
            say(f"[yellow]![/] {escape(source.name)}: {escape(why)}")

        done = pull_one(source, Bounds(since, until, limit), tell)
        rest = "" if done.is_complete else "; the limit ended it, and the next pull continues"
        say(f"[green]✓[/] {escape(source.name)}: {many(done.n_records, 'new record')} in {many(done.n_pages, 'page')}{rest}")
        return {"source": done.source, "platform": done.platform, "folder": done.folder, "n_pages": done.n_pages,
                "n_listed": done.n_listed, "n_records": done.n_records, "n_waits": done.n_waits,
                "is_complete": done.is_complete}

    _for_each(every, pulled, json)


def _for_each(every: list[Source], act: Any, json: bool) -> None:
    """Act on each source; one that fails does not stop the others."""
    if not every:
        raise InputError("there is no live source", hint="add one: traceroom sources add NAME PLATFORM")
    rows, failed = [], []
    with bars():
        for source in every:
            try:
                rows.append(act(source))
            except TraceroomError as error:
                say(f"[bold red]✗[/] {escape(source.name)}: {escape(str(error))}")
                failed.append(source.name)
                rows.append({"source": source.name, "error": {"what": error.what, "where": error.where, "hint": error.hint}})
    if json:
        data(rows)
    if failed:
        raise Unavailable(f"{len(failed)} of {many(len(every), 'source')} failed: {', '.join(failed)}",
                          hint="see the reason above; what was pulled stays")


def _instant(text: str | None, option: str) -> datetime | None:
    from pipelines.sources.pulling import instant

    try:
        return instant(text)
    except ValueError:
        raise InputError(f"invalid instant {text!r} (expected such as 2026-03-31 or 2026-03-31T08:00:00Z)", option,
                         "correct it") from None
