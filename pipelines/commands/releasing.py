"""Commands of releases: `release`, `releases`, `diff`, `fetch`, `withdraw`, `collect`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from extractors import objects
from pipelines.commands.building import Json, Out
from pipelines.screen import data, many, say, table
from pipelines.settings import Settings
from warehouse.errors import GateFailed, InputError, Missing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipelines.gates import Judged
    from pipelines.releases.registry import Registry
    from pipelines.releases.releasing import Released

Config = Annotated[str | None, typer.Option("--config", help="TOML file that the run was given.", show_default=False)]
Where = Annotated[str | None, typer.Option(
    "--registry", help="Folder or s3://bucket/prefix; default: as --config says, else OUT/releases.", show_default=False)]
Why = Annotated[str, typer.Option("--why", help="A word for the log of promotions.")]
By = Annotated[str | None, typer.Option("--by", help="Who says so; default: the user of this machine.", show_default=False)]
_ROWS, _MOST = 10, 20


def release(
    out: Out = "out",
    registry: Where = None,
    approve: Annotated[str | None, typer.Option(
        help="Promote this release, which waits or was promoted before, and make none.", show_default=False)] = None,
    accept: Annotated[list[str] | None, typer.Option(
        help="Let the build through this gate, after looking at its rows; may be repeated.", show_default=False)] = None,
    config: Config = None,
    why: Why = "",
    by: By = None,
    json: Json = False,
) -> None:
    """Release what a run made: judged by every gate, put into the registry for good, and promoted."""
    from pipelines.releases import releasing

    settings, place = _registry(out, registry, config)
    if approve:
        promoted, before = releasing.approve(place, approve, why, by)
        stands = promoted == before
        say(f"[bold green]{promoted}[/] is promoted"
            + (" already; nothing was done" if stands else f", in the place of {before or 'nothing'}"))
        if json:
            data({"release": promoted, "state": "stands" if stands else "promoted", "before": before})
        return
    if not Path(settings.out).exists():
        raise _nothing(settings)
    made = releasing.release(
        settings, place, why, by, accept or (), lambda who: say(f"[yellow]Waiting for {escape(who)}.[/]"))
    if json:
        data(document(made, place))
    tell(made, place)


def tell(made: Released, registry: Registry) -> None:
    """What became of a build, for a person. Raises GateFailed where a gate held it up."""
    from pipelines.releases.releasing import refusal

    _tell_gates(made.judged)
    if made.release is None:
        raise refusal(made.judged, made.before)
    where = escape(registry.where)
    if made.state == "stands":
        say(f"[bold]{made.release}[/] is promoted and is this build: nothing new in {where}")
    elif made.state == "waiting":
        say(f"[bold]{made.release}[/] waits in {where}; {made.before or 'nothing'} is promoted")
        say(f"  traceroom release --registry {where} --approve {made.release}")
    else:
        say(f"[bold green]{made.release}[/] is promoted in {where}, in the place of {made.before or 'nothing'}")
        if made.before:
            say(f"  traceroom diff {made.before} {made.release} --registry {where}")


def document(made: Released, registry: Registry) -> dict[str, Any]:
    """The same as one JSON document: {"release", "state", "before", "registry", "gates"}."""
    return {
        "release": made.release, "state": made.state, "before": made.before, "registry": registry.where,
        "gates": [{"gate": each.gate, "level": each.level, "red": each.red, "accepted": each.accepted, "n": each.rows.height,
                   "rows": each.rows.head(_ROWS).to_dicts()} for each in made.judged]}


def _tell_gates(judged: Sequence[Judged]) -> None:
    for each in judged:
        if each.rows.is_empty():
            continue
        mark = "[bold red]✗[/]" if each.red else "[yellow]![/]"
        said = " (accepted)" if each.accepted else ""
        say(f"{mark} [bold]{each.gate}[/]{said}: {escape(each.says)} Rows against it: {each.rows.height:,}")
        table("", each.rows.head(_ROWS).to_dicts())


def releases(
    out: Out = "out",
    registry: Where = None,
    verify: Annotated[bool, typer.Option("--verify", help="Read every file and hold it to its digest.")] = False,
    pin: Annotated[str | None, typer.Option(help="NAME=RELEASE: keep it from `collect`, and call it so.",
                                            show_default=False)] = None,
    unpin: Annotated[str | None, typer.Option(help="NAME: take that name away.", show_default=False)] = None,
    log: Annotated[bool, typer.Option("--log", help="List promotions: who, when, from, to, why.")] = False,
    config: Config = None,
    json: Json = False,
) -> None:
    """List the releases of a registry, the promoted one first."""
    _, place = _registry(out, registry, config)
    _pins(place, pin, unpin)
    if log:
        rows: list[dict[str, Any]] = place.promotions()
        data(rows) if json else table("Promotions", rows)
        return
    listed = place.listed()
    figures = {"sessions": "n_sessions", "tasks": "n_published", "answered": "answered"}
    rows = [{"release": each.release, "state": each.state, "promoted": (each.promoted_at or "")[:16].replace("T", " "),
             "pins": ", ".join(each.pins),
             **{name: each.manifest.get("figures", {}).get(figure) for name, figure in figures.items()}} for each in listed]
    wrong = list(place.verify(each.release for each in listed)) if verify else []
    if json:
        told = [{"wrong": [row for row in wrong if row["release"] == each.release]} if verify else {} for each in listed]
        data([{**each._asdict(), **more} for each, more in zip(listed, told, strict=True)])
    else:
        table(f"Releases in {place.where}", rows, right=("sessions", "tasks", "answered"))
        table("Not as they were made", wrong)
        say("There is no release yet: traceroom release" if not rows else "Every file is what it was made with."
            if verify and not wrong else "")
    if wrong:
        raise GateFailed(f"{len(wrong)} files are not what they were made with", place.where,
                         "promote a release that is whole (traceroom release --approve), and withdraw the broken ones")


def _pins(place: Registry, pin: str | None, unpin: str | None) -> None:
    if pin is not None:
        name, equals, release = pin.partition("=")
        if not equals:
            raise InputError("a pin is NAME=RELEASE", pin, "write for example --pin paper=current")
        place.pin(name, place.named(release))
    if unpin is not None:
        place.pin(unpin, None)


def diff(
    before: Annotated[str, typer.Argument(metavar="A", help="A release: its id, the beginning of it, a pin, or `current`.")],
    after: Annotated[str, typer.Argument(metavar="B", help="Another.")],
    out: Out = "out",
    registry: Where = None,
    config: Config = None,
    json: Json = False,
) -> None:
    """Compare two releases: tasks that came and went, figures that moved, and why."""
    from pipelines.releases.comparing import diff as compare

    _, place = _registry(out, registry, config)
    found = compare(place, place.named(before), place.named(after))
    if json:
        data(found)
        return
    say(f"[bold]{found['from']}[/] → [bold]{found['to']}[/]: {escape(found['inputs']['says'])}\n")
    table("Figures", found["figures"], right=("before", "after"))
    for way, title in (("came", "Tasks that came"), ("gone", "Tasks that went"), ("moved", "Tasks that moved")):
        rows = found["tasks"][way]
        table(f"{title}: {len(rows):,}", [{**row, "task_id": row["task_id"][:16]} for row in rows[:_MOST]])
    for name in ("tools", "families"):
        rows = [{key: f"{each[0]} → {each[1]}" if isinstance(each, list) else each for key, each in row.items()}
                for row in found[name]]
        for row in rows[:_MOST]:
            first, *rest = row.items()
            say(f"  {escape(str(first[1]))}: {escape(', '.join(f'{key} {value}' for key, value in rest))}")
    table("Parts", [{key: (row[key] or "none")[:12] if key in ("before", "after") else row[key] for key in row}
                    for row in found["parts"]], right=("bytes",))
    if not (found["figures"] or found["parts"]):
        say("They hold the same.")


def fetch(
    release: Annotated[str, typer.Argument(help="A release: its id, the beginning of it, a pin, or `current`.")],
    to: Annotated[Path, typer.Option("--to", help="Folder that is new or empty.")],
    out: Out = "out",
    registry: Where = None,
    config: Config = None,
) -> None:
    """Copy a release out of a registry, every file held to its digest."""
    _, place = _registry(out, registry, config)
    name = place.named(release)
    say(f"[bold]{name}[/] is in {escape(str(place.fetch(name, to)))}")


def withdraw(
    release: Annotated[str, typer.Argument(help="A release: its id, the beginning of it, or a pin.")],
    why: Annotated[str, typer.Option("--why", help="What whoever asks for it is told.")],
    instead: Annotated[str | None, typer.Option(
        help="Where it is the promoted one: the release to promote in its place; without it, none is.",
        show_default=False)] = None,
    out: Out = "out",
    registry: Where = None,
    by: By = None,
    config: Config = None,
) -> None:
    """Take a release's content away for good; who asks for it is told by whom, when and why."""
    _, place = _registry(out, registry, config)
    name = place.named(release)
    gone = place.withdraw(name, why, place.named(instead) if instead else None, by)
    say(f"[bold]{name}[/] is withdrawn, and {len(gone):,} contents that it alone had are gone; "
        f"{place.current() or 'nothing'} is promoted")


def collect(
    out: Out = "out",
    registry: Where = None,
    keep: Annotated[int | None, typer.Option(min=1, help="Promoted releases to keep.", show_default="10")] = None,
    days: Annotated[float | None, typer.Option(
        min=0, help="Days to keep what was never promoted, and contents of no release.", show_default="7")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go.")] = False,
    config: Config = None,
    json: Json = False,
) -> None:
    """Take old releases away, and contents that no release has; never what is promoted or pinned."""
    from pipelines.releases.collecting import collect as take_away

    settings, place = _registry(out, registry, config)
    told = settings.configured.release
    found = take_away(place, told.keep if keep is None else keep, told.days if days is None else days, dry_run)
    if json:
        data(found._asdict())
        return
    would = "would go" if dry_run else "went"
    say(f"{many(len(found.releases), 'release')} {would}{': ' if found.releases else ''}{', '.join(found.releases)}; "
        f"{many(found.n_objects, 'content')}, {found.n_bytes / 1e6:,.1f} MB")


def _registry(out: str, registry: str | None, config: str | None) -> tuple[Settings, Registry]:
    """Settings of a command, and the registry that it is about. Raises Missing where neither OUT nor the registry is there."""
    from pipelines.releases.releasing import registry_of

    settings = Settings(logs=(), out=out, configuration=config).checked()
    place = registry_of(settings, registry)
    if not (Path(out).exists() or objects.is_url(place.where) or Path(place.where).exists()):
        raise _nothing(settings)
    return settings, place


def _nothing(settings: Settings) -> Missing:
    return Missing("there is no such folder", settings.out, "make it with: traceroom run LOGS --out DIR")
