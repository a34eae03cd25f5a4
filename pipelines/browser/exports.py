"""Lists of the browser as files: all rows of a list under the same filters, as CSV or JSON.

`/sessions.csv?words=refund` holds every row of `/sessions?words=refund`. Lists that share a page have an address of their own
(`/services.csv`). Does not hold what a page has in addition to its list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from starlette.responses import Response, StreamingResponse

from pipelines.browser import corrections, episodes, policies, trajectories
from pipelines.browser.library import Library, find_environment
from pipelines.inspection import searching, views
from pipelines.inspection.coverage import unknowns
from pipelines.inspection.list_files import FORMATS, plain, written
from warehouse.errors import InputError
from warehouse.vocabulary import TERMS, outcome_of

Row = dict[str, Any]
_HIDDEN = ("began", "sorted_by", "lasted", "place")
"""Columns that only order a list."""


def _sessions(library: Library, wanted: Mapping[str, str]) -> list[Row]:
    rows = searching.sessions(library, wanted, size=None).rows
    return [{**row, "outcome": outcome_of(row["probability"])} for row in rows]


def _of_page(rows: Callable[..., views.Paged]) -> Callable[[Library, Mapping[str, str]], list[Row]]:
    return lambda library, wanted: rows(library, wanted, size=None).rows


def _environment(library: Library, wanted: Mapping[str, str]) -> Row:
    if not wanted.get("id"):
        raise InputError("the address names no environment", hint="open it from the page of one")
    return find_environment(library, wanted["id"])


def _players(library: Library, wanted: Mapping[str, str]) -> list[Row]:
    players = _environment(library, wanted)["audit"].get("published", {}).get("players", {})
    return [{"player": name, **counts} for name, counts in players.items()]


def _results(library: Library, wanted: Mapping[str, str]) -> list[Row]:
    rooms = [room for room in trajectories.rolled_out(library) if wanted.get("id", "") in ("", room["environment"])]
    return [{"environment": room["environment"], **row} for room in rooms for row in room["policies"]]


def _by_task(library: Library, wanted: Mapping[str, str]) -> list[Row]:
    rooms = [room["environment"] for room in trajectories.rolled_out(library)]
    return [row for room in rooms if wanted.get("id", "") in ("", room)
            for row in trajectories.policies_by_task(library, room, size=None).rows]


LISTS: Mapping[str, Callable[[Library, Mapping[str, str]], list[Row]]] = {
    "/sessions": _sessions, "/families": _of_page(views.families), "/tasks": _of_page(searching.tasks),
    "/rejected": _of_page(views.rejected),
    "/corrections": lambda library, wanted: corrections.corrections(library, size=None).rows,
    "/unknowns": lambda library, wanted: library.with_store(lambda store: unknowns(store, library.out)),
    "/episodes": lambda library, wanted: episodes.episodes(library, wanted, size=None).rows,
    "/policies": lambda library, wanted: policies.compared_rows(library, wanted),
    "/services": lambda library, wanted: views.overview(library)["services"],
    "/funnel": lambda library, wanted: views.funnel(library),
    "/tools": lambda library, wanted: _environment(library, wanted)["tools"], "/audit": _players, "/results": _results,
    "/rollouts": _by_task,
    "/glossary": lambda library, wanted: [term._asdict() for term in TERMS]}
"""Address of a list -> all its rows under the filters of the address."""


def exported(library: Library, path: str, wanted: Mapping[str, str]) -> Response:
    """Return a list as a file. `path`: its address with the ending of a format."""
    name, _, ending = path.rpartition(".")
    rows = [plain({key: row[key] for key in row if key not in _HIDDEN}) for row in LISTS[name](library, wanted)]
    return StreamingResponse(written(rows, ending), media_type=FORMATS[ending], headers={
        "content-disposition": f'attachment; filename="{name.strip("/")}.{ending}"'})
