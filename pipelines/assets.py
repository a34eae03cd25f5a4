"""The assets: one per table, made from the list of stages (pipelines/stages.py).

A stage that fills several tables by one call is one operation with several assets. Every operation takes the pool of the
warehouse's writer and the lock beside it, so that neither two steps nor two programs write at once.

**Partitions.** Ingestion of day D takes every file that is not in the ledger and whose day is D or earlier, or that has no
time: a late file for an old day is taken by the next run. The stages above compute from the whole warehouse, so any
partition of them gives the same tables, and a backfill of many days is one run.
"""

import os
from collections.abc import Iterator
from datetime import timedelta

from dagster import (
    AssetExecutionContext,
    AssetKey,
    AssetsDefinition,
    AssetSpec,
    BackfillPolicy,
    DagsterInvalidDefinitionError,
    DailyPartitionsDefinition,
    DataVersion,
    Failure,
    FreshnessPolicy,
    MaterializeResult,
    MetadataValue,
    RetryRequested,
    multi_asset,
)
from dagster._check import CheckError

from pipelines.engine import Report, Stage, carry_out
from pipelines.faults import passes, said
from pipelines.pictures import metadata_of
from pipelines.resources import SettingsResource
from pipelines.settings import Settings
from pipelines.stages import STAGES
from warehouse.errors import InputError, TraceroomError

POOL = "warehouse_writer"


def daily() -> DailyPartitionsDefinition:
    """Days of logs, from TRACEROOM_FIRST_DAY; today is one of them. Raises InputError."""
    told = os.environ.get("TRACEROOM_FIRST_DAY") or "2015-01-01"
    try:
        return DailyPartitionsDefinition(start_date=told, timezone="UTC", end_offset=1)
    except ValueError:
        raise InputError(f"{told!r} is no day", "TRACEROOM_FIRST_DAY", "write it as 2015-01-01") from None


days = daily()
"""Days of logs; today is one of them."""


def waits() -> tuple[float, ...]:
    """Seconds to wait before each further try of a step after a fault that may pass (TRACEROOM_RETRY_SECONDS)."""
    told = os.environ.get("TRACEROOM_RETRY_SECONDS", "1,2")
    try:
        return tuple(float(each) for each in told.split(",") if each.strip())
    except ValueError:
        raise InputError(f"{told!r} is no list of seconds", "TRACEROOM_RETRY_SECONDS", "give such as 10,60,300") from None


def owners() -> list[str]:
    """Whose the assets are: e-mail addresses and `team:NAME`, as TRACEROOM_OWNERS names them. Raises InputError."""
    found = [each.strip() for each in os.environ.get("TRACEROOM_OWNERS", "").split(",") if each.strip()]
    for each in found:
        try:
            AssetSpec("owned", owners=[each])
        except DagsterInvalidDefinitionError:
            raise InputError(f"{each!r} is neither an e-mail address nor a team", "TRACEROOM_OWNERS",
                             "give such as team:desk,ada@example.org") from None
    return found


def run_tags() -> dict[str, str]:
    """Tags of every run: TRACEROOM_RUN_TAGS, as `key=value` with commas between, and whose it is."""
    pairs = [each.partition("=") for each in os.environ.get("TRACEROOM_RUN_TAGS", "").split(",") if each.strip()]
    whose = {"traceroom/owners": ",".join(owners())} if owners() else {}
    return {**whose, **{key.strip(): value.strip() for key, _, value in pairs}}


def made_by() -> FreshnessPolicy:
    """What is made is made once in the day before this hour (TRACEROOM_FRESH_BY, a cron expression in UTC).

    Raises InputError.
    """
    told = os.environ.get("TRACEROOM_FRESH_BY") or "0 6 * * *"
    try:
        return FreshnessPolicy.cron(told, timedelta(hours=24))
    except CheckError:
        raise InputError(f"{told!r} is no cron expression of an hour of the day", "TRACEROOM_FRESH_BY",
                         "give such as 0 6 * * *, for six o'clock in UTC") from None


def key_of(table: str) -> AssetKey:
    """Asset of a table: `core.sessions` is `core/sessions`."""
    return AssetKey(table.split("."))


def _asset_of(stage: Stage) -> AssetsDefinition:
    inputs = [key_of(table) for other in STAGES if other.name in stage.after for table in other.tables]
    specs = [
        AssetSpec(
            key_of(table), deps=inputs, group_name=stage.name, description=stage.work.__doc__, kinds={"duckdb"},
            owners=owners(), tags={"layer": table.split(".")[0], "stage": stage.name}, freshness_policy=made_by())
        for table in stage.tables]

    @multi_asset(
        name=stage.name, specs=specs, partitions_def=days, backfill_policy=BackfillPolicy.single_run(), pool=POOL)
    def operation(context: AssetExecutionContext, settings: SettingsResource) -> Iterator[MaterializeResult[None]]:
        told = settings.settings()
        if told.until is None and not settings.document:
            told = told.model_copy(update={"until": context.partition_key_range.end})
        report = _carried_out(context, stage, told)
        yield from _results(report)

    return operation


def _carried_out(context: AssetExecutionContext, stage: Stage, settings: Settings) -> Report:
    """The stage's report. A fault that may pass is tried again; any other fails at once, with its sentence."""
    try:
        return carry_out(stage, settings, lambda who: context.log.info(f"waiting for {who}"))
    except (TraceroomError, OSError) as error:
        may_pass, pauses = passes(error), waits()
        if may_pass and context.retry_number < len(pauses):
            raise RetryRequested(len(pauses), seconds_to_wait=pauses[context.retry_number]) from error
        fault = "may pass by itself, and did not" if may_pass else "does not pass by itself"
        raise Failure(str(said(error)), {"fault": MetadataValue.text(fault)}, allow_retries=False) from said(error)


def _results(report: Report) -> Iterator[MaterializeResult[None]]:
    for table, look in report.tables.items():
        yield MaterializeResult(
            asset_key=key_of(table), metadata=metadata_of(report, table), data_version=DataVersion(look.version))


assets = [_asset_of(stage) for stage in STAGES]
