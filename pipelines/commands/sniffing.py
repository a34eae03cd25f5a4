"""The command that looks at one log file: `sniff`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pipelines.commands.building import Json
from pipelines.screen import data, say, table

if TYPE_CHECKING:
    from extractors.reading import Reading
    from extractors.sniffing import Sniffed

_SHOWN = 12
_SURE = {
    "certain": "certain: no other format claims it, and nothing of it is left",
    "likely": "likely: it is claimed by {claimed}, or some of it is left",
    "general": "by its general shape alone",
    "unknown": "no format claims it",
}


def sniff(
    file: Annotated[Path, typer.Argument(help="A log file, packed or not.")],
    events: Annotated[int, typer.Option(help="How many events to show.")] = _SHOWN,
    json: Json = False,
) -> None:
    """Say which format a file is in, what is read of it, and how to map an envelope that no format knows."""
    from extractors.sniffing import sniff as look

    found = look(file)
    if json:
        data(_document(found, events))
        return
    _say_format(found, file)
    shown = found.mapped or found.reading
    if found.fields:
        say("\nAs this configuration maps it ([bold]--config FILE.toml[/]):\n")
        typer.echo(found.snippet)
    if shown is not None:
        _show(shown, events)
    if found.format is None and not found.fields and not found.note:
        say("No mapping fits either: its fields name nobody who speaks, no tool, no request and no event.")


def _say_format(found: Sniffed, file: Path) -> None:
    from rich.markup import escape

    if found.note:
        say(f"{escape(file.name)} {escape(found.note)}.")
        return
    sure = _SURE[found.certainty].format(claimed=", ".join(found.claimed_by))
    part = "" if found.is_whole else "; looked at its beginning"
    say(f"{escape(file.name)}: [bold]{found.format or 'unknown'}[/], {found.layout} ({sure}{part})")


def _show(reading: Reading, n_events: int) -> None:
    counts = reading.events.group_by("kind").len().sort("kind").rows()
    table(f"First events of {reading.events.height:,}", _rows(reading, n_events))
    say("Events: " + (", ".join(f"{kind} {n:,}" for kind, n in counts) or "none"))
    left = reading.verdicts.filter(~reading.verdicts["kept"])
    for sentence in left["detail"].head(3):
        say(f"[yellow]![/] {sentence}")
    if left.height > 3:
        say(f"[yellow]![/] and {left.height - 3:,} more.")


def _rows(reading: Reading, n_events: int) -> list[dict[str, Any]]:
    """The first events, in short."""
    rows = []
    for event in reading.events.head(n_events).iter_rows(named=True):
        said = event["content"] or event["arguments"] or event["value"] or ""
        at = event["happened_at"]
        rows.append({
            "kind": event["kind"], "session": (event["session_id"] or "")[:24],
            "time": at.isoformat(" ", "seconds").removesuffix("+00:00") if at else "",
            "who": event["tool"] or event["role"] or event["name"] or "", "text": " ".join(said.split())[:80]})
    return rows


def _document(found: Sniffed, n_events: int) -> dict[str, Any]:
    shown = found.mapped or found.reading
    return {
        "format": found.format, "layout": found.layout, "certainty": found.certainty, "claimed_by": found.claimed_by,
        "whole": found.is_whole, "note": found.note or None, "configuration": found.snippet or None,
        "events": dict(shown.events.group_by("kind").len().sort("kind").rows()) if shown else {},
        "left": shown.verdicts.filter(~shown.verdicts["kept"]).select("reason", "detail").to_dicts() if shown else [],
        "first": _rows(shown, n_events) if shown else []}
