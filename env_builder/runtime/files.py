"""The files of an environment: rows of JSON lines, whole, in shards or packed, and tasks (docs/environment.md)."""

from __future__ import annotations

import json
import marshal
import os
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from .records import Limits, Task
from .shards import Shards, index_of

K = TypeVar("K")
V = TypeVar("V")
PACKED = ".packed"
"""Ending of a file that holds the rows of the JSON lines of the same name: in an image, in their place."""
NAMED_BY = {"world.jsonl": ("class", "key"), "recorded.jsonl": ("tool", "arguments")}
"""Files that are packed, and the fields by which their rows are found."""
TASKS = "tasks.jsonl"
KEPT = 1024
"""Names of a file in shards whose rows are held in memory, at most."""
_HEAD = 8
_VERSION = 2
"""Of marshal's format: the last one whose bytes depend on the values alone, read by every Python since 2.5."""


class Later(dict[K, V]):
    """A dict with all its keys, whose values are made when they are first read."""

    def __init__(self, keys: dict[K, Any], make: Callable[[K], V], kept: int | None = None) -> None:
        """`keys`: what these are, in order; their values do not matter. `kept`: values that are held at most, None: all; one
        that was dropped is made once more."""
        self._unmade: dict[K, Any] = keys._unmade if isinstance(keys, Later) else dict.fromkeys(keys)
        super().__init__(self._unmade)
        self._make = make
        self.kept = kept
        self._made: deque[K] = deque()

    def __getitem__(self, key: K) -> V:
        value = super().__getitem__(key)
        if value is None:
            value = self[key] = self._make(key)
            if self.kept is not None:
                self._drop(key)
        return value

    def _drop(self, key: K) -> None:
        """Drop the value that was made first, where too many are held. `key`: the last one made."""
        self._made.append(key)
        if len(self._made) > (self.kept or 0):
            super().__setitem__(self._made.popleft(), None)  # type: ignore[assignment]

    def get(self, key: K, otherwise: Any = None) -> Any:
        """Return the value, computed if it is not yet; `otherwise` if the key is none of these."""
        try:
            return self[key]
        except KeyError:
            return otherwise

    def values(self) -> Any:
        """All of them, each made when it is its turn."""
        return (self[key] for key in self)

    def items(self) -> Any:
        """All of them, each made when it is its turn."""
        return ((key, self[key]) for key in self)


def named_rows(path: Path) -> Iterable[dict[str, Any]] | Later[tuple[str, str], list[dict[str, Any]]]:
    """Rows of a file in `NAMED_BY`; where it is packed or in shards, by their names, each read when it is needed."""
    packed = path.with_suffix(PACKED)
    if not path.exists() and index_of(path).exists():
        shards = Shards(path, NAMED_BY[path.name])
        return Later(shards.places, shards.rows, KEPT)
    if path.exists() or not packed.exists():
        return rows_of(path)
    opened = os.open(packed, os.O_RDONLY | os.O_CLOEXEC)  # as long as the environment lives
    size = int.from_bytes(os.pread(opened, _HEAD, 0), "big")
    places: dict[tuple[str, str], int] = {}
    at = _HEAD + size
    ends = [at]
    for first, seconds, sizes in marshal.loads(os.pread(opened, size, _HEAD)):
        for second, n_bytes in zip(seconds, sizes, strict=True):
            places[first, second] = len(places)
            at += n_bytes
            ends.append(at)

    def rows(name: tuple[str, str]) -> list[dict[str, Any]]:
        place = places[name]
        read: list[dict[str, Any]] = marshal.loads(os.pread(opened, ends[place + 1] - ends[place], ends[place]))
        return read

    return Later(places, rows)


def rows_of(path: Path) -> Iterable[dict[str, Any]]:
    """Objects of a file of JSON lines, whole or in shards, in order. OSError, ValueError where it cannot be read."""
    if not path.exists() and index_of(path).exists():
        yield from Shards(path, NAMED_BY[path.name])
        return
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def pack(lines: str, by: tuple[str, str]) -> bytes:
    """Rows of JSON lines as `named_rows` reads them: the size of an index in 8 bytes, the index [[first part of names, their
    second parts, how many bytes their rows have], …], and the rows of each name; index and rows in marshal's format."""
    by_first: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for line in lines.split("\n"):
        if line:
            row = json.loads(line)
            by_first.setdefault(row[by[0]], {}).setdefault(row[by[1]], []).append(row)
    texts = [[marshal.dumps(rows, _VERSION) for rows in named.values()] for named in by_first.values()]
    index = marshal.dumps([
        [first, list(named), list(map(len, own))]
        for (first, named), own in zip(by_first.items(), texts, strict=True)], _VERSION)
    return b"".join((len(index).to_bytes(_HEAD, "big"), index, *(text for own in texts for text in own)))


def task_of(row: dict[str, Any]) -> Task:
    """Return a row of tasks.jsonl as a `Task`."""
    fields = {name: row[name] for name in Task._fields if name not in ("prefix", "acting_for")}
    return Task(**fields | {
        "session_ids": tuple(row["session_ids"]), "limits": Limits(**row["limits"]), "opening": tuple(row["opening"]),
        "prefix": tuple(row.get("prefix", ())), "acting_for": row.get("acting_for")})
