"""Messages to the person on stderr; data on stdout."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from pipelines import progress

console = Console(stderr=True, highlight=False, soft_wrap=True)


def say(text: str) -> None:
    """Print a line; rich markup is rendered, and what a terminal would obey is escaped."""
    console.print(printable(text))


_PRINTED: list[bool] = []


def begin() -> None:
    """Begin a command: it has printed nothing yet."""
    _PRINTED.clear()


def has_printed_data() -> bool:
    """Return whether this process printed a document to stdout."""
    return bool(_PRINTED)


def data(document: object) -> None:
    """Print one JSON document to stdout."""
    _PRINTED.append(True)
    text = json.dumps(document, ensure_ascii=False, indent=2, default=str)
    typer.echo("".join(each if each.isprintable() or each == "\n" else json.dumps(each)[1:-1] for each in text)
               if not text.isascii() else text)


def lines(documents: Iterable[object]) -> None:
    """Print one JSON document a line to stdout."""
    _PRINTED.append(True)
    for document in documents:
        typer.echo(json.dumps(document, default=str))


def many(n: int, noun: str, plural: str = "") -> str:
    """Return a number with its noun: 1 task, 2 tasks."""
    return f"{n:,} {noun if n == 1 else plural or noun + 's'}"


def printable(text: str) -> str:
    """Escape a log's text for a terminal: a character that is not printable is written by its number."""
    return "".join(each if each.isprintable() or each == "\n" else repr(each)[1:-1] for each in text)


def table(title: str, rows: Sequence[Mapping[str, Any]], right: tuple[str, ...] = ()) -> None:
    """Print rows as a table; columns in `right` are right-aligned."""
    if not rows:
        return
    shown = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in rows[0]:
        shown.add_column(column.replace("_", " "), justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        shown.add_row(*("" if value is None else f"{value:,}" if isinstance(value, int) and not isinstance(value, bool)
                        else escape(printable(str(value))) for value in row.values()))
    console.print(shown)
    console.print()


def tell_changes(sentences: Sequence[str], most: int | None = 10) -> None:
    """Print what changed in the logs, at most `most` changes."""
    if not sentences:
        return
    say("[bold]Changed in the logs[/]")
    for sentence in sentences[:most]:
        say(f"  [yellow]![/] {escape(printable(sentence))}")
    if most is not None and len(sentences) > most:
        say(f"  and {len(sentences) - most:,} more: traceroom show --stage drift")
    say("")


@contextlib.contextmanager
def bars() -> Iterator[None]:
    """Show the progress (pipelines/progress.py): a bar per stage on a terminal, a line per stage elsewhere."""
    if not console.is_terminal:
        with progress.watched_by(_printer()):
            yield
        return
    bar = Progress(
        SpinnerColumn(finished_text="[green]✓[/]"), TextColumn("{task.description:<12}"), BarColumn(bar_width=30),
        MofNCompleteColumn(), TextColumn("[dim]{task.fields[note]}"), TimeElapsedColumn(),
        TimeRemainingColumn(compact=True), console=console)
    tasks: dict[str, TaskID] = {}

    def watch(step: progress.Step) -> None:
        if step.warning:
            _print_step(step)
            return
        if step.stage not in tasks:
            tasks[step.stage] = bar.add_task(step.stage, total=step.total, note="")
        total = max(step.total or 1, 1) if step.finished else step.total
        bar.update(tasks[step.stage], completed=total if step.finished else step.done, total=total, note=step.note)

    with bar, progress.watched_by(watch):
        yield


def _printer(every_s: float = 30.0) -> Callable[[progress.Step], None]:
    """Return a watcher that prints a line for each finished stage, and how far a long one is every so many seconds."""
    state, printed = progress.RunProgress(), [time.monotonic()]

    def watch(step: progress.Step) -> None:
        state.add(step)
        now = time.monotonic()
        if step.warning or step.finished:
            _print_step(step)
        elif step.total and step.done and now - printed[0] >= every_s:
            remaining = state.stages[step.stage]["seconds_left"]
            console.print(f"{step.stage}: {step.done:,} of {step.total:,}" + (
                f", about {duration(remaining)} left" if remaining is not None else ""))
        else:
            return
        printed[0] = now

    return watch


def duration(seconds: float) -> str:
    """Return a duration for people: 12 ms, 3.4 s, 2 min 5 s, 1 h 4 min."""
    if seconds < 1:
        return f"{1000 * seconds:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _print_step(step: progress.Step) -> None:
    if step.warning:
        console.print(f"[yellow]![/] {escape(printable(step.note))}")
    elif step.finished:
        console.print(f"{step.stage}: {step.note or 'done'}")
