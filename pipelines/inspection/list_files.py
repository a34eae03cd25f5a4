"""Lists as files: rows as CSV or JSON, for the browser and the report.

Lists in cells of CSV are JSON. A cell of CSV that a spreadsheet would take for a formula begins with an apostrophe (CWE-1236).
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

Row = dict[str, Any]
FORMATS = {"csv": "text/csv; charset=utf-8", "json": "application/json"}
"""Ending of a file -> its media type."""
_FORMULA = re.compile("[\t\r\n]|[\\s\x00\u200b\ufeff]*[=+\\-@＝＋－＠]")
"""What a spreadsheet calculates, also after blanks that it drops."""
_FIRST_ROWS = 64


def written(rows: list[Row], ending: str) -> Iterator[str]:
    """Yield the text of a file with these rows, piece by piece. `ending`: of `FORMATS`."""
    return as_csv(rows) if ending == "csv" else _as_json(rows)


def plain(row: Mapping[str, Any]) -> Row:
    """Return a row with values that JSON has: instants as text, in UTC."""
    return {name: _value(value) for name, value in row.items()}


def _value(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    return value if value is None or isinstance(value, str | int | float | bool | list | dict) else str(value)


def _as_json(rows: list[Row]) -> Iterator[str]:
    yield "["
    for place, row in enumerate(rows):
        yield f"{',' if place else ''}\n{json.dumps(row, ensure_ascii=True, default=str)}"
    yield "\n]\n"


def as_csv(rows: list[Row]) -> Iterator[str]:
    """Yield rows as CSV, with the names of the columns first."""
    columns = list(dict.fromkeys(name for row in rows[:_FIRST_ROWS] for name in row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow(map(_cell, columns))
    for row in rows:
        writer.writerow([_cell(row.get(name)) for name in columns])
        yield text.getvalue()
        text.seek(0)
        text.truncate()
    yield text.getvalue()


def _cell(value: Any) -> Any:
    if isinstance(value, list | dict):
        value = json.dumps(value, ensure_ascii=False, default=str)
    if isinstance(value, str):
        value = value.encode("utf-8", "replace").decode()
        return f"'{value}" if _FORMULA.match(value) else value
    return value
