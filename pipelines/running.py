"""The whole job in this process: the same assets, the same order, on an instance of Dagster that forgets
(or on yours, where DAGSTER_HOME is set), and the published copy of the warehouse at the end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from dagster import AssetCheckSeverity, DagsterExecutionInterruptedError, ExecuteInProcessResult, Failure, materialize

from pipelines.assets import assets, days
from pipelines.checks import checks
from pipelines.instance import instance, quiet
from pipelines.resources import SettingsResource
from pipelines.settings import Settings
from pipelines.unchanged import Ran
from warehouse.errors import TraceroomError
from warehouse.lock import writing


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
        except Failure as failure:
            if isinstance(failure.__cause__, TraceroomError):
                raise failure.__cause__ from failure
            raise
        except DagsterExecutionInterruptedError as interrupted:
            raise KeyboardInterrupt from interrupted


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
