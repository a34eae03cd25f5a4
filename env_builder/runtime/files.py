"""The files of a room: rows of JSON lines, the same rows packed for a quick start, and tasks (docs/environment.md)."""

from __future__ import annotations

import json
import marshal
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

from .records import Limits, Task

K = TypeVar("K")
V = TypeVar("V")
PACKED = ".packed"
"""Ending of a file that holds the rows of the JSON lines of the same name: in an image, in their place."""
NAMED_BY = {"world.jsonl": ("class", "key"), "recorded.jsonl": ("tool", "arguments")}
"""Files that are packed, and the fields by which their rows are looked up."""
TASKS = "tasks.jsonl"
_VERSION = 2
"""Of marshal's format: the last one whose bytes depend on the values alone, read by every Python since 2.5."""


class Later(dict[K, V]):
    """A dict with all its keys, whose values are made when they are first looked up."""

    def __init__(self, keys: Iterable[K], make: Callable[[K], V]) -> None:
        super().__init__(dict.fromkeys(keys))  # type: ignore[arg-type]  # None: not made yet
        self._make = make

    def __getitem__(self, key: K) -> V:
        value = super().__getitem__(key)
        if value is None:
            value = self[key] = self._make(key)
        return value

    def get(self, key: K, otherwise: Any = None) -> Any:
        """The value, made where it is not yet; `otherwise` where the key is none of these."""
        try:
            return self[key]
        except KeyError:
            return otherwise


def named_rows(path: Path) -> Iterable[dict[str, Any]] | Later[tuple[str, str], list[dict[str, Any]]]:
    """Rows of a file in `NAMED_BY`; where it is packed, by their names, each read when it is looked up."""
    packed = path.with_suffix(PACKED)
    if path.exists() or not packed.exists():
        return rows_of(path)
    names, texts = marshal.loads(packed.read_bytes())
    held = dict(zip(map(tuple, names), texts, strict=True))
    return Later(held, lambda name: marshal.loads(held[name]))


def rows_of(path: Path) -> Iterable[dict[str, Any]]:
    """Objects of a file of JSON lines, in order. OSError, ValueError where it cannot be read."""
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


def pack(lines: str, by: tuple[str, ...]) -> bytes:
    """Rows of JSON lines as `named_rows` takes them: [[name, …], [bytes of its rows, …]] in marshal's format."""
    held: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for line in lines.split("\n"):
        if line:
            row = json.loads(line)
            held.setdefault(tuple(row[field] for field in by), []).append(row)
    texts = [marshal.dumps(rows, _VERSION) for rows in held.values()]
    return marshal.dumps([[list(name) for name in held], texts], _VERSION)


def task_of(row: dict[str, Any]) -> Task:
    """A row of tasks.jsonl as a `Task`."""
    return Task(
        task_id=row["task_id"], session_ids=tuple(row["session_ids"]), split=row["split"], limits=Limits(**row["limits"]),
        family=row["family"], goal=row["goal"], starts_at=row["starts_at"], opening=tuple(row["opening"]),
        user_turns=tuple(row["user"]["turns"]), user=row["user"], slots=row["slots"], segment_of=row["segment_of"],
        derived_from=row["derived_from"],
    )
