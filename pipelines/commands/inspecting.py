"""Commands that show data and change none: `show`, `coverage`, `tasks`, `report`, `ui`, `sniff`.

All but `sniff` open the published copy of the warehouse, so they work while a run writes.
"""

from __future__ import annotations

import os
import secrets
import textwrap
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from pipelines.commands.options import Directory, Json, Out
from pipelines.inspection.tasks import task_rows
from pipelines.screen import data, lines, many, printable, say, table, tell_changes
from warehouse.errors import InputError, Missing

if TYPE_CHECKING:

    from env_builder.runtime.company import CompanyWorld
    from extractors.field_uses import FieldReading
    from extractors.reading import Reading
    from pipelines.settings import Settings

TOKEN = "TRACEROOM_UI_TOKEN"
_TOOLS = 5
"""Tools that are named below a field."""
_FAMILY_COLUMNS = ("name", "tasks", "sessions", "succeeded", "rate", "sentence")
_N_EVENTS = 12
_N_FIELDS = 60
_EXAMPLE = 40
_CERTAINTY = {
    "certain": "certain: no other format claims it, and no record is rejected",
    "likely": "likely: it is claimed by {claimed}, or some records are rejected",
    "general": "by its general shape alone",
    "unknown": "no format claims it",
}

Calls = Annotated[Path | None, typer.Option(
    "--calls", help="For `answers`: file of JSON lines {id, at, acting_for, calls: [{tool, arguments}]}.", show_default=False)]


def show(
    what: Annotated[str | None, typer.Argument(
        help="`world`: the company whose apps' exports were read, as it stood at an instant. `answers`: what its tools "
             "would have answered to --calls. `people`: the accounts of each person. `work`: the kinds of work that people "
             "did; with --json a line for each piece of work. Default: the funnel.",
        show_default=False)] = None,
    out: Out = "out",
    rejected: Annotated[bool, typer.Option("--rejected", help="List every rejected row, with file and line.")] = False,
    stage: Annotated[str | None, typer.Option(help="Show only this stage.")] = None,
    families: Annotated[bool, typer.Option("--families", help="List the families of recurring goals, by name.")] = False,
    services: Annotated[bool, typer.Option("--services", help="List how the sessions of each service begin, and why.")] = False,
    logs: Annotated[list[Path] | None, typer.Option(
        "--logs", help="For a company: folder of exports, instead of what the run in OUT has read. May be repeated.",
        show_default=False)] = None,
    at: Annotated[str | None, typer.Option("--at", help="For `world`: instant, such as 2026-03-02T09:30:00Z.",
                                           show_default=False)] = None,
    person: Annotated[str | None, typer.Option(
        "--as", help="For `world`: address of a person; show what this person could see.", show_default=False)] = None,
    calls: Calls = None,
    unread: Annotated[bool, typer.Option("--unread", help="For `world`: list the files and rows that no app reads.")] = False,
    json: Json = False,
) -> None:
    """Show the funnel: rows in, kept and rejected at each stage, with the reasons; and what changed in the logs.

    `show world --logs EXPORTS --at INSTANT` shows a company as it stood: with --json a line for each field of each record (app,
    id, field, value, known), where `known` is false if the exports do not show the value of that instant.
    """
    from pipelines.inspection import summary

    if what is not None:
        _show_company(what, logs or [], out, at, person, unread, calls, json)
        return
    settings = summary.out_of(out)
    if services:
        _show_services(settings, json)
        return
    if families:
        rows = summary.families(settings)
        data(rows) if json else table(f"{len(rows):,} families", [
            {name: row[name] for name in _FAMILY_COLUMNS} for row in rows], right=_FAMILY_COLUMNS[1:5])
        return
    rows = summary.rejected_rows(settings) if rejected else summary.funnel(settings)
    stages = {row["stage"] for row in rows}
    if stage and stage not in stages:
        raise Missing.named("stage", stage, stages)
    rows = [row for row in rows if stage in (None, row["stage"])]
    _show_funnel(settings, rows, stage, rejected, json)


def _show_funnel(settings: Settings, rows: list[dict[str, Any]], stage: str | None, rejected: bool, json: bool) -> None:
    from pipelines.inspection import summary

    if json:
        data(rows)
    elif rejected:
        shown = []
        for row in rows:  # the raw record is below the sentence about it
            detail = f"{row['detail']}\n{raw}" if (raw := printable(row.pop("raw") or "")) else row["detail"]
            shown.append({**row, "subject": row["subject"][:16], "detail": detail})
        table(f"Rejected: {len(rows):,}", shown, right=("line",))
    else:
        table("Funnel", _stage_totals([row for row in rows if row["stage"] != "drift"]), right=("in", "kept", "rejected"))
        tell_changes(summary.changed(settings) if stage in (None, "drift") else [], most=None)
    if not rows:
        say("No row was rejected." if rejected else "The funnel is empty.")


def _show_work(logs: list[Path], out: str, json: bool) -> None:
    from pipelines.inspection.work import item_lines, work_at

    book = work_at(logs, out)
    if json:
        lines(item_lines(book))
    else:
        rows = [kind.summary() for kind in book.kinds()]
        table(many(len(rows), "kind of work", "kinds of work"), rows,
              right=("items", "median_hours", "succeeded", "failed", "undecided"))


def _show_company(what: str, logs: list[Path], out: str, at: str | None, person: str | None, unread: bool,
                  calls: Path | None, json: bool) -> None:
    from pipelines.inspection import company as views

    company = partial(views.company_at, logs, out)
    if what == "work":
        _show_work(logs, out, json)
        return
    if what not in ("world", "answers", "people"):
        raise Missing.named("view", what, ("answers", "people", "work", "world"))
    if what == "answers":
        lines(views.answers(company(), calls))
    elif what == "people":
        rows = views.people_rows(company())
        lines(rows) if json else table(many(len(rows), "person", "people"), [
            {"address": row["address"], **row["accounts"]} for row in rows])
    elif unread:
        rows = [part._asdict() for part in company().unread]
        data(rows) if json else table(many(len(rows), "unread part"), rows)
    elif at is None:
        raise InputError("the instant is missing", "--at", "give one, such as 2026-03-02T09:30:00Z")
    else:
        _show_world(company().world, at, person, json)


def _show_world(world: CompanyWorld, at: str, person: str | None, json: bool) -> None:
    from pipelines.inspection import company

    instant = company.instant_of(at)
    company.require_records(world, instant)
    shown = company.world_rows(world, instant, person)
    if json:
        lines(shown)
    else:
        rows = list(shown)
        table(f"The company at {at}", company.summary_rows(rows), right=("records", "known_fields", "unknown_fields"))
        table("Unknown fields, and the event stream that has their history", company.advice_rows(rows), right=("unknown",))


def _show_services(settings: Settings, json: bool) -> None:
    from pipelines.inspection.services import service_rows, shown

    rows = service_rows(settings)
    if json:
        data(rows)
        return
    table(many(len(rows), "service"), [shown(row) for row in rows], right=("sessions", "for reset", "for shared"))
    for row in rows:
        if row["evidence"]:
            say(f"[yellow]![/] {escape(printable(row['evidence']))}.")


def _stage_totals(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    totals = []
    for stage in dict.fromkeys(row["stage"] for row in rows):
        kept = sum(row["n"] for row in rows if row["stage"] == stage and row["kept"])
        reasons = [row for row in rows if row["stage"] == stage and not row["kept"]]
        n_rejected = sum(row["n"] for row in reasons)
        totals.append({
            "stage": stage, "in": kept + n_rejected, "kept": kept, "rejected": n_rejected,
            "why": ", ".join(f"{row['reason']} {row['n']:,}" for row in reasons)})
    return totals


def coverage(out: Out = "out", json: Json = False) -> None:
    """List the log fields that would turn `unknown` answers into known ones, the most useful first."""
    from pipelines.inspection import summary
    from pipelines.inspection.coverage import unknowns
    from warehouse.store import Store

    settings = summary.out_of(out)
    with Store.published(settings.warehouse) as store:
        rows = unknowns(store, Path(settings.out))
    if json:
        data(rows)
        return
    has_many_services = len({row["service"] for row in rows}) > 1
    for row in rows:
        service = f" of {row['service']}" if has_many_services else ""
        say(f"[bold]{escape(row['field'] + service)}[/]: {row['log']}")
        say(f"  {row['n']:,} of {row['of']:,} {row['unit']}: {row['why']}")
        for tool in row["tools"][:_TOOLS]:
            own = f": {tool['log']}" if tool["log"] != row["log"] else ""
            say(f"  {tool['n']:>9,}  {escape(printable(tool['tool']) + own)}")
        if len(row["tools"]) > _TOOLS:
            say(f"             and {len(row['tools']) - _TOOLS:,} more")
        say("")
    say("The first helps most; --json lists every tool." if rows else "No log field would resolve an unknown answer.")


def tasks(environment: Directory, json: Json = False) -> None:
    """List the tasks of an environment, with each policy's success rate if there are rollouts."""
    rows = task_rows(environment)
    from pipelines.commands.rolling import rollouts_of
    from pipelines.rollouts.results import known_difficulty
    from pipelines.rollouts.standings import known_standings

    standing = known_standings(rollouts_of(environment))
    tried: dict[str, list[dict[str, Any]]] = {}
    for each in known_difficulty(rollouts_of(environment)):
        tried.setdefault(each["task_id"], []).append(
            {name: each[name] for name in ("policy", "n", "n_succeeded", "rate", "difficulty_band")})

    def succeed(row: dict[str, Any]) -> dict[str, str]:
        rates = (f"{each['policy']}: {each['n_succeeded']} of {each['n']}" for each in tried.get(row["task_id"], ()))
        name = standing[row["task_id"]].name if row["task_id"] in standing else "–"
        return {"succeed": "\n".join(rates), "standing": name} if tried else {}

    if json:
        data([{**row, "rollouts": tried[row["task_id"]], "standing": standing[row["task_id"]].name}
              if row["task_id"] in tried else row for row in rows])
        return
    table(f"{len(rows):,} tasks", [
        {"task": row["task_id"][:16], "split": row["split"], "sessions": len(row["session_ids"]),
         **succeed(row), "goal": textwrap.shorten(row["goal"], 100, placeholder=" …")} for row in rows], right=("sessions",))


def report(
    out: Out = "out",
    to: Annotated[Path | None, typer.Option(
        help="Folder to write index.html to. Default: OUT/report.", show_default=False)] = None,
    json: Json = False,
) -> None:
    """Write a one-page report on the run: readable offline, and identical for an identical warehouse."""
    from pipelines.inspection import summary
    from pipelines.reporting import report as write
    from warehouse.store import Store

    settings = summary.out_of(out)
    with Store.published(settings.warehouse) as store:
        page = write(store, to or settings.report)
    size = page.stat().st_size
    say(f"[bold]{escape(str(page))}[/]  {size:,} bytes: open it in a browser")
    if json:
        data({"path": str(page), "n_bytes": size})


def ui(
    out: Out = "out",
    host: Annotated[str, typer.Option(
        help="Address to listen on; if it is not this machine's own, reading needs the token too.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on; 0 picks a free one.")] = 7410,
    json: Json = False,
) -> None:
    """Browse a run's results in a web page: families, sessions, tasks, rubrics, replays; and correct errors.

    Corrections need a token: TRACEROOM_UI_TOKEN, or a new one that is printed at each start.
    """
    from pipelines.browser.app import application
    from pipelines.browser.guard import LEAST_TOKEN, AccessGuard
    from pipelines.serving.access import is_of_this_machine
    from pipelines.serving.connections import run_guarded
    from pipelines.serving.listening import listen
    from warehouse.store import Store

    with Store.published(Path(out) / "warehouse.duckdb"):
        pass  # raises if there is none
    own_token = os.environ.get(TOKEN)
    token = own_token or secrets.token_urlsafe(24)
    if len(token) < LEAST_TOKEN:
        raise InputError(f"the token has {len(token)} characters", TOKEN, f"choose one of {LEAST_TOKEN} or more, or none")
    exposed = not is_of_this_machine(host)
    listening = listen(host, port)
    name = f"[{host}]" if ":" in host else host
    url = f"http://{name}:{listening.getsockname()[1]}"
    holder = f"of {TOKEN}" if own_token else "in this address"
    note = "Anyone with the token can read and correct; put TLS before it." if exposed else (
        f"Reading from this machine needs no token; corrections need the one {holder}. Stop with Ctrl-C.")
    say(f"[bold]{escape(url if own_token else f'{url}/enter?token={token}')}[/]\n{note}")
    if json:
        data({"url": url, "token": None if own_token else token, "exposed": exposed})
    run_guarded(application(Path(out), AccessGuard(token, exposed)), listening, timeout_graceful_shutdown=2)


def sniff(
    file: Annotated[Path, typer.Argument(help="Log file, compressed or not, or a folder of logs.")],
    events: Annotated[int, typer.Option(help="Number of events to show of a file.")] = _N_EVENTS,
    write: Annotated[Path | None, typer.Option(metavar="FILE", help=(
        "Write the mappings that are proposed to a new configuration file, for `run --config FILE`."))] = None,
    json: Json = False,
) -> None:
    """Detect the format of a log file, show its first events and what each field is read as, and propose a mapping for an
    unknown format. For a folder, show a table of its files: format, rows, sessions, period, and fields that are not read."""
    from extractors.sniffing import sniff as detect
    from pipelines.inspection import file_survey
    from pipelines.inspection.services import beginnings_in

    if file.is_dir():
        file_survey.show(file, write, json)
        return
    sniffed = detect(file)
    if write is not None:
        file_survey.write_configuration(write, [(sniffed, [file])])
    reading = sniffed.mapped or sniffed.reading
    counts = dict(reading.events.group_by("kind").len().sort("kind").rows()) if reading else {}
    rejected = reading.decisions.filter(~reading.decisions["kept"]) if reading else None
    if json:
        data({
            "format": sniffed.format, "layout": sniffed.layout, "wrapping": sniffed.wrapping or None,
            "certainty": sniffed.certainty, "claimed_by": sniffed.claimed_by, "whole": sniffed.is_whole,
            "note": sniffed.note or None,
            "configuration": sniffed.snippet or None, "events": counts,
            "left": rejected.select("reason", "detail").to_dicts() if rejected is not None else [],
            "first": _event_rows(reading, events) if reading else [],
            "fields": [{"field": each.path, "read_as": list(each.read_as), "example": each.example} for each in sniffed.uses],
            "begins": beginnings_in(reading.events) if reading else []})
        return
    if sniffed.note:
        say(f"{escape(file.name)} {escape(sniffed.note)}.")
    else:
        certainty = _CERTAINTY[sniffed.certainty].format(claimed=", ".join(sniffed.claimed_by))
        part = "" if sniffed.is_whole else "; only its beginning was read"
        where = f", {escape(sniffed.wrapping)}" if sniffed.wrapping else ""
        say(f"{escape(file.name)}: [bold]{sniffed.format or 'unknown'}[/], {sniffed.layout}{where} ({certainty}{part})")
    if sniffed.fields:
        say("\nAs this configuration maps it ([bold]--config FILE.toml[/]):\n")
        typer.echo(sniffed.snippet)
    if reading is not None and rejected is not None:
        table(f"First events of {reading.events.height:,}", _event_rows(reading, events))
        _tell_fields(sniffed.uses)
        say("Events: " + (", ".join(f"{kind} {n:,}" for kind, n in counts.items()) or "none"))
        for sentence in beginnings_in(reading.events):
            say(f"{escape(printable(sentence))}.")
        for sentence in rejected["detail"].head(3):
            say(f"[yellow]![/] {escape(sentence)}")
        if rejected.height > 3:
            say(f"[yellow]![/] and {rejected.height - 3:,} more.")
    if sniffed.format is None and not sniffed.fields and not sniffed.note:
        say("No mapping fits either: no field names a speaker, a tool, a request or an event.")


def _tell_fields(uses: list[FieldReading]) -> None:
    """Print what each field is read as, those that are not read first."""
    if not uses:
        return
    unread = [each for each in uses if not each.read_as]
    rows = [{"field": each.path, "read as": ", ".join(each.read_as) or "not read", "example": each.example[:_EXAMPLE]}
            for each in (*unread, *(each for each in uses if each.read_as))]
    table(f"{many(len(uses), 'field')}, {len(unread):,} not read", rows[:_N_FIELDS])
    if len(rows) > _N_FIELDS:
        say(f"and {len(rows) - _N_FIELDS:,} more; --json lists all.")


def _event_rows(reading: Reading, n_events: int) -> list[dict[str, Any]]:
    """Return the first events, in short."""
    rows = []
    for event in reading.events.head(n_events).iter_rows(named=True):
        text = event["content"] or event["arguments"] or event["value"] or ""
        at = event["happened_at"]
        rows.append({
            "kind": event["kind"], "session": (event["session_id"] or "")[:24],
            "time": at.isoformat(" ", "seconds").removesuffix("+00:00") if at else "",
            "who": event["tool"] or event["role"] or event["name"] or "", "text": " ".join(text.split())[:80]})
    return rows
