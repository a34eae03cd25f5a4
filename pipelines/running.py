"""The whole job in this process: the same assets, the same order, on an instance of Dagster that forgets
(or on yours, where DAGSTER_HOME is set), and the published copy of the warehouse at the end."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any

from dagster import AssetCheckSeverity, DagsterExecutionInterruptedError, ExecuteInProcessResult, Failure, materialize
from dagster._core.errors import DagsterAssetCheckFailedError

from pipelines import progress
from pipelines.assets import assets, days
from pipelines.checks import checks
from pipelines.instance import instance, quiet
from pipelines.resources import SettingsResource
from pipelines.rules import RULES, offenders
from pipelines.settings import Settings
from pipelines.unchanged import Ran
from warehouse.errors import GateFailed, TraceroomError
from warehouse.lock import writing
from warehouse.store import Store

_SHOWN = 5


def run(settings: Settings, waiting: Callable[[str], None] | None = None) -> Ran:
    """Carry out every stage that is not up to date. Holds the writer's lock from beginning to end; where another run
    has it, `waiting` is told who. Raises TraceroomError; what was committed before stays, and the next run goes on."""
    began = time.perf_counter()
    with writing(settings.warehouse, f"a run over {', '.join(settings.logs) or settings.configuration}", waiting):
        result = _materialized(settings)
    return Ran(time.perf_counter() - began, _stages(result), _broken(result))


def _materialized(settings: Settings) -> ExecuteInProcessResult:
    with instance() as found:
        try:
            return materialize(
                [*assets, *checks], instance=found, partition_key=days.get_last_partition_key(),
                resources={"settings": SettingsResource(document=settings.model_dump_json())},
                run_config=quiet())
        except DagsterAssetCheckFailedError as blocked:
            raise _blocked(settings, str(blocked)) from blocked
        except Failure as failure:
            if isinstance(failure.__cause__, TraceroomError):
                raise failure.__cause__ from failure
            raise
        except DagsterExecutionInterruptedError as interrupted:
            raise KeyboardInterrupt from interrupted


def _blocked(settings: Settings, told: str) -> GateFailed:
    """The error of a run that a rule stopped, after its rows were said."""
    names = re.findall(r": (\w+)$", told, re.MULTILINE)
    with Store.open(settings.warehouse) as store:
        for rule in (rule for rule in RULES if rule.name in names):
            rows = offenders(store, rule)
            shown = "; ".join(str(row) for row in rows.head(_SHOWN).to_dicts())
            progress.warn("checks", f"{rule.name}: {rule.says} {rows.height:,} rows speak against it: {shown}")
    return GateFailed(
        f"checks that do not hold: {', '.join(sorted(names))}; nothing is built from these tables, and what was published "
        "stays", str(settings.warehouse), "see docs/pipeline.md")


def _stages(result: ExecuteInProcessResult) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for event in result.get_asset_materialization_events():
        metadata = event.materialization.metadata
        found.setdefault(str(event.step_key), {
            "stage": event.step_key, "computed": metadata["computed"].value, "seconds": metadata["seconds"].value})
    return list(found.values())


def _broken(result: ExecuteInProcessResult) -> list[str]:
    """Names of the checks that do not hold; a warning is none of them."""
    return sorted(check.check_name for check in result.get_asset_check_evaluations()
                  if not check.passed and check.severity is AssetCheckSeverity.ERROR)
