"""Read the published warehouse and the files next to it for the browser's pages.

Input: the folder of a run. Output: rows of queries, lines of files, tasks with their environment, checks and audit. The
warehouse is reopened when a run has published another one. Of a large file of JSON lines only offsets are kept; lines are read
one by one."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from extractors.formats.correction import ROLES
from pipelines.inspection import views
from warehouse.catalogs import published_path
from warehouse.errors import Missing
from warehouse.store import Store

Row = dict[str, Any]
Value = TypeVar("Value")
_Stamp = tuple[int, int, int]


class Library(views.RowSource):
    """The published warehouse and the folders of a run; safe to use from several threads."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.warehouse = out / "warehouse.duckdb"
        self._lock = threading.RLock()
        self._store: Store | None = None
        self._stamp: _Stamp | None = None
        self._kept: dict[str, Any] = {}
        self._read: dict[tuple[Path, str], tuple[_Stamp, Any]] = {}

    def rows(self, sql: str, **parameters: object) -> list[Row]:
        """Rows of a query on the published warehouse. Raises Missing where nothing is published yet."""
        with self._lock:
            return self._opened().read(sql, **parameters).to_dicts()

    def once(self, name: str, make: Callable[[], Value]) -> Value:
        """Return what `make` gives, kept until another warehouse is published."""
        with self._lock:
            self._opened()
            if name not in self._kept:
                self._kept[name] = make()
            value: Value = self._kept[name]
            return value

    def with_store(self, work: Callable[[Store], Value]) -> Value:
        """Return what `work` makes of the open store."""
        with self._lock:
            return work(self._opened())

    def line(self, path: Path, key: str, value: str) -> Row | None:
        """Return the line of a file of JSON objects whose `key` (a text, anywhere in the line) is `value`; None where none
        is."""
        with self._lock:
            offset = (self.read(path, lambda file: _offsets(file, key), key) or {}).get(value)
            if offset is None:
                return None
            with path.open("rb") as file:
                file.seek(offset)
                row = json.loads(file.readline())
            return row if isinstance(row, dict) else None

    def read(self, path: Path, make: Callable[[Path], Value], name: str = "") -> Value | None:
        """Return what `make` makes of a file, kept under a name until the file is another; None where there is no file."""
        with self._lock:
            if not path.is_file():
                return None
            stamp, entry = _stamp(path), self._read.get((path, name))
            if entry is None or entry[0] != stamp:
                entry = self._read[path, name] = stamp, make(path)
            value: Value = entry[1]
            return value

    def close(self) -> None:
        """Close the warehouse."""
        with self._lock:
            if self._store is not None:
                self._store.close()
            self._store = None

    def _opened(self) -> Store:
        path = published_path(self.warehouse)
        stamp = _stamp(path) if path.is_file() else None
        if self._store is None or stamp != self._stamp:
            self.close()
            self._kept = {}
            self._store, self._stamp = Store.published(self.warehouse), stamp
        return self._store


def _offsets(path: Path, key: str) -> dict[str, int]:
    """Value of `key` -> where the line begins that has it first; a line that is still being written does not count."""
    places: dict[str, int] = {}
    mark, at = f'"{key}":"'.encode(), 0
    with path.open("rb") as file:
        for line in file:
            begin = line.find(mark) + len(mark)
            if begin >= len(mark) and line.endswith(b"\n"):
                places.setdefault(line[begin:line.find(b'"', begin)].decode("utf-8", "replace"), at)
            at += len(line)
    return places


def _stamp(path: Path) -> _Stamp:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


FOLDERS = ("environments", "unverified")
"""Folders of environments: of tasks with a verified reward, and of the others."""


def find_task(library: Library, task_id: str) -> Row:
    """Return all that is known of a task, with the directory of its environment as `room`. Raises Missing."""
    row = views.task(library, task_id)
    return {**row, "room": room_of(library, row["service"], task_id)}


def checks_of(library: Library, task_id: str) -> list[Row]:
    """Return the checks of a task as the build mined and persons corrected them, those that count first; none without a
    rubric."""
    row = library.row("select checks from mart.variants where task_id = $id", id=task_id) or library.row(
        "select checks from mart.rubrics where task_id = $id", id=task_id)
    return _in_order(json.loads(row["checks"]) if row else [])


def published_checks(library: Library, environment: str, task_id: str) -> list[Row]:
    """Return the checks of a task as its environment's rewards have them."""
    row = library.line(library.out / "rewards" / environment / "rubrics.jsonl", "task_id", task_id)
    return _in_order([{"weight": 1.0, "provenance": {}, **check} for check in row["checks"]] if row else [])


def _in_order(checks: list[Row]) -> list[Row]:
    return sorted(checks, key=lambda check: (ROLES.index(check["role"]), check["kind"], check["check_id"]))


def evidence(library: Library, checks: list[Row]) -> dict[str, Row]:
    """Event id -> the turn that it is, of all events that the checks stand on."""
    ids = sorted({event for check in checks for side in check["provenance"].get("events", {}).values() for event in side})
    if not ids:
        return {}
    rows = library.rows(
        "select turn_id, result_id, session_id, position, kind, role, tool from core.turns "
        "where turn_id in (select unnest($ids)) or result_id in (select unnest($ids))", ids=ids)
    return {name: row for row in rows for name in (row["result_id"], row["turn_id"]) if name in ids}


def audit_of(library: Library, service: str, task_id: str) -> Row | None:
    """Who was played against a task's reward, and what they earned; None where it was not published."""
    for name in _names(library, service):
        row = library.line(library.out / "rewards" / name / "audit.jsonl", "task_id", task_id)
        if row is not None:
            return row
    return None


def room_of(library: Library, service: str, task_id: str) -> Path | None:
    """Find the directory of the environment that has the task; None where none was written."""
    for folder in FOLDERS:
        for name in _names(library, service):
            room = library.out / folder / name
            if library.line(room / "tasks.jsonl", "task_id", task_id) is not None:
                return room
    return None


def _names(library: Library, service: str) -> list[str]:
    """Names of a service's environments: as the warehouse says, else the folders that the manifests say are its."""
    stated = [row["environment"] for row in library.rows(
        "select environment from mart.environments where service = $service", service=service)]
    there = sorted({room.name for folder in FOLDERS if (library.out / folder).is_dir()
                    for room in (library.out / folder).iterdir() if (room / "manifest.json").is_file()})
    return [*stated, *(name for name in there if name not in stated and service in (name, _service(library, name)))]


def _service(library: Library, name: str) -> str | None:
    path = next((path for folder in FOLDERS if (path := library.out / folder / name / "manifest.json").is_file()), None)
    manifest = json.loads(path.read_text("utf-8")) if path else {}
    return manifest.get("service") if isinstance(manifest, dict) else None


def find_environment(library: Library, name: str) -> Row:
    """Return a published environment: its tools and what is known of them, what it can answer, who got through. Raises
    Missing."""
    row = library.row("select * from mart.environments where environment = $name", name=name)
    if row is None:
        names = [each["environment"] for each in library.rows("select environment from mart.environments")]
        raise Missing.named("environment", name, names)
    tools = library.rows(
        "select t.tool, description, n_calls, declared, effect, n_support, fidelity, abstains, "
        "program is not null and program != 'null' as has_program from core.tools t left join mart.behaviours b "
        "on b.service = t.service and b.tool = t.tool where t.service = $service order by n_calls desc, t.tool",
        service=row["service"])
    return {**row, "tools": tools, "manifest": document_of(library.out / "environments" / name / "manifest.json"),
            "audit": document_of(library.out / "rewards" / name / "audit.json")}


def document_of(path: Path) -> Row:
    """Return the JSON object that a file holds; an empty one where there is none."""
    document = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    return document if isinstance(document, dict) else {}
