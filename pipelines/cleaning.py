"""Readings that wait until all of a run were seen, and are cleaned then: by this process and by the workers that read.

In: readings as they were read, and what is known of people. Out: the same, clean, in their order, whoever cleaned them. What
waits lies in memory, and beyond that on the disk, sealed with a key that this run alone has. A worker gets the dictionary once;
where workers see no files of this machine (a cluster's), this process cleans alone.
"""

from __future__ import annotations

import pickle
import shutil
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from types import TracebackType
from typing import Generic, NamedTuple, Self, TypeVar

import polars as pl

from extractors.formats.correction import NAME as CORRECTION
from extractors.privacy import Cleaner, Known, People, Pseudonyms
from extractors.reading import Reading
from pipelines.engines import Engine
from pipelines.engines.turns import Call, Turns
from pipelines.readers import no_room
from pipelines.seals import Owner, Seal
from warehouse.records import File

_MEMORY = 1 << 27
"""Bytes of readings that wait in memory; the rest waits on the disk."""
_FRAMES = ("records", "events", "declarations", "quarantine", "verdicts")
T = TypeVar("T")


class Cleaning:
    """Readings in, clean ones out."""

    def __init__(self, people: People, owner: Owner) -> None:
        self._cleaner, self._owner = Cleaner(people, Pseudonyms(owner.key)), owner

    def of(self, reading: Reading) -> Reading:
        """The reading, clean; what persons corrected names no people."""
        if reading.file.format == CORRECTION:
            return reading
        cleaner = self._cleaner
        declared = reading.declarations.with_columns(
            cleaner.texts(reading.declarations[name]).alias(name) for name in ("description", "input_schema", "annotations"))
        quarantine = reading.quarantine.with_columns(pl.Series(
            "content", [self._owner.shut(each) for each in reading.quarantine["content"]], pl.Binary()))
        return replace(
            reading, events=cleaner.events(reading.events), declarations=declared, quarantine=quarantine,
            verdicts=reading.verdicts.with_columns(cleaner.texts(reading.verdicts["detail"]).alias("detail")))

    def met(self) -> set[Known]:
        """What was replaced for its form alone since this was last asked."""
        met = set(self._cleaner.met)
        self._cleaner.met.clear()
        return met


class Waiting(Generic[T]):
    """Readings that wait, each with what belongs to it; use as a context manager, after which nothing lies in `folder`."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._seal = folder, Seal()
        self._held: deque[_Shard[T]] = deque()
        self._n_bytes = 0
        shutil.rmtree(folder, ignore_errors=True)

    def put(self, task: T, reading: Reading) -> None:
        """Keep a reading."""
        n_bytes = int(reading.events.estimated_size() + reading.quarantine.estimated_size())
        self._n_bytes += n_bytes
        place = self._folder / str(len(self._held))
        held = reading if self._n_bytes <= _MEMORY else _put_down(reading, place, self._seal)
        self._held.append(_Shard(task, held, n_bytes))

    def cleaned(self, people: People, owner: Owner, engine: Engine | None, met: set[Known]) -> Iterator[tuple[T, Reading]]:
        """All, clean; into `met` comes what was replaced for its form alone. Errors: as engines/turns.py says."""
        engine = engine if engine and engine.shares_files else None
        dictionary = self._folder / "people"
        if engine is not None:
            self._folder.mkdir(parents=True, exist_ok=True)
            dictionary.write_bytes(self._seal.shut(pickle.dumps((people, owner.key))))
        work = _Work(Cleaning(people, owner), dictionary, self._seal, met)
        for shard, clean in Turns[_Shard[T], Reading](work, engine).of(self._shards()):
            yield shard.task, clean
        met |= work.cleaning.met()

    def _shards(self) -> Iterator[_Shard[T]]:
        while self._held:
            yield self._held.popleft()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


class _Shard(NamedTuple, Generic[T]):
    task: T
    held: Reading | Path
    """It, or where it lies."""
    n_bytes: int


class _Work(NamedTuple):
    """How a reading is cleaned."""

    cleaning: Cleaning
    dictionary: Path
    seal: Seal
    met: set[Known]

    def size(self, shard: _Shard[T], /) -> int:
        return shard.n_bytes

    def here(self, shard: _Shard[T], /) -> Reading:
        return self.cleaning.of(_at_hand(shard.held, self.seal))

    def beside(self, shard: _Shard[T], engine: Engine, /) -> Call | None:
        return _clean, (shard.held, self.dictionary, self.seal)

    def fetched(self, given: Callable[[], tuple[Reading, set[Known]]], /) -> Reading:
        clean, met = given()
        self.met.update(met)
        return clean


def _clean(held: Reading | Path, dictionary: Path, seal: Seal) -> tuple[Reading, set[Known]]:
    """Clean a reading in another process."""
    cleaning = _cleaning(dictionary, seal)
    return cleaning.of(_at_hand(held, seal)), cleaning.met()


@lru_cache(1)
def _cleaning(dictionary: Path, seal: Seal) -> Cleaning:
    people, key = pickle.loads(seal.opened(dictionary.read_bytes()))
    return Cleaning(people, Owner(key))


def _put_down(reading: Reading, place: Path, seal: Seal) -> Path:
    parts = [reading.file.model_dump_json().encode()]
    for name in _FRAMES:
        content = BytesIO()
        getattr(reading, name).write_ipc(content, compression="uncompressed")
        parts.append(content.getvalue())
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        for number, part in enumerate(parts):
            place.with_suffix(f".{number}").write_bytes(seal.shut(part))
    except OSError as error:
        raise no_room(error, place.parent) from error
    return place


def _at_hand(held: Reading | Path, seal: Seal) -> Reading:
    if isinstance(held, Reading):
        return held
    parts = [seal.opened(held.with_suffix(f".{number}").read_bytes()) for number in range(1 + len(_FRAMES))]
    return Reading(File.model_validate_json(parts[0]), *(pl.read_ipc(BytesIO(part)) for part in parts[1:]))
