"""Talk to the person: everything here goes to stderr; stdout is for data."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.table import Table

from pipelines import progress

console = Console(stderr=True, highlight=False, soft_wrap=True)


def say(text: str) -> None:
    """A line for the person; rich markup is read."""
    console.print(text)


def data(document: object) -> None:
    """One JSON document on stdout."""
    typer.echo(json.dumps(document, ensure_ascii=False, indent=2, default=str))


def many(n: int, thing: str, things: str = "") -> str:
    """A number with its thing: 1 task, 2 tasks."""
    return f"{n:,} {thing if n == 1 else things or thing + 's'}"


def printable(text: str) -> str:
    """A text out of a log as a terminal may show it: what is no visible sign is written by its number."""
    return "".join(sign if sign.isprintable() or sign == "\n" else repr(sign)[1:-1] for sign in text)


def table(title: str, rows: Sequence[Mapping[str, Any]], right: tuple[str, ...] = ()) -> None:
    """Rows as a table; columns in `right` are set to the right."""
    if not rows:
        return
    shown = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in rows[0]:
        shown.add_column(column.replace("_", " "), justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        shown.add_row(*(escape(_text(value)) for value in row.values()))
    console.print(shown)
    console.print()


def tell_changes(sentences: Sequence[str], most: int | None = 10) -> None:
    """What changed in the logs, at most so many of it."""
    if not sentences:
        return
    say("[bold]Changed in the logs[/]")
    for sentence in sentences[:most]:
        say(f"  [yellow]![/] {escape(printable(sentence))}")
    if most is not None and len(sentences) > most:
        say(f"  and {len(sentences) - most:,} more: traceroom show --stage drift")
    say("")


def _text(value: object) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else printable(str(value))


@contextlib.contextmanager
def bars() -> Iterator[None]:
    """Draw what is told to pipelines/progress.py: a bar a stage on a terminal, a line a stage elsewhere."""
    if not console.is_terminal:
        with progress.watched_by(_line):
            yield
        return
    drawn = Progress(
        SpinnerColumn(finished_text="[green]✓[/]"), TextColumn("{task.description:<12}"), BarColumn(bar_width=30),
        MofNCompleteColumn(), TextColumn("[dim]{task.fields[note]}"), TimeElapsedColumn(), console=console)
    known: dict[str, TaskID] = {}

    def watch(step: progress.Step) -> None:
        if step.warning:
            drawn.console.print(f"[yellow]![/] {escape(printable(step.note))}")
            return
        if step.stage not in known:
            known[step.stage] = drawn.add_task(step.stage, total=step.total, note="")
        total = max(step.total or 1, 1) if step.finished else step.total
        drawn.update(known[step.stage], completed=total if step.finished else step.done, total=total, note=step.note)

    with drawn, progress.watched_by(watch):
        yield


def _line(step: progress.Step) -> None:
    if step.warning:
        console.print(f"[yellow]![/] {escape(printable(step.note))}")
    elif step.finished:
        console.print(f"{step.stage}: {step.note or 'done'}")
