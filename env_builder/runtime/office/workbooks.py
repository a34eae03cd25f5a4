"""Tabs of workbooks: ranges in A1 notation, reading with formulas worked out, writing of cells.

In: a desk, a file's id, texts of ranges. Out: rows as the Sheets API answers them (empty cells at the end of a row, and empty
rows at the end, are first_column out), and written rows.
Sees: cells as texts (fields `!<tab>` of `sheet`). Does not see: named ranges, formats.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from ..company import CompanyDesk, ProductRefusal
from .formulas import column_number, shown_value

FILE, TAB = "sheet", "!"
_RANGE = re.compile(r"\$?([A-Za-z]{1,3})?\$?(\d+)?(?::\$?([A-Za-z]{1,3})?\$?(\d+)?)?")
_LAST = 10_000_000
Rows = list[list[str]]


class CellRange(NamedTuple):
    """A block of cells of a tab; rows and columns from 1, both ends included."""

    tab: str
    top: int
    first_column: int
    bottom: int
    last_column: int


def tabs_of(desk: CompanyDesk, file: str) -> list[str]:
    """Return the tabs of a workbook, in their order."""
    fields = desk.record(FILE, file) or {}
    return [name[1:] for name, rows in fields.items() if name.startswith(TAB) and rows is not None]


def rows_of_tab(desk: CompanyDesk, file: str, tab: str) -> Rows:
    """Return the texts of a tab's cells. Errors: Undecided."""
    return desk.value(FILE, file, TAB + tab) or []


def parse_range(desk: CompanyDesk, file: str, text: str) -> CellRange:
    """Return the range that a text names. Errors: ProductRefusal."""
    tabs = tabs_of(desk, file)
    tab, mark, cells = text.rpartition("!")
    tab = tab.strip("'").replace("''", "'")
    if not mark and text.strip("'") in tabs:
        return CellRange(text.strip("'"), 1, 1, _LAST, _LAST)
    match = _RANGE.fullmatch(cells)
    names = [name for name in tabs if name.casefold() == tab.casefold()] if mark else tabs[:1]
    if match is None or not names or not cells:
        raise ProductRefusal(f"Error: Unable to parse range: {text}")
    first_column, top, last_column, bottom = match.groups()
    if ":" not in cells:
        if first_column is None or top is None:
            raise ProductRefusal(f"Error: Unable to parse range: {text}")
        last_column, bottom = first_column, top
    columns = sorted((column_number(first_column) if first_column else 1, column_number(last_column) if last_column else _LAST))
    rows = sorted((int(top) if top else 1, int(bottom) if bottom else _LAST))
    return CellRange(names[0], rows[0], columns[0], rows[1], columns[1])


def read_range(desk: CompanyDesk, file: str, block: CellRange) -> Rows:
    """Return what the product shows of a range. Errors: Undecided."""
    rows = rows_of_tab(desk, file, block.tab)
    folded = {tab.casefold(): tab for tab in tabs_of(desk, file)}

    def cell_text(tab: str, row: int, column: int) -> str:
        name = folded.get(tab.casefold())
        cells = [] if name is None else rows if name == block.tab else rows_of_tab(desk, file, name)
        return _cell(cells, row, column)

    shown = [[shown_value(text, block.tab, cell_text) for text in row[block.first_column - 1:block.last_column]]
             for row in rows[block.top - 1:block.bottom]]
    return trimmed(shown)


def trimmed(rows: Rows) -> Rows:
    """Return rows without empty cells at their ends and without empty rows at the end."""
    short = []
    for row in rows:
        width = max((number for number, text in enumerate(row, start=1) if text != ""), default=0)
        short.append(row[:width])
    while short and not short[-1]:
        short.pop()
    return short


def write_range(desk: CompanyDesk, file: str, block: CellRange, values: list[list[Any]]) -> int:
    """Write values from the range's first cell on; a null leaves its cell. Return how many cells were written."""
    height, width = block.bottom - block.top + 1, block.last_column - block.first_column + 1
    if len(values) > height or max(map(len, values), default=0) > width:
        raise ProductRefusal("Error: Requested writing within range, but tried writing outside of it.")
    rows = [list(row) for row in rows_of_tab(desk, file, block.tab)]
    count = 0
    for row, line in enumerate(values, start=block.top):
        for column, value in enumerate(line, start=block.first_column):
            if value is None:
                continue
            rows += [[] for _ in range(row - len(rows))]
            rows[row - 1] += [""] * (column - len(rows[row - 1]))
            rows[row - 1][column - 1] = cell_of(value)
            count += 1
    _put(desk, file, block.tab, rows)
    return count


def clear_range(desk: CompanyDesk, file: str, block: CellRange) -> None:
    """Empty the cells of a range."""
    rows = [[("" if block.top <= row <= block.bottom and block.first_column <= column <= block.last_column else text)
             for column, text in enumerate(line, start=1)]
            for row, line in enumerate(rows_of_tab(desk, file, block.tab), start=1)]
    _put(desk, file, block.tab, rows)


def append_row(desk: CompanyDesk, file: str, tab: str, values: list[Any]) -> None:
    """Write a row below the last one that has a value."""
    rows = trimmed([list(row) for row in rows_of_tab(desk, file, tab)])
    _put(desk, file, tab, [*rows, [cell_of(value) for value in values]])


def cell_of(value: Any) -> str:
    """Return a value as the text of a cell."""
    if isinstance(value, bool):
        return str(value).upper()
    return f"{value:g}" if isinstance(value, float) else "" if value is None else str(value)


def _cell(rows: Rows, row: int, column: int) -> str:
    return rows[row - 1][column - 1] if row <= len(rows) and column <= len(rows[row - 1]) else ""


def _put(desk: CompanyDesk, file: str, tab: str, rows: Rows) -> None:
    rows = trimmed(rows)
    width = max(map(len, rows), default=0)
    desk.write(FILE, file, **{TAB + tab: [row + [""] * (width - len(row)) for row in rows], "modified": desk.now})
