"""Pull the live sources of the configuration before the night's logs are read: one asset for all of them, one operation.

TRACEROOM_PULL says which: `on` for all, or names with commas between; without it nothing is pulled. A source that fails is one
row of the check `every_source_was_pulled`, a warning, and stops nothing: what it gave until then is read, and the next night
continues it.

A pull goes from where the last one ended to the present, whatever the day of the partition: a run over one day, over many (a
backfill is one run) and a run that is repeated pull the same. Extraction then takes what belongs to its days. A run that
the inbox's sensor asked for pulls nothing: what it would pull would ask for another one.
"""

import os
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import dagster as dg
import polars as pl

from extractors.configuration import Source
from pipelines.dagster_assets.assets import LIVE_SOURCES, days, made_by, owners
from pipelines.dagster_assets.pictures import markdown, metadata_of_check
from pipelines.dagster_assets.settings_resource import SettingsResource
from pipelines.settings import Settings
from pipelines.sources.accounts import folder_of, pulled_sources
from pipelines.sources.pulling import Bounds, pull
from warehouse.errors import TraceroomError

POOL = "live_sources"
CHECK = "every_source_was_pulled"


class PulledSource(NamedTuple):
    """What became of one source; a row of the asset's table."""

    source: str
    platform: str
    records: int
    pages: int
    problem: str
    """Why it could not be pulled; empty where it was."""


def chosen() -> tuple[str, ...] | None:
    """Return the names that TRACEROOM_PULL lists, none of them for all sources; None where nothing is pulled."""
    text = os.environ.get("TRACEROOM_PULL", "").strip()
    if text in ("", "off"):
        return None
    return () if text == "on" else tuple(name.strip() for name in text.split(",") if name.strip())


def pull_each(settings: Settings, names: tuple[str, ...], tell: Callable[[str], None]) -> list[PulledSource]:
    """Pull the sources called `names`, else all; one that fails does not stop the others."""
    try:
        sources = pulled_sources(settings.configuration or "traceroom.toml")
    except TraceroomError as error:
        return [PulledSource("the configuration", "", 0, 0, str(error))]
    there = {source.name for source in sources}
    unknown = [PulledSource(name, "", 0, 0, f"TRACEROOM_PULL names the source {name!r}, which the configuration does not have")
               for name in names if name not in there]
    return unknown + [_pulled(source, settings, tell) for source in sources if not names or source.name in names]


def _pulled(source: Source, settings: Settings, tell: Callable[[str], None]) -> PulledSource:
    platform = source.pull.platform if source.pull else ""
    try:
        done = pull(source, Bounds(), lambda why: tell(f"{source.name}: {why}"))
        folder = folder_of(source).resolve()
    except (TraceroomError, OSError) as error:
        return PulledSource(source.name, platform, 0, 0, str(error))
    is_read = any(folder.is_relative_to(Path(place).resolve()) for place in settings.logs if "://" not in place)
    problem = "" if is_read or not settings.logs else (
        f"it is pulled into {folder}, which is below no folder of TRACEROOM_INBOX: no run reads it")
    return PulledSource(source.name, platform, done.n_records, done.n_pages, problem)


@dg.multi_asset(
    name="live_sources", partitions_def=days, backfill_policy=dg.BackfillPolicy.single_run(), pool=POOL,
    specs=[dg.AssetSpec(
        LIVE_SOURCES, group_name="sources", owners=owners(), freshness_policy=made_by(),
        description="Logs of the configuration's live sources, pulled into the inbox before a night's run, where "
                    "TRACEROOM_PULL is set (docs/howto/sources.md).")],
    check_specs=[dg.AssetCheckSpec(CHECK, asset=LIVE_SOURCES, description="Each live source was pulled to the present.")])
def live_sources(
    context: dg.AssetExecutionContext, settings: SettingsResource
) -> Iterator[dg.MaterializeResult[None] | dg.AssetCheckResult]:
    """Pull what is new from all live sources."""
    names = chosen()
    is_by_inbox = context.run.tags.get("traceroom/asked_by") == "inbox"
    began = datetime.now(UTC)
    rows = [] if names is None or is_by_inbox else pull_each(settings.settings(), names, context.log.info)
    for row in rows:
        if row.problem:
            context.log.error(f"{row.source}: {row.problem}")
    table = pl.DataFrame(rows, schema={name: pl.Int64 if name in ("records", "pages") else pl.String
                                       for name in PulledSource._fields}, orient="row")
    failed = table.filter(pl.col("problem") != "")
    state = "off (TRACEROOM_PULL)" if names is None else "left to the nightly run" if is_by_inbox else "pulled"
    yield dg.MaterializeResult(asset_key=LIVE_SOURCES, metadata={
        "state": dg.MetadataValue.text(state), "sources": dg.MetadataValue.md(markdown(table)),
        "n_sources": dg.MetadataValue.int(table.height), "n_failed": dg.MetadataValue.int(failed.height),
        "n_records": dg.MetadataValue.int(int(table["records"].sum())),
        "seconds": dg.MetadataValue.float((datetime.now(UTC) - began).total_seconds())})
    yield dg.AssetCheckResult(
        check_name=CHECK, asset_key=LIVE_SOURCES, passed=failed.is_empty(), severity=dg.AssetCheckSeverity.WARN,
        metadata=metadata_of_check(failed))
