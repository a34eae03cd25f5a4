"""What the pages are made of: the published warehouse, and the files that a run wrote beside it.

In: the folder of a run. Out: rows of queries, lines of files. The warehouse is opened anew when a run has published another; a
big file of JSON lines is gone through once for what lies where, and then read a line at a time.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from warehouse.store import Store, published_path

Row = dict[str, Any]
Value = TypeVar("Value")
_Stamp = tuple[int, int, int]


class Library:
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

    def row(self, sql: str, **parameters: object) -> Row | None:
        """The first row of a query."""
        return next(iter(self.rows(sql, **parameters)), None)

    def once(self, name: str, make: Callable[[], Value]) -> Value:
        """What `make` gives, kept until another warehouse is published."""
        with self._lock:
            self._opened()
            if name not in self._kept:
                self._kept[name] = make()
            found: Value = self._kept[name]
            return found

    def with_store(self, work: Callable[[Store], Value]) -> Value:
        """What `work` makes of the open store."""
        with self._lock:
            return work(self._opened())

    def line(self, path: Path, key: str, value: str) -> Row | None:
        """The line of a file of JSON objects whose `key` (a text, anywhere in the line) is `value`; None where none is."""
        with self._lock:
            found = (self.read(path, lambda file: _places(file, key), key) or {}).get(value)
            if found is None:
                return None
            with path.open("rb") as file:
                file.seek(found)
                row = json.loads(file.readline())
            return row if isinstance(row, dict) else None

    def read(self, path: Path, make: Callable[[Path], Value], name: str = "") -> Value | None:
        """What `make` makes of a file, kept under a name until the file is another; None where there is no file."""
        with self._lock:
            if not path.is_file():
                return None
            stamp, known = _stamp(path), self._read.get((path, name))
            if known is None or known[0] != stamp:
                known = self._read[path, name] = stamp, make(path)
            found: Value = known[1]
            return found

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


def _places(path: Path, key: str) -> dict[str, int]:
    """Value of `key` -> where the line begins that has it first; a line that is still being written is none."""
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
    found = path.stat()
    return found.st_ino, found.st_size, found.st_mtime_ns
