"""What an asset shows in Dagster's pages: figures, a table of its rows and columns, and a picture of its funnel.

A picture is an SVG in a Markdown image (a data address), with a background of its own for light and dark pages. It holds names
of ours and counts. Rows hold what the logs say: TRACEROOM_SAMPLES=off keeps them out of Dagster's database.
"""

from __future__ import annotations

import base64
import html
import json
import os
from collections.abc import Mapping, Sequence

import polars as pl
from dagster import MetadataValue, TableColumn, TableSchema

from pipelines.running.stage import Report

Bar = tuple[str, int, bool]
"""Label, number, and whether it is of what was kept."""
_SAMPLE_WIDTH, _SAMPLE_ROWS = 80, 20
_MOST_BARS = 12
_WIDTH, _ROW, _LABEL, _NUMBER, _LETTERS = 440, 24, 190, 70, 26
"""Pixels, as wide as a cell of metadata in Dagster's pages; and letters of a label."""
_KEPT, _REJECTED, _INK, _PAPER = "#1f6f8b", "#b5541c", "#1b1f24", "#ffffff"
"""Each at least 4.5 : 1 against the paper."""


def metadata_of(report: Report, table: str) -> dict[str, MetadataValue]:
    """Give what the asset of a table shows after its stage was carried out."""
    sample = report.tables[table]
    schema = TableSchema([TableColumn(name, str(kind).lower()) for name, kind in sample.sample.schema.items()])
    funnel = report.funnel.sort(["kept", "n", "reason"], descending=True)
    bars: list[Bar] = list(funnel.select("reason", "n", "kept").iter_rows())
    title = f"{report.stage}: rows of its tables"
    if bars:
        kept, rejected = (sum(n for _, n, is_kept in bars if is_kept is side) for side in (True, False))
        title = f"{report.stage}: {kept:,} kept, {rejected:,} left"
    bars = bars or [(name, each.n_rows, True) for name, each in report.tables.items()]
    shown: dict[str, MetadataValue] = {
        "dagster/row_count": MetadataValue.int(sample.n_rows), "dagster/column_schema": MetadataValue.table_schema(schema),
        "computed": MetadataValue.bool(report.fresh), "seconds": MetadataValue.float(round(report.seconds, 3)),
        "picture": shown_bars(title, bars), "funnel": MetadataValue.md(markdown(report.funnel))}
    if _rows_are_shown():
        shown["sample"] = MetadataValue.md(markdown(sample.sample))
    return {**shown, **{name: MetadataValue.int(n) for name, n in report.counts.items()}}


def metadata_of_check(rows: pl.DataFrame) -> dict[str, MetadataValue]:
    """Give what the result of a check shows: how many rows break it, and the first of them."""
    shown = markdown(rows.head(_SAMPLE_ROWS)) if _rows_are_shown() else "kept out"
    return {"offenders": MetadataValue.int(rows.height), "rows": MetadataValue.md(shown)}


def _rows_are_shown() -> bool:
    return os.environ.get("TRACEROOM_SAMPLES", "on") != "off"


def shown_bars(title: str, bars: Sequence[Bar]) -> MetadataValue:
    """Draw bars as a picture for Dagster's pages."""
    address = base64.b64encode(_svg(title, bars).encode()).decode()
    return MetadataValue.md(f"![{title}](data:image/svg+xml;base64,{address})")


def _svg(title: str, all_bars: Sequence[Bar]) -> str:
    bars, more = list(all_bars[:_MOST_BARS]), all_bars[_MOST_BARS:]
    if more:
        bars.append((f"{len(more)} more reasons", sum(n for _, n, _ in more), False))
    most = max([n for _, n, _ in bars] + [1])
    height = _ROW * (len(bars) + 1) + 12
    rows = "".join(_bar(at, *bar, most) for at, bar in enumerate(bars))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" viewBox="0 0 {_WIDTH} {height}" '
        f'role="img" font-family="sans-serif" font-size="12"><title>{html.escape(title)}</title>'
        f'<rect width="{_WIDTH}" height="{height}" rx="6" fill="{_PAPER}"/>'
        f'<text x="10" y="20" fill="{_INK}" font-weight="bold">{html.escape(title)}</text>{rows}</svg>')


def _bar(at: int, label: str, n: int, kept: bool, most: int) -> str:
    top, long = _ROW * (at + 1) + 6, (_WIDTH - _LABEL - _NUMBER) * n / most
    shown = label if len(label) <= _LETTERS else label[:_LETTERS - 1] + "…"
    mark, colour = ("✓", _KEPT) if kept else ("✗", _REJECTED)
    return (
        f'<text x="10" y="{top + 15}" fill="{_INK}">{mark} {html.escape(shown)}</text>'
        f'<rect x="{_LABEL}" y="{top + 3}" width="{max(long, 1):.0f}" height="{_ROW - 8}" fill="{colour}"/>'
        f'<text x="{_LABEL + max(long, 1) + 6:.0f}" y="{top + 15}" fill="{_INK}">{n:,}</text>')


def markdown(frame: pl.DataFrame) -> str:
    """Write a frame as a markdown table, long cells cut."""
    if frame.is_empty():
        return "none"
    lines = ["| " + " | ".join(frame.columns) + " |", "|" + " --- |" * frame.width]
    lines += ["| " + " | ".join(_cell(value) for value in row) + " |" for row in frame.iter_rows()]
    return "\n".join(lines)


def _cell(value: object) -> str:
    """Write a value so that it stays in its cell and is no markup: it may come from a log."""
    nested = isinstance(value, list | Mapping)
    text = json.dumps(value, ensure_ascii=False, default=str) if nested else "" if value is None else str(value)
    text = text.replace("\n", " ").replace("\r", " ")
    text = text if len(text) <= _SAMPLE_WIDTH else text[: _SAMPLE_WIDTH - 1] + "…"
    return "".join(f"\\{letter}" if letter in _MARKUP else letter for letter in text)


_MARKUP = frozenset("\\`*_[]()<>#|!~&:")
