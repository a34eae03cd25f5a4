"""Lists of the browser as files: all rows of a list under the same filters, as CSV or JSON.

`/sessions.csv?words=refund` holds every row of `/sessions?words=refund`. Lists in cells are JSON. A cell of CSV that a
spreadsheet would take for a formula begins with an apostrophe (CWE-1236). Does not hold what a page adds beside its list.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from starlette.responses import Response, StreamingResponse

from pipelines.browser import corrections, episodes, policies
from pipelines.browser.library import Library
from pipelines.inspection import searching, views
from pipelines.inspection.coverage import unknowns
from warehouse.vocabulary import outcome_of

Row = dict[str, Any]
FORMATS = {"csv": "text/csv; charset=utf-8", "json": "application/json"}
"""Ending of an address -> its media type."""
_FORMULA = re.compile("[\t\r\n]|[\\s\x00\u200b\ufeff]*[=+\\-@＝＋－＠]")
"""What a spreadsheet calculates, also after blanks that it drops."""
_HIDDEN = ("began", "sorted_by", "lasted", "place")
"""Columns that only order a list."""
_FIRST_ROWS = 64


def _sessions(library: Library, wanted: Mapping[str, str]) -> list[Row]:
    rows = searching.sessions(library, wanted, size=None).rows
    return [{**row, "outcome": outcome_of(row["probability"])} for row in rows]


def _of_page(rows: Callable[..., views.Paged]) -> Callable[[Library, Mapping[str, str]], list[Row]]:
    return lambda library, wanted: rows(library, wanted, size=None).rows


LISTS: Mapping[str, Callable[[Library, Mapping[str, str]], list[Row]]] = {
    "/sessions": _sessions, "/families": _of_page(views.families), "/tasks": _of_page(searching.tasks),
    "/rejected": _of_page(views.rejected),
    "/corrections": lambda library, wanted: corrections.corrections(library, size=None).rows,
    "/unknowns": lambda library, wanted: library.with_store(lambda store: unknowns(store, library.out)),
    "/episodes": lambda library, wanted: episodes.episodes(library, wanted, size=None).rows,
    "/policies": lambda library, wanted: policies.compared_rows(library, wanted)}
"""Address of a list -> all its rows under the filters of the address."""


def exported(library: Library, path: str, wanted: Mapping[str, str]) -> Response:
    """Return a list as a file. `path`: its address with the ending of a format."""
    name, _, ending = path.rpartition(".")
    rows = [_plain(row) for row in LISTS[name](library, wanted)]
    body = as_csv(rows) if ending == "csv" else _as_json(rows)
    return StreamingResponse(body, media_type=FORMATS[ending], headers={
        "content-disposition": f'attachment; filename="{name.strip("/")}.{ending}"'})


def _plain(row: Row) -> Row:
    return {name: _value(value) for name, value in row.items() if name not in _HIDDEN}


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
