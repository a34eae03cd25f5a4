"""The whole job in this process: every stage in order, the rules on its tables after each, the published copy of the warehouse
at the end.

Where DAGSTER_HOME is set, the assets are materialized on that instance. Else nobody would read what Dagster notes, and stages
are called without it (half the time of a run that finds little to do); where a fault comes that may pass, Dagster goes on: it
tries again.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from pipelines import progress
from pipelines.engine import Report, Stage, carry_out
from pipelines.faults import passes, said
from pipelines.rules import RULES, Rule, offenders
from pipelines.settings import Settings
from pipelines.stages import STAGES
from pipelines.unchanged import Ran
from warehouse.errors import GateFailed, TraceroomError
from warehouse.lock import writing
from warehouse.store import Store

if TYPE_CHECKING:
    from dagster import ExecuteInProcessResult

_SHOWN = 5


def run(settings: Settings, waiting: Callable[[str], None] | None = None) -> Ran:
    """Carry out every stage that is not up to date. Holds the writer's lock from beginning to end; where another run
    has it, `waiting` is told who. Raises TraceroomError; what was committed before stays, and the next run goes on."""
    began = time.perf_counter()
    with writing(settings.warehouse, f"a run over {', '.join(settings.logs) or settings.configuration}", waiting):
        stages, broken = _by_dagster(settings) if os.environ.get("DAGSTER_HOME") else _carried_out(settings)
    return Ran(time.perf_counter() - began, stages, broken)


def _carried_out(settings: Settings) -> tuple[list[dict[str, Any]], list[str]]:
    """What every stage did, and no rule that does not hold: the first one ends the run."""
    found: list[dict[str, Any]] = []
    try:
        for stage in STAGES:
            found.append(_told(carry_out(stage, settings, look=partial(_hold, stage))))
    except (TraceroomError, OSError) as error:
        if not passes(error):
            raise said(error) from error
        later, broken = _by_dagster(settings)
        return _joined(found, later), broken
    return found, []


def _told(report: Report) -> dict[str, Any]:
    return {"stage": report.stage, "computed": report.fresh, "seconds": round(report.seconds, 3)}


def _joined(before: Iterable[dict[str, Any]], later: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the stages did, of those that were done before as they were done then."""
    known = {stage["stage"]: stage for stage in before}
    return [known.get(stage["stage"], stage) for stage in later]


def _hold(stage: Stage, store: Store) -> None:
    """Raises GateFailed where a rule on the stage's tables does not hold."""
    broken = [rule for rule in RULES if rule.table in stage.tables and offenders(store, rule).height]
    if broken:
        raise _blocked(store, broken)


def _by_dagster(settings: Settings) -> tuple[list[dict[str, Any]], list[str]]:
    result = _materialized(settings)
    return _stages(result), _broken(result)


def _materialized(settings: Settings) -> ExecuteInProcessResult:
    from dagster import DagsterExecutionInterruptedError, Failure, materialize
    from dagster._core.errors import DagsterAssetCheckFailedError

    from pipelines.assets import assets, days
    from pipelines.checks import checks
    from pipelines.instance import instance, quiet
    from pipelines.resources import SettingsResource

    with instance() as found:
        try:
            return materialize(
                [*assets, *checks], instance=found, partition_key=days.get_last_partition_key(),
                resources={"settings": SettingsResource(document=settings.model_dump_json())},
                run_config=quiet())
        except DagsterAssetCheckFailedError as blocked:
            names = re.findall(r": (\w+)$", str(blocked), re.MULTILINE)
            with Store.open(settings.warehouse) as store:
                raise _blocked(store, [rule for rule in RULES if rule.name in names]) from blocked
        except Failure as failure:
            if isinstance(failure.__cause__, TraceroomError):
                raise failure.__cause__ from failure
            raise
        except DagsterExecutionInterruptedError as interrupted:
            raise KeyboardInterrupt from interrupted


def _blocked(store: Store, broken: list[Rule]) -> GateFailed:
    """The error of a run that a rule stopped, after its rows were said."""
    for rule in broken:
        rows = offenders(store, rule)
        shown = "; ".join(str(row) for row in rows.head(_SHOWN).to_dicts())
        progress.warn("checks", f"{rule.name}: {rule.says} Rows against it: {rows.height:,}: {shown}")
    names = ", ".join(sorted(rule.name for rule in broken))
    return GateFailed(
        f"checks that do not hold: {names}; nothing is built from these tables, and what was published stays",
        str(store.path), "see docs/pipeline.md")


def _stages(result: ExecuteInProcessResult) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for event in result.get_asset_materialization_events():
        metadata = event.materialization.metadata
        found.setdefault(str(event.step_key), {
            "stage": event.step_key, "computed": metadata["computed"].value, "seconds": metadata["seconds"].value})
    return list(found.values())


def _broken(result: ExecuteInProcessResult) -> list[str]:
    """Names of the checks that do not hold; a warning is none of them."""
    from dagster import AssetCheckSeverity

    return sorted(check.check_name for check in result.get_asset_check_evaluations()
                  if not check.passed and check.severity is AssetCheckSeverity.ERROR)
