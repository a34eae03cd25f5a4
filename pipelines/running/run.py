"""A run: every stage in order in this process, the rules on its tables after each, then the published copy of the warehouse.

There is one way to run a stage, `carry_out` with retries on faults that may pass; Dagster's assets call the same function.
Stages of a run share one connection to the warehouse: opening and closing it costs more than a stage without news.
Where DAGSTER_HOME is set, each stage's tables and checks are recorded on that instance as well.

`unchanged` answers a second run over the same logs from the published copy, without a lock. It says so only where every file is
in the ledger, every stage is up to date and its outputs stand; in any doubt the run does everything. `plan` says what a run
would read and compute, and why; it sees names, sizes and times of logs, and not what new files hold.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from pipelines import progress
from pipelines.ingestion.ingest import all_read
from pipelines.ingestion.ledger import Ledger
from pipelines.ingestion.listing import discovered
from pipelines.privacy import guard as privacy
from pipelines.quality import rules
from pipelines.quality.rules import RULES, offenders
from pipelines.running import memory
from pipelines.running import stage as engine
from pipelines.running.faults import retried
from pipelines.running.stage import Report, Stage, carry_out
from pipelines.settings import Settings
from pipelines.stages import STAGES
from warehouse.catalogs import catalog_of
from warehouse.errors import GateFailed, Missing, StoreError
from warehouse.lock import is_described, writing
from warehouse.store import Store

_SHOWN = 5
_LONG_LOG = 1 << 26
"""Bytes of the log of writes from which on it is folded into the file between two stages."""


class Ran(NamedTuple):
    """What a run did."""

    seconds: float
    stages: list[dict[str, Any]]
    """{"stage", "computed", "seconds"} in order."""
    broken: list[str]
    """Names of the checks that do not hold."""


class _LastingStore:
    """A warehouse that stays open from stage to stage. After a stage that failed, and where its log of writes has grown, it is
    closed, which folds the log into the file and gives memory back; so it is after every stage where memory is limited."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._store: Store | None = None

    @contextlib.contextmanager
    def opened(self) -> Iterator[Store]:
        """Yield the store for a stage."""
        self._store = self._store or Store.open(self._path)
        is_lasting = False
        try:
            yield self._store
            is_lasting = memory.limit() is None and self._store.n_log_bytes() < _LONG_LOG
        finally:
            if not is_lasting:
                self.close()

    def close(self) -> None:
        """Close it, if it is open."""
        if self._store is not None:
            self._store.close()
            self._store = None


def run(settings: Settings, waiting: Callable[[str], None] | None = None) -> Ran:
    """Carry out every stage that is not up to date. Holds the writer's lock from beginning to end; while another run has it,
    `waiting` gets its name. Raises TraceroomError; what was committed before stays, and the next run continues."""
    began = time.perf_counter()
    records: list[Callable[[Report], None]] = []
    if os.environ.get("DAGSTER_HOME"):
        from pipelines.dagster_assets.assets import record  # Dagster takes a second to load

        records.append(record)
    with (writing(settings.warehouse, f"a run over {', '.join(settings.logs) or settings.configuration}", waiting),
          contextlib.closing(_LastingStore(settings.warehouse)) as warehouse):
        settings.withdraw_access()
        rows = []
        for stage in STAGES:
            report = retried(
                partial(carry_out, stage, settings, check=partial(_check, stage), with_samples=bool(records),
                        opened=warehouse.opened),
                partial(progress.warn, stage.name), f"{settings.out} (stage {stage.name})")
            for record_stage in records:
                record_stage(report)
            rows.append({"stage": report.stage, "computed": report.fresh, "seconds": round(report.seconds, 3)})
    return Ran(time.perf_counter() - began, rows, [])


def _check(stage: Stage, store: Store) -> None:
    """Print the rows that break a rule on the stage's tables. Raises GateFailed where there are some."""
    names = []
    for rule in RULES:
        if rule.table in stage.table_names and (rows := offenders(store, rule)).height:
            names.append(rule.name)
            shown = "; ".join(str(row) for row in rows.head(_SHOWN).to_dicts())
            progress.warn("checks", f"{rule.name}: {rule.description} {rows.height:,} offending rows: {shown}")
    if names:
        raise GateFailed(
            f"data-quality checks failed: {', '.join(sorted(names))}; downstream stages were skipped, and what was published "
            "is unchanged", str(store.path), "see docs/pipeline.md")


def unchanged(settings: Settings, check: bool = True) -> Ran | None:
    """Report a run that has nothing to do; None where there may be something to do. `check`: ask the rules on tables too, which
    a run that just did something has asked stage by stage."""
    began = time.perf_counter()
    if not catalog_of(settings.warehouse).is_published() or _is_going_or_was_killed(settings):
        return None
    settings.fetch_repositories(partial(progress.warn, "starts"))
    try:
        with Store.published(settings.warehouse) as store:
            if not all_read(store, settings) or not engine.up_to_date(store, STAGES, settings):   # the ledger is asked sooner
                return None
            if privacy.held_policy(store) is not None:
                privacy.agree(store, settings)
            broken = rules.broken(store) if check else []
    except StoreError:
        return None
    rows = [{"stage": stage.name, "computed": False, "seconds": 0.0} for stage in STAGES]
    return Ran(time.perf_counter() - began, rows, broken)


def _is_going_or_was_killed(settings: Settings) -> bool:
    """Whether a run shows its progress or holds the lock: one that was killed left that behind, which the next one removes."""
    return (Path(settings.out) / progress.NAME).exists() or is_described(settings.warehouse)


def plan(settings: Settings) -> dict[str, Any]:
    """{"files": {"new", "known", "n_bytes", "rejected": {reason: n}}, "reads": [paths], "stages": [{"stage", "would", "why"}]}.
    Raises InputError for what the settings name and is not there. Writes nothing, and takes no lock."""
    files, rejected = discovered(settings)
    try:
        with Store.published(settings.warehouse) as store:
            ledger = Ledger(store, files)
            new = [file for file in files if not ledger.holds(file)]
            rows: dict[str, dict[str, str]] = {}
            for stage in STAGES:
                above = next((name for name in stage.after if rows[name]["would"] in ("compute", "check")), None)
                if stage.last:
                    would, why = "look", "it counts what the others left"
                elif stage.always:
                    would, why = ("compute", "there are files that it has not read") if new else ("look", "it looks each time")
                elif changed := engine.why_computed(store, stage, settings):
                    would, why = "compute", changed
                elif above:
                    would, why = "check", f"{above} comes before it: it is computed where that gives other rows"
                else:
                    would, why = "keep", "it was computed from the same"
                rows[stage.name] = {"stage": stage.name, "would": would, "why": why}
    except Missing:
        why = "nothing was built here yet"
        new, rows = files, {stage.name: {"stage": stage.name, "would": "compute", "why": why} for stage in STAGES}
    return {
        "files": {"new": len(new), "known": len(files) - len(new), "n_bytes": sum(file.stamp().n_bytes for file in new),
                  "rejected": dict(sorted(Counter(rejected["reason"]).items()))},
        "reads": [file.relative for file in new], "stages": list(rows.values())}
