"""What a page is made of: sections of sentences, figures and tables, as plain text; the template escapes it.

`clean` stands between logs and the page: no sign that is not seen, and no more of a text than is shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pipelines.reporting.drawing import NARROW, WIDE, drawn
from pipelines.screen import many

__all__ = ["Figure", "Row", "Section", "Table", "clean", "figure", "many", "named", "of", "percent", "table"]

Row = dict[str, Any]
SHOWN = 160
"""Characters of a text out of a log that a page shows."""


class Table(NamedTuple):
    """Rows of texts."""

    caption: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    right: frozenset[str]
    """Columns of numbers."""
    note: str = ""
    """What is not shown."""


class Figure(NamedTuple):
    """A chart with its words, and a table of the same."""

    name: str
    title: str
    description: str
    pictures: tuple[str, str]
    """Its `<svg>`: wide, and narrow for phones."""
    table: Table


class Section(NamedTuple):
    """A part of the page."""

    name: str
    title: str
    lead: str
    """What is to be seen, in a sentence or two."""
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    """How to read it."""
    short: str = ""
    """Its title in the list of sections, where that is too long."""


def figure(name: str, title: str, description: str, draw: Callable[[int], Any], table: Table) -> Figure:
    """A figure of what `draw` makes for a width in pixels."""
    wide, narrow = (drawn(draw(width), f"{name}-{kind}", width, title, description)
                    for kind, width in (("wide", WIDE), ("narrow", NARROW)))
    return Figure(name, title, description, (wide, narrow), table)


def table(caption: str, rows: Sequence[Row], right: Sequence[str] = (), besides: int = 0, columns: Sequence[str] = ()) -> Table:
    """A table of dicts with the same keys, which are its headings; values are texts, or numbers to be written."""
    headings = tuple(columns or (rows[0] if rows else ()))
    note = f"And {besides:,} more: traceroom show lists them." if besides > 0 else ""
    return Table(caption, headings, [tuple(_cell(row[name]) for name in headings) for row in rows], frozenset(right), note)


def _cell(value: Any) -> str:
    if value is None:
        return "–"
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.3g}" if isinstance(value, float) else clean(value, 3 * SHOWN)


def clean(text: Any, most: int = SHOWN) -> str:
    """A text out of a log as it may be shown: one line of signs that can be seen, and no more than so many."""
    signs = str(text)[: 2 * most]
    seen = "".join(sign if sign.isprintable() else " " if sign.isspace() else repr(sign)[1:-1] for sign in signs)
    line = " ".join(seen.split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


def percent(share: float | None) -> str:
    """A share in percent; a dash where there is none. Nothing but all is 100 %, and nothing but none is 0 %."""
    if share is None:
        return "–"
    told = f"{100 * share:.0f} %" if 0.1 <= share <= 0.9 or share in (0, 1) else f"{100 * share:.1f} %"
    return {"100.0 %": "> 99.9 %", "0.0 %": "< 0.1 %"}.get(told, told)


def of(n: int, all_of: int) -> str:
    """So many of so many, with the share."""
    return f"{n:,} of {all_of:,} ({percent(n / all_of)})" if all_of else f"{n:,} of {all_of:,}"


def named(service: str, name: str, n_services: int) -> str:
    """A name for a chart: with its service where there are several."""
    return clean(f"{name} · {service}" if n_services > 1 else name)
