"""Commands that look: `show`, `tasks`. They open the published copy, so they work while a run writes."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from pipelines.commands.building import Json, Out
from pipelines.reading import task_rows
from pipelines.screen import data, printable, say, table, tell_changes
from warehouse.errors import Missing

_TOOLS = 5
"""Tools that are named below a field."""
_OF_FAMILY = ("name", "tasks", "sessions", "good", "rate", "sentence")


def show(
    out: Out = "out",
    left: Annotated[bool, typer.Option("--left", help="List everything that was left, with file and line.")] = False,
    stage: Annotated[str | None, typer.Option(help="Only this stage.")] = None,
    families: Annotated[bool, typer.Option("--families", help="List what is asked for again and again, by name.")] = False,
    json: Json = False,
) -> None:
    """Show the funnel: what came in at each stage, what was kept, what was left and why; and what changed in the logs."""
    from pipelines import summary

    settings = summary.out_of(out)
    if families:
        rows = summary.families(settings)
        data(rows) if json else table(
            f"{len(rows):,} families", [{name: row[name] for name in _OF_FAMILY} for row in rows], right=_OF_FAMILY[1:5])
        return
    rows = summary.left(settings) if left else summary.funnel(settings)
    known = {row["stage"] for row in rows}
    if stage and stage not in known:
        raise Missing.named("stage", stage, known)
    rows = [row for row in rows if stage in (None, row["stage"])]
    if json:
        data(rows)
    elif left:
        table(f"Left: {len(rows):,}", [_shown(row) for row in rows], right=("line",))
    else:
        table("Funnel", _per_stage([row for row in rows if row["stage"] != "drift"]), right=("in", "kept", "left"))
        tell_changes(summary.changed(settings) if stage in (None, "drift") else [], most=None)
    if not rows:
        say("Nothing was left." if left else "The funnel is empty.")


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    """A row of what was left for a table: the raw record stands below the sentence that is about it."""
    raw = printable(row["raw"] or "")
    detail = f"{row['detail']}\n{raw}" if raw else row["detail"]
    return {**{name: row[name] for name in row if name != "raw"}, "subject": row["subject"][:16], "detail": detail}


def _per_stage(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    shown = []
    for stage in dict.fromkeys(row["stage"] for row in rows):
        kept = sum(row["n"] for row in rows if row["stage"] == stage and row["kept"])
        reasons = [row for row in rows if row["stage"] == stage and not row["kept"]]
        n_left = sum(row["n"] for row in reasons)
        shown.append({
            "stage": stage, "in": kept + n_left, "kept": kept, "left": n_left,
            "why": ", ".join(f"{row['reason']} {row['n']:,}" for row in reasons)})
    return shown


def unknowns(
    out: Out = "out",
    json: Json = False,
) -> None:
    """Show which log field would turn which `unknown` into an answer, what helps most first."""
    from pipelines import summary
    from pipelines.unknowns import unknowns as found
    from warehouse.store import Store

    settings = summary.out_of(out)
    with Store.published(settings.warehouse) as store:
        rows = found(store, Path(settings.out))
    if json:
        data(rows)
        return
    for row in rows:
        _say_wanted(row, len({each["service"] for each in rows}) > 1)
    say("The first helps most; --json lists every tool." if rows else "Nothing is unknown that a log could tell.")


def _say_wanted(row: dict[str, Any], named: bool) -> None:
    service = f" of {row['service']}" if named else ""
    say(f"[bold]{escape(row['field'] + service)}[/]: {row['log']}")
    say(f"  {row['n']:,} of {row['of']:,} {row['unit']}: {row['why']}")
    for tool in row["tools"][:_TOOLS]:
        own = f": {tool['log']}" if tool["log"] != row["log"] else ""
        say(f"  {tool['n']:>9,}  {escape(printable(tool['tool']) + own)}")
    if len(row["tools"]) > _TOOLS:
        say(f"             and {len(row['tools']) - _TOOLS:,} more")
    say("")


def tasks(
    environment: Annotated[Path, typer.Argument(help="OUT/environments/NAME.")],
    json: Json = False,
) -> None:
    """List the tasks of an environment, and how often policies succeeded at each (`rollout`)."""
    rows = task_rows(environment)
    from pipelines.rollouts.results import known_difficulty

    tried: dict[str, list[dict[str, Any]]] = {}
    for each in known_difficulty(environment.absolute().parent.parent / "rollouts" / environment.name):
        tried.setdefault(each["task_id"], []).append({name: each[name] for name in ("policy", "n", "n_good", "rate", "band")})

    def succeed(row: dict[str, Any]) -> dict[str, str]:
        told = (f"{each['policy']}: {each['n_good']} of {each['n']}" for each in tried.get(row["task_id"], ()))
        return {"succeed": "\n".join(told)} if tried else {}

    if json:
        data([{**row, "rollouts": tried[row["task_id"]]} if row["task_id"] in tried else row for row in rows])
        return
    table(f"{len(rows):,} tasks", [
        {"task": row["task_id"][:16], "split": row["split"], "sessions": len(row["session_ids"]),
         **succeed(row), "goal": textwrap.shorten(row["goal"], 100, placeholder=" …")} for row in rows], right=("sessions",))
