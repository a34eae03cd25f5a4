"""The command `audit`: what logs could become, before anything is built of them."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.markup import escape

from pipelines.commands.options import Json, RunConfig
from pipelines.screen import bars, data, many, printable, say, table


def audit(
    logs: Annotated[list[str], typer.Argument(help="Log files or folders, in any format.")],
    config: RunConfig = None, json: Json = False,
) -> None:
    """Show in about a minute what logs could become: sessions, tools, what is missing, and what would help most if it were
    logged.

    Nothing is kept: the logs are read into a temporary folder.
    """
    from pipelines.inspection.log_audit import audit_logs

    with bars():
        audited = audit_logs(tuple(logs), config)
    if json:
        data(audited)
        return
    _show(audited)


def _show(audited: dict[str, Any]) -> None:
    read = audited["read"]
    part = "" if read["n_files"] == read["n_files_of_all"] else f" (the first of {read['n_files_of_all']:,})"
    say(f"Read [bold]{many(read['n_files'], 'file')}[/]{part}, {read['n_bytes'] / 2 ** 20:,.1f} MiB\n")
    columns = ("source", "format", "n_files", "n_records")
    table("What was read", [{name: row[name] for name in columns} for row in audited["sources"]], right=columns[2:])
    table("Not read", audited["rejected"], right=("n",))
    services = list(map(_service_row, audited["services"]))
    table("Services", services, right=("sessions", "calls", "tools", "may be tasks", "kinds"))
    table("What is missing", [
        {"field": gap["field"], "lacks it": f"{gap['n']:,} of {gap['of']:,} {gap['lacks']}", "share": f"{gap['share']:.0%}",
         "example": gap["example"]} for gap in audited["gaps"]], right=("share",))
    for note in audited["notes"]:
        say(f"[dim]·[/] {escape(printable(note))}")
    gives = {gap["field"]: gap["gives"] for gap in audited["gaps"]}
    if gives:
        say("\n[bold]These would help most if they were logged[/]")
    for number, field in enumerate(audited["fields_that_help"], 1):
        say(f"  {number}. {field}: {gives[field]}")


def _service_row(row: dict[str, Any]) -> dict[str, Any]:
    days = [instant.date().isoformat() for instant in (row["first"], row["last"]) if instant is not None]
    return {
        "service": row["service"], "sessions": row["n_sessions"], "period": " to ".join(dict.fromkeys(days)),
        "calls": row["n_calls"], "tools": row["n_tools"], "may be tasks": row["n_may_be_tasks"],
        "kinds": row["n_kinds_of_work"], "sessions begin": row["begins"] or "undecided"}
