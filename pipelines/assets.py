"""The assets: one per table, made from the list of stages (pipelines/stages.py).

A stage that fills several tables by one call is one operation with several assets. Every operation takes the pool of the
warehouse's writer and the lock beside it, so that neither two steps nor two programs write at once.

**Partitions.** Ingestion of day D takes every file that is not in the ledger and whose day is D or earlier, or that has no
time: a late file for an old day is taken by the next run. The stages above compute from the whole warehouse, so any
partition of them gives the same tables, and a backfill of many days is one run.
"""

import json
import os
from collections.abc import Iterator

import polars as pl
from dagster import (
    AssetExecutionContext,
    AssetKey,
    AssetsDefinition,
    AssetSpec,
    BackfillPolicy,
    DailyPartitionsDefinition,
    Failure,
    MaterializeResult,
    MetadataValue,
    RetryRequested,
    multi_asset,
)

from pipelines.engine import Report, Stage, carry_out
from pipelines.resources import SettingsResource
from pipelines.settings import Settings
from pipelines.stages import STAGES
from warehouse.errors import Busy, TraceroomError, Unavailable

POOL = "warehouse_writer"
days = DailyPartitionsDefinition(
    start_date=os.environ.get("TRACEROOM_FIRST_DAY", "2015-01-01"), timezone="UTC", end_offset=1)
"""Days of logs; today is one of them."""
RETRIES = 2
"""How often a step is tried again after something outside failed: 1 s and 2 s later."""
_SAMPLE_WIDTH = 80


def key_of(table: str) -> AssetKey:
    """Asset of a table: `core.sessions` is `core/sessions`."""
    return AssetKey(table.split("."))


def _asset_of(stage: Stage) -> AssetsDefinition:
    inputs = [key_of(table) for other in STAGES if other.name in stage.after for table in other.tables]
    specs = [
        AssetSpec(key_of(table), deps=inputs, group_name=stage.name, description=stage.work.__doc__, kinds={"duckdb"})
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
    """The stage's report. What may get better by itself is tried again; all else fails at once, with its sentence."""
    try:
        return carry_out(stage, settings, lambda who: context.log.info(f"waiting for {who}"))
    except (Busy, Unavailable, OSError) as error:
        if context.retry_number < RETRIES:
            raise RetryRequested(RETRIES, seconds_to_wait=2**context.retry_number) from error
        raise Failure(str(error), allow_retries=False) from _said(error)
    except TraceroomError as error:
        raise Failure(str(error), allow_retries=False) from error


def _said(error: TraceroomError | OSError) -> TraceroomError:
    if isinstance(error, TraceroomError):
        return error
    mend = "make room or give access, then run again: what was committed stays"
    return Unavailable(error.strerror or str(error), str(error.filename or "a file of this run"), mend)


def _results(report: Report) -> Iterator[MaterializeResult[None]]:
    figures = {name: MetadataValue.int(n) for name, n in report.counts.items()}
    for table, look in report.tables.items():
        yield MaterializeResult(asset_key=key_of(table), metadata={
            "dagster/row_count": MetadataValue.int(look.n_rows), "computed": MetadataValue.bool(report.fresh),
            "seconds": MetadataValue.float(round(report.seconds, 3)), "funnel": MetadataValue.md(markdown(report.funnel)),
            "sample": MetadataValue.md(markdown(look.sample)), **figures})


def markdown(frame: pl.DataFrame) -> str:
    """A frame as a markdown table, long cells cut."""
    if frame.is_empty():
        return "none"
    lines = ["| " + " | ".join(frame.columns) + " |", "|" + " --- |" * frame.width]
    lines += ["| " + " | ".join(_cell(value) for value in row) + " |" for row in frame.iter_rows()]
    return "\n".join(lines)


def _cell(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False) if isinstance(value, list) else "" if value is None else str(value)
    text = text.replace("|", "\\|").replace("\n", " ")
    return text if len(text) <= _SAMPLE_WIDTH else text[: _SAMPLE_WIDTH - 1] + "…"


assets = [_asset_of(stage) for stage in STAGES]
