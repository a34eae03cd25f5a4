"""How a stage is carried out: once for what it is computed from, under the writer's lock, in one transaction.

A stage is up to date where the warehouse says it was computed from the same: the versions of the tables that it reads, its
code with all that this imports, and the settings that it reads. A version is the digest of a table's content, so a stage that
is computed again and gives the same rows does not make later stages stale. Ingestion is the exception: it always runs, and
takes what the ledger lacks. A run that was killed continues at the first stage that is not up to date.
"""

from __future__ import annotations

import contextlib
import gc
import hashlib
import json
import os
import pkgutil
import re
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime
from itertools import zip_longest
from typing import TYPE_CHECKING, Any, NamedTuple

from pipelines import progress
from pipelines.running.code import code_digest
from pipelines.settings import Settings

if TYPE_CHECKING:   # a run without news reads the list of stages, and no table
    import polars as pl

    from warehouse.store import Store

Counts = dict[str, int]
"""Name of a figure -> how many."""
Work = Callable[["Store", Settings], Counts]
"""What a stage does."""


class StageTable(NamedTuple):
    """A table that a stage fills."""

    name: str
    erase: tuple[tuple[str, str], ...] = ()
    """Which rows go with a person who is forgotten: (kind of ids, column or expression that holds one). Every row in which
    a value of the person stands goes as well."""


class Stage(NamedTuple):
    """A stage: what it fills, what it depends on, and the function that does the work."""

    name: str
    description: str
    tables: tuple[StageTable, ...]
    after: tuple[str, ...]
    """Stages whose tables it reads."""
    work: str | Work
    """`module:function`, loaded when the stage runs."""
    reads: tuple[str, ...] = ()
    """Settings, and sections of the configuration file, that change its result (`Settings.value_of`)."""
    always: bool = False
    """It finds out by itself whether there is something new."""
    last: bool = False
    """After it, the warehouse is published to readers."""
    outputs: tuple[str, ...] = ()
    """Folders of OUT that it writes."""
    intact: str | None = None
    """`module:function` that says whether its outputs still stand as it wrote them."""

    @property
    def table_names(self) -> tuple[str, ...]:
        """Names of its tables."""
        return tuple(table.name for table in self.tables)

    @property
    def code(self) -> str:
        """Digest of the code that its work runs."""
        return code_digest(self.work.partition(":")[0] if isinstance(self.work, str) else self.work.__module__)

    def run(self, store: Store, settings: Settings) -> Counts:
        """Do the work."""
        work: Work = pkgutil.resolve_name(self.work) if isinstance(self.work, str) else self.work
        return work(store, settings)


class Report(NamedTuple):
    """What became of a stage."""

    stage: str
    fresh: bool
    """False: it was up to date and nothing was done."""
    seconds: float
    counts: Counts
    tables: dict[str, TableSample]
    """Of each table of the stage; empty without samples."""
    funnel: pl.DataFrame
    """stage, kept, reason, n."""


class TableSample(NamedTuple):
    """What a table holds now."""

    n_rows: int
    sample: pl.DataFrame
    version: str
    """Digest of its content."""


SAMPLE_ROWS = 5
_SELDOM = (100_000, 50, 100)
"""New objects, and rounds of the youngest and the middle ones, after which the interpreter searches for cycles."""
_SYSTEM = re.compile(r"\(os error (\d+)\)")
_FROM = ("the code", "what it stands on", "what was configured")


def carry_out(
    stage: Stage, settings: Settings, waiting: Callable[[str], None] | None = None,
    check: Callable[[Store], None] = lambda store: None, with_samples: bool = True,
    opened: Callable[[], AbstractContextManager[Store]] | None = None,
) -> Report:
    """Bring a stage up to date, and report on it. `check`: called with what is committed, before any of it is published;
    `with_samples`: report the tables too, which takes several queries for each; `opened`: gives the warehouse, which is opened
    for this stage alone where it is None."""
    from pipelines.running import engines, memory
    from warehouse.lock import writing
    from warehouse.store import Store

    progress.tell(stage.name)
    engines.refuse_unknown()
    settings.record_warehouse_url()
    with (_faults_of_the_system(), _unhindered(), writing(settings.warehouse, f"the stage {stage.name!r} of a run", waiting),
          opened() if opened else Store.open(settings.warehouse) as store, memory.bounded(stage.name, store)):
        settings.rename_old_folders()
        began = time.perf_counter()
        fresh = stage.always or why_computed(store, stage, settings) is not None
        counts = _compute(store, stage, settings, began) if fresh else json.loads(_recorded(store)[stage.name]["counts"])
        seconds = time.perf_counter() - began
        tables = {table: TableSample(store.count(table), store.read(f"select * from {table} limit {SAMPLE_ROWS}"),
                                     content_version(store, table)) for table in stage.table_names if with_samples}
        funnel = store.read("select stage, kept, reason, n from mart.funnel where stage = $stage", stage=stage.name)
        check(store)
        if stage.last:
            store.publish()
    progress.tell(stage.name, 1, 1, finished=True)
    return Report(stage.name, fresh, seconds, counts, tables, funnel)


@contextlib.contextmanager
def _faults_of_the_system() -> Iterator[None]:
    """Raise what the system refused as its error: polars tells it in words, with the number."""
    import polars as pl

    try:
        yield
    except pl.exceptions.PolarsError as error:
        match = _SYSTEM.search(str(error))
        if match is None:
            raise
        raise OSError(int(match[1]), os.strerror(int(match[1]))) from error


@contextlib.contextmanager
def _unhindered() -> Iterator[None]:
    """Collect garbage seldom, and only among the objects of the stage: they are millions, with few cycles (a sixth of the
    time). At the end what only caches and cycles hold is given back."""
    from pipelines.running import memory

    before = gc.get_threshold()
    gc.set_threshold(*_SELDOM)
    gc.freeze()
    try:
        yield
    finally:
        gc.set_threshold(*before)
        memory.release()
        gc.unfreeze()


def up_to_date(store: Store, stages: tuple[Stage, ...], settings: Settings) -> bool:
    """Whether running these stages would be a no-op; of a stage that always runs: whether it ran before."""
    recorded = _recorded(store)
    return all(stage.name in recorded if stage.always else why_computed(store, stage, settings) is None for stage in stages)


def why_computed(store: Store, stage: Stage, settings: Settings) -> str | None:
    """Say why a stage is stale, None if it is up to date."""
    recorded = _recorded(store)
    if stage.name not in recorded:
        return "it was not computed yet"
    was, wanted = recorded[stage.name]["digest"].split(), _wanted(recorded, stage, settings).split()
    if was != wanted:
        other = [name for name, one, two in zip_longest(_FROM, was, wanted) if one != two and name]
        return f"{' and '.join(other)} changed"
    if stage.intact is None or pkgutil.resolve_name(stage.intact)(store, settings):
        return None
    return "what it wrote is gone"


def _compute(store: Store, stage: Stage, settings: Settings, began: float) -> Counts:
    """Do a stage's work and record it in one transaction; one that always runs commits by itself, file by file."""
    import polars as pl

    with contextlib.nullcontext() if stage.always else store.transaction():
        counts = stage.run(store, settings)
        digest = (digest_of({"files": store.version("raw.files"), "code": stage.code}) if stage.always
                  else _wanted(_recorded(store), stage, settings))
        versions = {table: store.version(table) for table in stage.table_names}
        row = {"stage": stage.name, "digest": digest, "versions": json.dumps(versions, sort_keys=True),
               "counts": json.dumps(counts, sort_keys=True), "seconds": time.perf_counter() - began,
               "done_at": datetime.now(UTC)}
        store.replace("raw.stages", pl.DataFrame([row]), "stage = $stage", stage=stage.name)
    return counts


def content_version(store: Store, table: str) -> str:
    """Version of a table's content: the one that was noted when its stage was computed, else of what it holds now."""
    rows = store.read("select versions from raw.stages where json_exists(versions, $path)", path=f'$."{table}"')
    return str(json.loads(rows.item())[table]) if rows.height else store.version(table)


def _wanted(recorded: dict[str, dict[str, Any]], stage: Stage, settings: Settings) -> str:
    """Digests of what it is computed from, as `_FROM` calls them."""
    before = {name: recorded.get(name, {}).get("versions") for name in stage.after}
    values = {name: settings.value_of(name) for name in stage.reads}
    return " ".join([stage.code, digest_of(before), digest_of(values)])


def _recorded(store: Store) -> dict[str, dict[str, Any]]:
    """Row of each stage when it was computed last, by its name."""
    rows = store.read("select stage, digest, versions, counts from raw.stages order by stage").to_dicts()
    return {row["stage"]: row for row in rows}


def digest_of(value: object) -> str:
    """Digest of a JSON value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()
