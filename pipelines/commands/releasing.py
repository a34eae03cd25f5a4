"""Commands of releases: `release`, `releases`, `diff`, `pull`, `yank`, `gc`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from extractors import objects
from pipelines.commands.options import By, Json, Out, RegistryPath, RunConfig, Why
from pipelines.screen import data, many, say, table, tell_changes
from pipelines.settings import Settings
from warehouse.errors import GateFailed, InputError, Missing

if TYPE_CHECKING:
    from pipelines.releases.registry import Registry
    from pipelines.releases.releasing import Released

_ROWS, _MOST = 10, 20
_A_RELEASE = "Release: its id, the beginning of it, a pin, or `current`."


def release(
    out: Out = "out", registry: RegistryPath = None,
    approve: Annotated[str | None, typer.Option(
        help="Promote this waiting or earlier release instead of making one.", show_default=False)] = None,
    accept: Annotated[list[str] | None, typer.Option(
        help="Accept the build despite this failed gate. May be repeated.", show_default=False)] = None,
    config: RunConfig = None, why: Why = "", by: By = None, json: Json = False,
) -> None:
    """Release the results of a run: check every gate, store them permanently in the registry, and promote them."""
    from pipelines.releases import releasing

    settings, place = _registry(out, registry, config)
    if approve:
        promoted, before = releasing.approve(place, approve, why, by)
        stands = promoted == before
        say(f"[bold green]{promoted}[/] is promoted"
            + (" already; nothing was done" if stands else f", replacing {before or 'nothing'}"))
        if json:
            data({"release": promoted, "state": "stands" if stands else "promoted", "before": before})
        return
    if not Path(settings.out).exists():
        raise _nothing(settings)
    made = releasing.release(settings, place, why, by, accept or (), lambda who: say(f"[yellow]Waiting for {escape(who)}.[/]"))
    if json:
        data({
            "release": made.release, "state": made.state, "before": made.before, "registry": place.where,
            "gates": [{"gate": each.gate, "level": each.level, "red": each.red, "accepted": each.accepted,
                       "n": each.rows.height, "rows": each.rows.head(_ROWS).to_dicts()} for each in made.judged]})
    tell(made, place)


def tell(made: Released, registry: Registry) -> None:
    """Print whether a build was released. Raises GateFailed if a gate rejected it."""
    from pipelines.releases.releasing import refusal

    for each in made.judged:
        if not each.rows.is_empty():
            mark = "[bold red]✗[/]" if each.red else "[yellow]![/]"
            note = " (accepted)" if each.accepted else ""
            say(f"{mark} [bold]{each.gate}[/]{note}: {escape(each.description)} Offending rows: {each.rows.height:,}")
            table("", each.rows.head(_ROWS).to_dicts())
    if made.release is None:
        raise refusal(made.judged, made.before)
    where = escape(registry.where)
    if made.state == "stands":
        say(f"[bold]{made.release}[/] is promoted already and equals this build: nothing new in {where}")
    elif made.state == "waiting":
        say(f"[bold]{made.release}[/] waits in {where}; {made.before or 'nothing'} is promoted")
        say(f"  traceroom release --registry {where} --approve {made.release}")
    else:
        say(f"[bold green]{made.release}[/] is promoted in {where}, replacing {made.before or 'nothing'}")
        for name, row in registry.manifest(made.release).get("transfer", {}).items():
            say(f"  {escape(name)} on the real service: rank correlation {_transfer({'transfer': {name: row}})}, "
                f"regret of choosing {row['regret']:.3f}, {many(row['n_pairs'], 'pair')}")
        if made.before:
            say(f"  traceroom diff {made.before} {made.release} --registry {where}")


def releases(
    out: Out = "out", registry: RegistryPath = None,
    verify: Annotated[bool, typer.Option("--verify", help="Read every file and compare it with its digest.")] = False,
    pin: Annotated[str | None, typer.Option(
        help="NAME=RELEASE: give the release this name, and protect it from `gc`.", show_default=False)] = None,
    unpin: Annotated[str | None, typer.Option(help="Remove the pin of this name.", show_default=False)] = None,
    log: Annotated[bool, typer.Option("--log", help="List promotions: who, when, from, to, why.")] = False,
    config: RunConfig = None, json: Json = False,
) -> None:
    """List the releases of a registry, the promoted one first."""
    _, place = _registry(out, registry, config)
    if pin is not None:
        name, equals, target = pin.partition("=")
        if not equals:
            raise InputError(f"invalid pin {pin!r} (expected NAME=RELEASE)", "--pin", "for example --pin paper=current")
        place.pin(name, place.named(target))
    if unpin is not None:
        place.pin(unpin, None)
    if log:
        rows: list[dict[str, Any]] = place.promotions()
        data(rows) if json else table("Promotions", rows)
        return
    listed = place.listed()
    figures = {"sessions": "n_sessions", "tasks": "n_published", "answered": "answered"}
    is_measured = any(each.manifest.get("transfer") for each in listed)   # a rare column only where it holds something
    rows = [{"release": each.release, "state": each.state, "promoted": (each.promoted_at or "")[:16].replace("T", " "),
             "pins": ", ".join(each.pins),
             **{name: each.manifest.get("figures", {}).get(figure) for name, figure in figures.items()},
             **({"transfer": _transfer(each.manifest)} if is_measured else {})} for each in listed]
    wrong = list(place.verify(each.release for each in listed)) if verify else []
    if json:
        damage = [{"wrong": [row for row in wrong if row["release"] == each.release]} if verify else {} for each in listed]
        data([{**each._asdict(), **more} for each, more in zip(listed, damage, strict=True)])
    else:
        table(f"Releases in {place.where}", rows, right=("sessions", "tasks", "answered", "transfer"))
        table("Damaged files", wrong)
        say("There is no release yet: traceroom release" if not rows else "Every file matches its digest."
            if verify and not wrong else "")
    if wrong:
        raise GateFailed(f"{len(wrong)} files do not match their digests", place.where,
                         "promote an intact release (traceroom release --approve), and yank the damaged ones")


def diff(
    before: Annotated[str, typer.Argument(metavar="A", help=_A_RELEASE)],
    after: Annotated[str, typer.Argument(metavar="B", help="Release to compare it with.")], out: Out = "out",
    registry: RegistryPath = None, config: RunConfig = None, json: Json = False
) -> None:
    """Compare two releases: tasks that were added, removed or changed, figures that changed, and why."""
    from pipelines.releases.comparing import diff as compare

    _, place = _registry(out, registry, config)
    comparison = compare(place, place.named(before), place.named(after))
    if json:
        data(comparison)
        return
    say(f"[bold]{comparison['from']}[/] → [bold]{comparison['to']}[/]: {escape(comparison['inputs']['says'])}\n")
    tell_changes([row["detail"] for row in comparison["changes"]])
    table("Figures", comparison["figures"], right=("before", "after"))
    for change, title in (("came", "Tasks added"), ("gone", "Tasks removed"), ("moved", "Tasks changed")):
        rows = comparison["tasks"][change]
        table(f"{title}: {len(rows):,}", [{**row, "task_id": row["task_id"][:16]} for row in rows[:_MOST]])
    for name in ("tools", "families"):
        rows = [{key: f"{each[0]} → {each[1]}" if isinstance(each, list) else each for key, each in row.items()}
                for row in comparison[name]]
        for row in rows[:_MOST]:
            first, *rest = row.items()
            say(f"  {escape(str(first[1]))}: {escape(', '.join(f'{key} {value}' for key, value in rest))}")
    table("Partitions", [{key: (row[key] or "none")[:12] if key in ("before", "after") else row[key] for key in row}
                    for row in comparison["parts"]], right=("bytes",))
    if not (comparison["figures"] or comparison["parts"]):
        say("Both have the same content.")


def pull(
    release: Annotated[str, typer.Argument(help=_A_RELEASE)],
    to: Annotated[Path, typer.Option("--to", help="Folder to write to; it must be new or empty.")], out: Out = "out",
    registry: RegistryPath = None, config: RunConfig = None
) -> None:
    """Copy a release out of a registry, and check every file against its digest."""
    _, place = _registry(out, registry, config)
    name = place.named(release)
    say(f"[bold]{name}[/] is in {escape(str(place.fetch(name, to)))}")


def yank(
    release: Annotated[str, typer.Argument(help="Release: its id, the beginning of it, or a pin.")],
    why: Annotated[str, typer.Option("--why", help="Reason, for the tombstone.")],
    instead: Annotated[str | None, typer.Option(
        help="Release to promote instead, if this one is promoted. Default: none.", show_default=False)] = None,
    out: Out = "out", registry: RegistryPath = None, by: By = None, config: RunConfig = None,
) -> None:
    """Permanently delete a release's content; a tombstone keeps author, date and reason."""
    _, place = _registry(out, registry, config)
    name = place.named(release)
    gone = place.withdraw(name, why, place.named(instead) if instead else None, by)
    say(f"[bold]{name}[/] is yanked, and {len(gone):,} objects of its own are deleted; "
        f"{place.current() or 'nothing'} is promoted")


def gc(
    out: Out = "out", registry: RegistryPath = None,
    keep: Annotated[int | None, typer.Option(min=1, help="Number of promoted releases to keep.", show_default="10")] = None,
    days: Annotated[float | None, typer.Option(
        min=0, help="Days to keep releases that were never promoted, and unused objects.", show_default="7")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be deleted; delete nothing.")] = False,
    config: RunConfig = None, json: Json = False,
) -> None:
    """Delete old releases and objects that no release uses; never what is promoted or pinned."""
    from pipelines.releases.registry import collect

    settings, place = _registry(out, registry, config)
    policy = settings.configured.release
    collected = collect(place, policy.keep if keep is None else keep, policy.days if days is None else days, dry_run)
    if json:
        data(collected._asdict())
        return
    deleted = "would be deleted" if dry_run else "deleted"
    names = f": {', '.join(collected.releases)}" if collected.releases else ""
    say(f"{many(len(collected.releases), 'release')} {deleted}{names}; "
        f"{many(collected.n_objects, 'object')}, {collected.n_bytes / 1e6:,.1f} MB")


def _transfer(manifest: dict[str, Any]) -> str:
    """Return the rank correlation with the real service of each environment that was measured."""
    measured = manifest.get("transfer", {})
    numbers = {name: "–" if row["spearman"] is None else f"{row['spearman']:.3f}" for name, row in sorted(measured.items())}
    return next(iter(numbers.values())) if len(numbers) == 1 else ", ".join(f"{name} {n}" for name, n in numbers.items())


def _registry(out: str, registry: str | None, config: str | None) -> tuple[Settings, Registry]:
    """Return a command's settings and its registry. Raises Missing if neither OUT nor the registry exists."""
    from pipelines.releases.releasing import registry_of

    settings = Settings(logs=(), out=out, configuration=config).checked()
    place = registry_of(settings, registry)
    if not (Path(out).exists() or objects.is_url(place.where) or Path(place.where).exists()):
        raise _nothing(settings)
    return settings, place


def _nothing(settings: Settings) -> Missing:
    return Missing("there is no such folder", settings.out, "make it with: traceroom run LOGS --out DIR")
