"""How a stage is carried out: once for what it is computed from, under the writer's lock, in one transaction.

A stage is up to date where the warehouse says it was computed from the same: the versions of the tables that it stands on, the
code of the house, and the settings that it reads. A version is the digest of a table's content, so a stage that was computed
again and gave the same rows lets all that stands on it be. Ingestion is the exception: it always looks, and takes what the
ledger lacks.
A run that was killed goes on at the first stage that is not up to date.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import _lru_cache_wrapper, cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import zip_longest
from typing import Any, NamedTuple

import polars as pl

from pipelines import engines, memory, progress
from pipelines.settings import Settings
from warehouse.lock import writing
from warehouse.store import Store

Counts = dict[str, int]
"""Name of a figure -> how many."""


class Stage(NamedTuple):
    """A stage: what it fills, what it stands on, and the function that does it."""

    name: str
    tables: tuple[str, ...]
    after: tuple[str, ...]
    """Stages whose tables it reads."""
    work: Callable[[Store, Settings], Counts]
    reads: tuple[str, ...] = ()
    """Settings, and sections of the configuration file, that change what it gives (`Settings.told`)."""
    always: bool = False
    """It finds out by itself whether there is something new."""
    last: bool = False
    """After it, the warehouse is published to readers."""
    holds: Callable[[Store, Settings], bool] = lambda store, settings: True
    """Is what it wrote outside the warehouse still there?"""


class Report(NamedTuple):
    """What became of a stage."""

    stage: str
    fresh: bool
    """False: it was up to date and nothing was done."""
    seconds: float
    counts: Counts
    tables: dict[str, Look]
    """What each of its tables holds now."""
    funnel: pl.DataFrame
    """stage, kept, reason, n."""


class Look(NamedTuple):
    """A look into a table."""

    n_rows: int
    sample: pl.DataFrame
    version: str
    """Digest of its content."""


SAMPLE_ROWS = 5
_SELDOM = (100_000, 50, 100)
"""New objects, and rounds of the youngest and the middle ones, after which the interpreter looks for circles."""
_FROM = ("the code", "what it stands on", "what was configured")
_WINGS = ("extractors", "env_builder")


def carry_out(
    stage: Stage, settings: Settings, waiting: Callable[[str], None] | None = None,
    look: Callable[[Store], None] = lambda store: None,
) -> Report:
    """Bring a stage up to date, and say what became of it. `look`: at what is committed, before any of it is published."""
    progress.tell(stage.name)
    engines.refuse_unknown()
    settings.remember()
    with (_unhindered(), writing(settings.warehouse, f"the stage {stage.name!r} of a run", waiting),
          Store.open(settings.warehouse) as store, memory.bounded(stage.name, store)):
        began = time.perf_counter()
        before = _recorded(store, stage.name)
        if before and not stage.always and _current(store, stage, settings):
            fresh, counts = False, json.loads(before["counts"])
        else:
            fresh, counts = True, _work(store, stage, settings, began)
        seconds = time.perf_counter() - began
        report = Report(stage.name, fresh, seconds, counts, *_looks(store, stage))
        look(store)
        if stage.last:
            store.publish()
    progress.tell(stage.name, 1, 1, finished=True)
    return report


@contextlib.contextmanager
def _unhindered() -> Iterator[None]:
    """Look for circles of Python objects seldom, and only among those that the stage makes: they are millions, and few circles
    (a sixth of their time). At the end let go of what the stage alone needed: what the wings' functions remember, and frames
    in such circles."""
    before = gc.get_threshold()
    gc.set_threshold(*_SELDOM)
    gc.freeze()
    try:
        yield
    finally:
        gc.set_threshold(*before)
        _forget()
        gc.unfreeze()


def _forget() -> None:
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] in _WINGS:
            for found in vars(module).values():
                if isinstance(found, _lru_cache_wrapper) and found.__module__.split(".")[0] in _WINGS:
                    found.cache_clear()
    gc.collect()


def up_to_date(store: Store, stages: tuple[Stage, ...], settings: Settings) -> bool:
    """Would carrying these out change nothing? Of a stage that always looks: was it done before?"""
    return all(
        _recorded(store, stage.name) is not None if stage.always else _current(store, stage, settings) for stage in stages)


def _current(store: Store, stage: Stage, settings: Settings) -> bool:
    return why_computed(store, stage, settings) is None


def why_computed(store: Store, stage: Stage, settings: Settings) -> str | None:
    """What of a stage is not as it was when it was computed last; None where all is."""
    before = _recorded(store, stage.name)
    if before is None:
        return "it was not computed yet"
    was, wanted = before["digest"].split(), _wanted(store, stage, settings).split()
    if was != wanted:
        other = [name for name, one, two in zip_longest(_FROM, was, wanted) if one != two and name]
        return f"{' and '.join(other)} changed"
    return None if stage.holds(store, settings) else "what it wrote is gone"


def _work(store: Store, stage: Stage, settings: Settings, began: float) -> Counts:
    if stage.always:  # commits by itself, file by file
        counts = stage.work(store, settings)
        _note(store, stage, _state(store), time.perf_counter() - began, counts)
        return counts
    with store.transaction():
        counts = stage.work(store, settings)
        _note(store, stage, _wanted(store, stage, settings), time.perf_counter() - began, counts)
    return counts


def content_version(store: Store, table: str) -> str:
    """Version of a table's content: the one that was noted when its stage was computed, else of what it holds now."""
    found = store.read("select versions from raw.stages where json_exists(versions, $path)", path=f'$."{table}"')
    return str(json.loads(found.item())[table]) if found.height else store.version(table)


def _looks(store: Store, stage: Stage) -> tuple[dict[str, Look], pl.DataFrame]:
    tables = {
        table: Look(store.count(table), store.read(f"select * from {table} limit {SAMPLE_ROWS}"), content_version(store, table))
        for table in stage.tables}
    return tables, store.read(
        "select stage, kept, reason, n from mart.funnel where stage = $stage", stage=stage.name)


def _wanted(store: Store, stage: Stage, settings: Settings) -> str:
    """Digests of what it is computed from, as `_FROM` calls them."""
    before = {name: (_recorded(store, name) or {}).get("versions") for name in stage.after}
    told = {name: settings.told(name) for name in stage.reads}
    return " ".join([code_digest(), digest_of(before), digest_of(told)])


def _state(store: Store) -> str:
    """Digest of all that was ever read."""
    return digest_of({"files": store.version("raw.files"), "code": code_digest()})


def _recorded(store: Store, stage: str) -> Mapping[str, Any] | None:
    found = store.read("select digest, versions, counts from raw.stages where stage = $stage", stage=stage)
    return found.row(0, named=True) if found.height else None


def _note(store: Store, stage: Stage, digest: str, seconds: float, counts: Counts) -> None:
    versions = {table: store.version(table) for table in stage.tables}
    row = {"stage": stage.name, "digest": digest, "versions": json.dumps(versions, sort_keys=True), "seconds": seconds,
           "counts": json.dumps(counts, sort_keys=True), "done_at": datetime.now(UTC)}
    store.replace("raw.stages", pl.DataFrame([row]), "stage = $stage", stage=stage.name)


@cache
def code_digest() -> str:
    """Digest of the code that computes: what other code made is computed again."""
    digest = hashlib.sha256()
    for package in ("extractors", "env_builder", "warehouse", "pipelines"):
        for path, content in sorted(_sources(files(package), package)):
            digest.update(f"{path}\0".encode() + hashlib.sha256(content).digest())
    return digest.hexdigest()


def _sources(folder: Traversable, path: str) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for child in folder.iterdir():
        if child.is_dir() and child.name != "__pycache__":
            found += _sources(child, f"{path}/{child.name}")
        elif child.name.endswith((".py", ".sql", ".toml", ".json")):
            found.append((f"{path}/{child.name}", child.read_bytes()))
    return found


def digest_of(value: object) -> str:
    """Digest of a JSON value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
