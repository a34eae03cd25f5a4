"""Read a file of an environment that is split into shards: the rows of a name are read when they are needed.

In: `shards/<stem>.index.jsonl` next to where the whole file would be. Its first row names the shards, files of JSON lines in
`shards/<stem>/`; each other row has the two values by which rows are found, and their `places`, in the order of the whole file:
[[number of a shard, offset, bytes], …]. Out: the names, and the rows of each. The first shards are held open as long as the
environment is in use: a build that replaces its folder does not change what is read of them; others are gone then (OSError).
"""

from __future__ import annotations

import json
import mmap
import os
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = "shards"
"""Folder of the shards and of what says where rows are in them."""
INDEX = ".index.jsonl"
"""Ending of the file that says so."""
NAMES, VALUES = "names.json", "names.jsonl"
"""Files that say which names there are without all rows (`known_names.py`): rules, and values in order."""
Place = tuple[int, int, int]
"""Number of a shard, an offset in it, and how many bytes."""
OPEN = 64
"""Shards of a file that are held open; more are opened for each read."""


def index_of(path: Path) -> Path:
    """Return the index of a file, if it is split: `path` names it as if it were whole."""
    return path.parent / FOLDER / f"{path.stem}{INDEX}"


def shards_of(path: Path) -> Path:
    """Return the folder of a file's shards."""
    return path.parent / FOLDER / path.stem


class Shards:
    """The shards of one file."""

    def __init__(self, path: Path, by: tuple[str, str]) -> None:
        """`path`: of the whole file, which is not there; `by`: the fields by which rows are found. OSError, ValueError where
        its index cannot be read."""
        self._folder = shards_of(path)
        self.places: dict[tuple[str, str], list[Place]] = {}
        """Names in the order of the whole file, and where their rows are."""
        with index_of(path).open(encoding="utf-8") as lines:
            self._names: list[str] = json.loads(next(lines))["shards"]
            for row in map(json.loads, lines):
                self.places[row[by[0]], row[by[1]]] = [(number, offset, size) for number, offset, size in row["places"]]
        self._opened = [self._open(name) for name in self._names[:OPEN]]
        weakref.finalize(self, _close, self._opened)

    def rows(self, name: tuple[str, str]) -> list[dict[str, Any]]:
        """Read the rows of a name."""
        return [json.loads(line) for line in self.text(name).splitlines()]

    def text(self, name: tuple[str, str]) -> bytes:
        """Read the lines of a name."""
        return b"".join([self._read(*place) for place in self.places[name]])

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield all rows, in the order of the whole file."""
        for name in self.places:
            yield from self.rows(name)

    def _open(self, name: str) -> int:
        return os.open(self._folder / name, os.O_RDONLY | os.O_CLOEXEC)

    def _read(self, number: int, offset: int, size: int) -> bytes:
        if number < len(self._opened):
            return os.pread(self._opened[number], size, offset)
        opened = self._open(self._names[number])
        try:
            return os.pread(opened, size, offset)
        finally:
            os.close(opened)


class SortedLines:
    """Lines in the order of their bytes, in a file of which only the pages that are looked at are read."""

    def __init__(self, path: Path) -> None:
        """`path`: the file; each line ends with a line feed."""
        with path.open("rb") as file:
            self._bytes = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if path.stat().st_size else b""

    def __contains__(self, line: bytes) -> bool:
        """Return whether the line is there, given without its end."""
        low, high = 0, len(self._bytes)   # where lines begin
        while low < high:
            begin = self._bytes.rfind(b"\n", low, (low + high) // 2) + 1 or low
            end = self._bytes.find(b"\n", begin)
            here = self._bytes[begin:end]
            if here == line:
                return True
            low, high = (end + 1, high) if here < line else (low, begin)
        return False


def _close(opened: list[int]) -> None:
    for each in opened:
        os.close(each)
