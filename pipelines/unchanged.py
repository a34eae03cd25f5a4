"""The second run over the same logs, answered from the published copy: no lock, no Dagster, at once.

Says yes only where every file is in the ledger, every stage is up to date, what was written still stands, and the published
copy is the newest; in any doubt the run goes its whole way.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from pipelines import engine, privacy, rules
from pipelines.ingesting import all_read
from pipelines.settings import Settings
from pipelines.stages import STAGES
from warehouse.catalogs import catalog_of
from warehouse.errors import StoreError
from warehouse.store import Store


class Ran(NamedTuple):
    """What a run did."""

    seconds: float
    stages: list[dict[str, Any]]
    """{"stage", "computed", "seconds"} in order."""
    broken: list[str]
    """Names of the checks that do not hold."""


def unchanged(settings: Settings) -> Ran | None:
    """What a run would say that has nothing to do; None where there may be something to do."""
    began = time.perf_counter()
    if not catalog_of(settings.warehouse).is_published():
        return None
    try:
        with Store.published(settings.warehouse) as store:
            if not engine.up_to_date(store, STAGES, settings) or not all_read(store, settings):
                return None
            privacy.refuse_otherwise(store, settings)
            broken = rules.broken(store)
    except StoreError:
        return None
    seconds = time.perf_counter() - began
    return Ran(seconds, [{"stage": stage.name, "computed": False, "seconds": 0.0} for stage in STAGES], broken)
