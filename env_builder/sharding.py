"""Files of an environment that grow with the logs, split into shards (docs/environment.md).

In: a folder with the written files of an app, and how long a file may be. Out: the same folder, in which a longer file is a
folder of shards and an index; and what the manifest states of them. A shard holds the rows that begin in a period (those of one
session: when it began), and where that is too much in a narrower one, in the end those of a part of the names: what a night
adds changes few earlier shards. Does not see: that a row of an earlier period changes, which changes its shard.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import IO, Any, NamedTuple

import orjson

from env_builder.runtime.canonical import canonical, digest
from env_builder.runtime.files import NAMED_BY, named_rows
from env_builder.runtime.shards import FOLDER, INDEX, NAMES, VALUES, Place, index_of, shards_of
from env_builder.runtime.world import World

ALWAYS = "always"
"""Stands for the period of rows without an instant."""
_PERIODS = (4, 7, 10, 13)
"""Characters of an instant that name its year, month, day and hour."""
_N_BITS = 24
"""Bits of a name's hash by which the rows of a period are split, at most."""
_LEAF, _NODE = b"\0", b"\1"
"""What is hashed before a leaf and before a node, so that none can stand for the other."""


class _Line(NamedTuple):
    """A line of a file, and where it is."""

    name: tuple[str, str]
    labels: tuple[str, ...]
    """The names of the shards that it may be in, from the widest to the narrowest."""
    offset: int
    size: int


class Sharding(NamedTuple):
    """How files are split."""

    longest: int
    """Bytes above which a file is split, and a shard once more."""
    began: Mapping[str, str] = {}
    """Session -> ISO instant at which it began."""

    def split(self, folder: Path) -> None:
        """Split the files of `NAMED_BY` in a folder that are too long, and say next to the shards which names there are."""
        for name, by in NAMED_BY.items():
            path = folder / name
            if path.is_file() and path.stat().st_size > self.longest:
                with path.open("rb") as source:
                    self._split(source, path, by)
                path.unlink()
        shards = folder / FOLDER
        if shards.is_dir() and not (shards / NAMES).exists():
            facts, recorded = (named_rows(folder / name) for name in NAMED_BY)
            names = World(facts, recorded).known_names
            (shards / VALUES).write_bytes(b"".join(line + b"\n" for line in names.lines))
            (shards / NAMES).write_text(canonical(names.rules) + "\n", "utf-8")

    def _split(self, source: IO[bytes], path: Path, by: tuple[str, str]) -> None:
        """Write the shards of a file, and their index."""
        lines = list(self._lines(source, by))
        shards = dict(sorted(_grouped(lines, range(len(lines)), "", 0, self.longest)))
        shards_of(path).mkdir(parents=True)
        places: list[Place] = [(0, 0, 0)] * len(lines)
        for number, (label, own) in enumerate(shards.items()):
            at = 0
            with (shards_of(path) / f"{label}.jsonl").open("wb") as shard:
                for each in own:
                    _, _, offset, size = lines[each]
                    source.seek(offset)
                    shard.write(source.read(size))
                    places[each] = (number, at, size)
                    at += size
        named: dict[tuple[str, str], list[Place]] = defaultdict(list)
        for line, place in zip(lines, places, strict=True):
            _add(named[line.name], place)
        rows = ({by[0]: first, by[1]: second, "places": own} for (first, second), own in named.items())
        with index_of(path).open("w", encoding="utf-8", newline="\n") as index:
            index.writelines(f"{canonical(row)}\n" for row in ({"shards": [f"{label}.jsonl" for label in shards]}, *rows))

    def _lines(self, source: IO[bytes], by: tuple[str, str]) -> Iterator[_Line]:
        offset = 0
        for text in source:
            row = orjson.loads(text)
            first, second = row[by[0]], row[by[1]]
            instant = row["from"] or self.began.get(row["session"])
            periods = [instant[:size] for size in _PERIODS] if instant else [ALWAYS]
            bits = f"{int(digest(canonical([first, second])), 16):0256b}"
            parts = [f"{periods[-1]}.{bits[:size]}" for size in range(1, _N_BITS + 1)]
            yield _Line((first, second), (*periods, *parts), offset, len(text))
            offset += len(text)


def stated(files: Mapping[str, str]) -> dict[str, Any]:
    """Return what the manifest states of shards, empty without any: how many, and the root of a Merkle tree over them, by path.
    `files`: sha256 by path."""
    shards = [value for path, value in sorted(files.items()) if f"{path.rpartition('/')[0]}{INDEX}" in files]
    return {"shards": {"n": len(shards), "root": merkle_root(shards)}} if shards else {}


def merkle_root(digests: Iterable[str]) -> str:
    """Return the root of a Merkle tree over one digest or more, all in hex: a node is the sha256 of its two children; one
    without a sibling goes up as it is."""
    level = [sha256(_LEAF + bytes.fromhex(each)).digest() for each in digests]
    while len(level) > 1:
        pairs = [level[at:at + 2] for at in range(0, len(level), 2)]
        level = [sha256(_NODE + b"".join(pair)).digest() if len(pair) == 2 else pair[0] for pair in pairs]
    return level[0].hex()


def _grouped(
    lines: list[_Line], own: Iterable[int], label: str, depth: int, longest: int
) -> Iterator[tuple[str, list[int]]]:
    """Yield (label, numbers of lines) of the shards that lines are split into. `depth`: how many labels they have in common."""
    by_label: dict[str, list[int]] = defaultdict(list)
    for number in own:
        labels = lines[number].labels
        by_label[labels[min(depth, len(labels) - 1)]].append(number)
    for wider, numbers in by_label.items():
        size = sum(lines[number].size for number in numbers)
        if size <= longest or wider == label:
            yield wider, numbers
        else:
            yield from _grouped(lines, numbers, wider, depth + 1, longest)


def _add(places: list[Place], place: Place) -> None:
    """Add a place to those of a name; what lies behind the last one is one place with it."""
    number, offset, size = place
    if places and places[-1][0] == number and places[-1][1] + places[-1][2] == offset:
        places[-1] = (number, places[-1][1], places[-1][2] + size)
    else:
        places.append(place)
