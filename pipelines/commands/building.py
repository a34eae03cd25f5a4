"""Commands that make something: `run`, `base-image`, `export`."""

from __future__ import annotations

import os
import shlex
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.markup import escape

from pipelines.commands.options import Json, LedgerFolder, Out, RepositoryPaths, RunConfig, SessionLimit
from pipelines.screen import bars, console, data, many, printable, say, table, tell_changes
from pipelines.settings import Settings
from warehouse.errors import GateFailed, InputError

if TYPE_CHECKING:
    from pipelines.running.run import Ran

Many = list[str] | None
_NAMED = 3
"""Unread fields that are named."""


def run(
    logs: Annotated[list[str] | None, typer.Argument(
        help="Log files or folders, in any format; if none is given, the paths in --config.", show_default=False)] = None,
    out: Out = "out",
    only: Annotated[list[str] | None, typer.Option(
        "--include", help="Read only this folder inside LOGS. May be repeated.")] = None,
    without: Annotated[list[str] | None, typer.Option(
        "--exclude", help="Skip this folder inside LOGS. May be repeated.")] = None,
    config: Annotated[str | None, typer.Option(help="TOML file that describes the sources.")] = None,
    repository: RepositoryPaths = None,
    privacy: Annotated[Literal["on", "off"] | None, typer.Option(
        help="Pseudonymise personal data before it is stored; overrides --config. Default: on.", show_default=False)] = None,
    image: Annotated[bool, typer.Option("--image/--no-image", help="Build container images.")] = True,
    base_image: Annotated[str | None, typer.Option(help="Base image of these.", show_default=False)] = None,
    warehouse: Annotated[str | None, typer.Option(
        help="Use a DuckLake as the warehouse: ducklake:postgres://USER@HOST/DATABASE?data=s3://BUCKET/PREFIX. --out "
             "remembers it.", envvar="TRACEROOM_WAREHOUSE", show_default=False)] = None,
    since: Annotated[str | None, typer.Option(
        help="Build only from sessions of this day (YYYY-MM-DD) and later.", show_default=False)] = None,
    service: Annotated[list[str] | None, typer.Option(
        help="Build only this service. May be repeated.", show_default=False)] = None,
    limit: SessionLimit = None,
    ledger: LedgerFolder = None,
    dry_run: Annotated[bool, typer.Option(
        "--dry-run", help="Show which files would be read and why each stage would run; write nothing.")] = False,
    release: Annotated[bool, typer.Option("--release", help="Release the result, as `traceroom release` does.")] = False,
    json: Json = False,
) -> None:
    """Turn logs into verified environments with rewards, and datasets.

    A second run over the same logs adds nothing; new logs are added to what --out already contains.
    """
    from pipelines.ingestion.listing import something_to_read

    settings = Settings(
        logs=tuple(logs or ()), out=out, only=tuple(only or ()), without=tuple(without or ()), configuration=config,
        repositories=tuple(repository or ()),
        privacy=None if privacy is None else privacy == "on", image=image, base_image=base_image,
        warehouse_url=warehouse, since=since, services=tuple(service or ()), limit=limit, ledger=ledger).checked()
    unmatched = something_to_read(settings)
    if dry_run:
        _plan(settings, json)
        return
    for option in unmatched:
        say(f"[yellow]![/] {escape(option)} matches no folder of the logs, so it has no effect; correct or remove it.")
    made = _cached_report(settings) or _made(settings)
    _tell(made)
    if json:
        data(made)
    _check(made, settings)
    if release:
        _release(settings)


def _cached_report(settings: Settings) -> dict[str, Any] | None:
    """Return the report of the last run if nothing has changed since; an instance of Dagster records each run itself."""
    from pipelines.running import receipt
    from pipelines.stages import STAGES

    began = time.perf_counter()
    if os.environ.get("DAGSTER_HOME") or (made := receipt.document(settings)) is None:
        return None
    stages = [{"stage": stage.name, "computed": False, "seconds": 0.0} for stage in STAGES]
    return {**made, "seconds": round(time.perf_counter() - began, 3), "stages": stages}


def _made(settings: Settings) -> dict[str, Any]:
    """Carry out what there is to do, and return what the run tells."""
    from pipelines.inspection.summary import summary
    from pipelines.inspection.unread_fields import unread_fields
    from pipelines.running import receipt
    from pipelines.running import run as running

    has_instance = bool(os.environ.get("DAGSTER_HOME"))
    ran = (None if has_instance else running.unchanged(settings)) or _carry_out(settings)
    unread = unread_fields(settings, receipt.unread(settings))
    made = {**summary(settings), "unread_fields": unread.rows, "checks_failed": ran.broken}
    if not has_instance:
        receipt.keep(settings, made, unread.of)
    return {**made, "seconds": round(ran.seconds, 3), "stages": ran.stages}


def _carry_out(settings: Settings) -> Ran:
    """Run every stage that is not up to date, with its progress on the screen and in a file."""
    from pipelines.progress import written_to
    from pipelines.running.run import run as run_stages
    from pipelines.stages import STAGES

    with bars(), written_to(Path(settings.out), len(STAGES)):
        return run_stages(settings, lambda who: say(f"[yellow]Waiting for {escape(who)}.[/]"))


def _check(made: dict[str, Any], settings: Settings) -> None:
    """Raise an error where nothing was read, or a gate failed."""
    if not made["n_events"]:
        raise InputError(f"nothing was read of {many(made['n_files'], 'file')}", ", ".join(settings.logs) or settings.out,
                         "run `traceroom sniff FILE`: it proposes a mapping for --config")
    if made["checks_failed"]:
        broken = ", ".join(made["checks_failed"])
        raise GateFailed(f"data-quality checks failed: {broken}", made["warehouse"], "see docs/pipeline.md")


def _release(settings: Settings) -> None:
    from pipelines.commands.releasing import tell
    from pipelines.releases import releasing

    registry = releasing.registry_of(settings)
    tell(releasing.release(settings, registry, "released by its run"), registry)


def _plan(settings: Settings, json: bool) -> None:
    """Print what the run would do."""
    from pipelines.running.run import plan

    planned = plan(settings)
    if json:
        data(planned)
        return
    files = planned["files"]
    say(f"{many(files['new'], 'file')} would be read ({files['n_bytes'] / 1e6:,.1f} MB), {files['known']:,} were read before")
    table("Rejected", [{"reason": reason, "n": n} for reason, n in files["rejected"].items()], right=("n",))
    table("Stages", planned["stages"])
    say("Nothing was written.")


def _tell(made: dict[str, Any]) -> None:
    n_computed = sum(stage["computed"] for stage in made["stages"])
    say("")
    say(f"[bold]{made['n_sessions']:,}[/] sessions with {made['n_calls']:,} tool calls of {made['n_tools']:,} tools, "
        f"from {made['n_records']:,} records in {many(made['n_files'], 'file')}")
    proof = " (of each, the known solution earns 1, doing nothing 0, and replays are identical)"
    n_in_rooms = sum(row["n_tasks"] for row in made["rooms"])
    if made["n_published"] or not n_in_rooms:
        say(f"[bold]{made['n_tasks']:,}[/] tasks found, [bold green]{made['n_published']:,}[/] published"
            + (proof if made["n_published"] else ": see the reasons below"))
    if n_in_rooms:
        say(f"[bold green]{n_in_rooms:,}[/] {'task' if n_in_rooms == 1 else 'tasks'} of sites, repositories, companies"
            + " published" + (proof if not made["n_published"] else ""))
    if made["n_from_failures"] or made["n_generated"]:
        say(f"[bold]{made['n_from_failures']:,}[/] of them from failed sessions, solved as successful sessions solve them; "
            f"and [bold green]{made['n_generated']:,}[/] new ones about other records")
    say(f"in {made['seconds']:.1f} s" + ("" if n_computed > 2 else ": nothing new, the results are unchanged") + "\n")
    for row in made["environments"]:
        image = escape(row["image_id"][:19] if row["image_id"] else f"none: {row['image_skip_reason']}")
        say(f"[bold]{escape(row['environment'])}[/]  {many(row['n_tasks'], 'task')}, {many(row['n_tools'], 'tool')}")
        say(f"  environment    {escape(row['path'])}\n  rewards        {escape(row['rewards'])}\n  image          {image}\n")
    for row in made["rooms"]:
        say(f"[bold]{escape(row['environment'])}[/]  {many(row['n_tasks'], 'task')} of {escape(row['of_what'])}")
        say(f"  environment    {escape(row['path'])}\n  rewards        {escape(row['rewards'])}\n")
    folders: dict[str, dict[str, Any]] = {}
    for row in made["dataset_rows"]:
        folders.setdefault(row["folder"], {"folder": row["folder"]})[row["kind"]] = row["n_rows"]
    table("Datasets", list(folders.values()), right=("trajectories", "sft"))
    tell_changes(made["changed"])
    for sentence in made["open_decisions"]:
        say(f"[yellow]![/] {escape(printable(sentence))}.\n")
    table("Fields that are not read", [_unread_row(row) for row in made["unread_fields"]], right=("fields",))
    table("Rejected", made["left"], right=("n",))
    command = escape(shlex.quote(os.environ.get("TRACEROOM_COMMAND", "traceroom")))  # as it was called
    out = escape(shlex.quote(made["out"]))
    say("[bold]Next[/]")
    say(f"  {command} show --out {out} --rejected     list every rejected line, session and task, with its reason")
    if made["unread_fields"]:
        say(f"  {command} sniff FILE     show what each field of a file is read as, with an example of those that are not")
    if any(row["reason"] == "unknown_format" for row in made["left"]):
        say(f"  {command} sniff FILE     show what a file in an unknown format holds, and propose a mapping for --config")
    for environment in (made["environments"] or made["rooms"])[:1]:
        path = escape(shlex.quote(environment["path"]))
        say(f"  {command} tasks {path}")
        say(f"  {command} play {path} TASK            play a task yourself, and see your grade")
        say(f"  {command} serve {path}                serve it to an agent over MCP")
    say(f"  {command} review {out}     list the sessions whose review helps most\n")
    say(escape(made["statement"]))


def _unread_row(row: dict[str, Any]) -> dict[str, Any]:
    """Return unread fields as a table shows them: the first ones alone."""
    more = "" if row["n"] <= _NAMED else f" and {row['n'] - _NAMED:,} more"
    names = ", ".join(row["fields"][:_NAMED]) + more
    return {"source": row["source"], "format": row["format"], "fields": row["n"], "which": names}


def base_image(
    name: Annotated[str | None, typer.Option(help="Name of the image.", show_default=False)] = None,
    suite: Annotated[str, typer.Option(help="Debian release of the packages.")] = "bookworm",
    packages: Annotated[list[str] | None, typer.Option(
        "--with", help="Debian package that it has besides, such as python3-openpyxl; repeatable. The image is then that of "
        "agents who work on files.", show_default=False)] = None, json: Json = False,
) -> None:
    """Build the small base image from Debian packages, if no image registry is reachable."""
    from env_builder.image import LOCAL_BASE, OFFICE_BASE, make_base

    called = name or (OFFICE_BASE if packages else LOCAL_BASE)
    with console.status("Building the base image from Debian packages"):
        image_id = make_base(called, suite, packages or ())
    what = "agents who work on files use it" if packages else "runs use it if the default base image is missing"
    say(f"[bold]{escape(called)}[/] is {image_id}; {what}")
    if json:
        data({"name": called, "image_id": image_id})


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
    start: Annotated[Many, typer.Option(
        "--start", help="For an environment: add tasks that start midway: after-answer (after a tool's answer in the known "
                        "solution), before-failure (last step of a failed session from which the rest of the known solution "
                        "succeeds). May be repeated.", show_default=False)] = None,
    config: RunConfig = None, json: Json = False,
) -> None:
    """Export results in the format of another program: tasks and episodes as datasets, or the environment itself."""
    from env_builder.exports.selection import Selection
    from pipelines.building import export as exporting

    low, colon, high = (outcome or ":").partition(":")
    try:
        least, most = (float(bound) if bound else None for bound in (low, high))
    except ValueError:
        colon, least, most = "", None, None
    if not colon:
        raise InputError(f"invalid interval {outcome!r} (expected LOW:HIGH)", "--outcome", "for example --outcome 0.8:1")
    selection = Selection(tuple(split or ()), tuple(family or ()), tuple(band or ()), least, most, tuple(tier or ()),
                          tuple(policy or ()), duplicates)
    wanted = exporting.Wanted(selection, tuple(form or ()), discount, pad, licence, environment, config,
                              tuple(start or ()))
    with bars():
        written = exporting.export(name, place, to, wanted)
    for path in written.paths:
        say(f"[bold]{escape(str(path))}[/]")
    rejected = written.decisions.unique(["subject", "reason"]).group_by("reason").len("n").sort("reason").to_dicts()
    table("Rejected", rejected, right=("n",))
    if json:
        data({"exporter": name, "paths": [str(path) for path in written.paths], "left": rejected})
