"""Commands that make something: `run`, `base-image`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.markup import escape

from pipelines.screen import bars, console, data, many, say, table, tell_changes
from pipelines.settings import Settings
from warehouse.errors import GateFailed

if TYPE_CHECKING:
    from pipelines.unchanged import Ran

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
Out = Annotated[str, typer.Option("--out", help="Folder that a run writes: warehouse, environments, rewards, datasets.")]


def run(
    logs: Annotated[list[str] | None, typer.Argument(
        help="Log files, or folders taken as they are; where none is named, the paths that --config names.",
        show_default=False)] = None,
    out: Out = "out",
    only: Annotated[list[str] | None, typer.Option(help="Read only this folder inside LOGS; may be repeated.")] = None,
    without: Annotated[list[str] | None, typer.Option(help="Leave this folder inside LOGS; may be repeated.")] = None,
    config: Annotated[str | None, typer.Option(help="TOML file that describes the sources.")] = None,
    privacy: Annotated[Literal["on", "off"] | None, typer.Option(
        help="Put pseudonyms in the place of people before anything is stored; wins over --config; on where neither says it.",
        show_default=False)] = None,
    image: Annotated[bool, typer.Option("--image/--no-image", help="Build container images.")] = True,
    base_image: Annotated[str | None, typer.Option(help="Base of the images.", show_default=False)] = None,
    warehouse: Annotated[str | None, typer.Option(
        help="Keep it in a DuckLake: ducklake:postgres://USER@HOST/DATABASE?data=s3://BUCKET/PREFIX; --out remembers it.",
        envvar="TRACEROOM_WAREHOUSE", show_default=False)] = None,
    since: Annotated[str | None, typer.Option(
        help="Build from sessions of this day (YYYY-MM-DD) and later ones.", show_default=False)] = None,
    service: Annotated[list[str] | None, typer.Option(
        help="Build this service; may be repeated.", show_default=False)] = None,
    limit: Annotated[int | None, typer.Option(
        help="Build from at most so many sessions, the newest.", show_default=False, min=1)] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be read and computed, and why.")] = False,
    release: Annotated[bool, typer.Option("--release", help="Then release it, as `traceroom release` does.")] = False,
    json: Json = False,
) -> None:
    """Turn logs into verified environments with rewards, and datasets.

    A second run over the same logs adds nothing; other logs are added to what --out already holds.
    """
    settings = Settings(
        logs=tuple(logs or ()), out=out, only=tuple(only or ()), without=tuple(without or ()), configuration=config,
        privacy=None if privacy is None else privacy == "on", image=image, base_image=base_image,
        warehouse_url=warehouse, since=since, services=tuple(service or ()), limit=limit).checked()
    if dry_run:
        _plan(settings, json)
        return
    ran = _ran(settings)
    from pipelines.summary import summary

    made = summary(settings)
    document = {**made, "seconds": round(ran.seconds, 3), "stages": ran.stages, "checks_failed": ran.broken}
    _tell(document)
    if json:
        data(document)
    _gates(document)
    if release:
        _release(settings)


def _plan(settings: Settings, json: bool) -> None:
    """What the run would do, on the screen."""
    from pipelines.ingesting import something_to_read
    from pipelines.planning import plan

    something_to_read(settings)
    planned = plan(settings)
    if json:
        data(planned)
        return
    files = planned["files"]
    say(f"{many(files['new'], 'file')} would be read ({files['n_bytes'] / 1e6:,.1f} MB), {files['known']:,} are known")
    table("Left", [{"reason": reason, "n": n} for reason, n in files["left"].items()], right=("n",))
    table("Stages", planned["stages"])
    say("Nothing was written.")


def _release(settings: Settings) -> None:
    """Release what the run built, and say what became of it."""
    from pipelines.commands.releasing import tell
    from pipelines.releases.releasing import registry_of
    from pipelines.releases.releasing import release as make

    registry = registry_of(settings)
    tell(make(settings, registry, "released by its run"), registry)


def _ran(settings: Settings) -> Ran:
    from pipelines.ingesting import something_to_read
    from pipelines.unchanged import unchanged

    for name in something_to_read(settings):
        say(f"[yellow]![/] {escape(name)} names no folder of the logs, so it changes nothing; correct it or leave it out.")
    done = None if os.environ.get("DAGSTER_HOME") else unchanged(settings)
    if done is not None:
        return done
    with bars():
        from pipelines.running import run as carry_out

        return carry_out(settings, lambda who: say(f"[yellow]Waiting for {escape(who)}.[/]"))


def _tell(made: dict[str, Any]) -> None:
    fresh = [stage["stage"] for stage in made["stages"] if stage["computed"]]
    say("")
    say(f"[bold]{made['n_sessions']:,}[/] sessions with {made['n_calls']:,} tool calls of {made['n_tools']:,} tools, "
        f"from {made['n_records']:,} records in {many(made['n_files'], 'file')}")
    proof = ", each verified (the known solution earns 1, doing nothing 0, twice the same)"
    say(f"[bold]{made['n_tasks']:,}[/] tasks found, [bold green]{made['n_published']:,}[/] published"
        + (proof if made["n_published"] else ": what was left, and why, stands below"))
    if made["n_from_failures"] or made["n_generated"]:
        say(f"[bold]{made['n_from_failures']:,}[/] of them of sessions that went wrong, solved along the way of good ones; "
            f"and [bold green]{made['n_generated']:,}[/] new ones about other things")
    say(f"in {made['seconds']:.1f} s" + ("" if len(fresh) > 2 else ": nothing new, what was there stands") + "\n")
    for row in made["environments"]:
        image = escape(row["image_id"][:19] if row["image_id"] else f"left: {row['image_left']}")
        say(f"[bold]{escape(row['environment'])}[/]  {many(row['n_tasks'], 'task')}, {many(row['n_tools'], 'tool')}")
        say(f"  the room       {escape(row['path'])}\n  its grader     {escape(row['rewards'])}\n  its image      {image}\n")
    table("Datasets", _datasets(made["dataset_rows"]), right=("trajectories", "sft"))
    tell_changes(made["changed"])
    table("Left, and why", made["left"], right=("n",))
    _next(made)


def _datasets(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row a folder, with how many rows it has of each kind."""
    folders: dict[str, dict[str, Any]] = {}
    for row in rows:
        folders.setdefault(row["folder"], {"folder": row["folder"]})[row["kind"]] = row["n_rows"]
    return list(folders.values())


def _next(made: dict[str, Any]) -> None:
    out, command = escape(made["out"]), escape(os.environ.get("TRACEROOM_COMMAND", "traceroom"))  # as it was called
    say("[bold]Next[/]")
    say(f"  {command} show --out {out} --left     every line, session and task that was left, with its reason")
    if any(row["reason"] == "unknown_format" for row in made["left"]):
        say(f"  {command} sniff FILE     what is in a file that no format knows, and a mapping of it for --config")
    for environment in made["environments"][:1]:
        path = escape(environment["path"])
        say(f"  {command} tasks {path}")
        say(f"  {command} play {path} TASK            act in it yourself, and see your grade")
        say(f"  {command} serve {path}                give it to an agent over MCP")


def _gates(made: dict[str, Any]) -> None:
    if made["checks_failed"]:
        raise GateFailed(
            f"checks that do not hold: {', '.join(made['checks_failed'])}", made["warehouse"], "see docs/pipeline.md")


def base_image(
    name: Annotated[str | None, typer.Option(help="Name to give it.", show_default=False)] = None,
    suite: Annotated[str, typer.Option(help="Debian release to take the packages from.")] = "bookworm",
    json: Json = False,
) -> None:
    """Make the small base image from Debian packages, where no registry is reachable."""
    from env_builder.image import LOCAL_BASE, make_base

    with console.status("Making the base image from Debian packages"):
        image_id = make_base(name or LOCAL_BASE, suite)
    say(f"[bold]{escape(name or LOCAL_BASE)}[/] is {image_id}; runs use it where the default base is not there")
    if json:
        data({"name": name or LOCAL_BASE, "image_id": image_id})
