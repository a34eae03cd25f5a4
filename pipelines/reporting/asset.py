"""The report as an asset: written after each whole run, from the warehouse that the run published."""

import polars as pl
from dagster import AssetExecutionContext, BackfillPolicy, MaterializeResult, MetadataValue, asset

from pipelines.assets import POOL, days, key_of, made_by, owners
from pipelines.pictures import markdown, shown_bars
from pipelines.reporting import report as write
from pipelines.reporting.figures import funnel, totals
from pipelines.resources import SettingsResource
from warehouse.store import Store


@asset(
    name="report", group_name="report", deps=[key_of("mart.verdicts")], partitions_def=days, pool=POOL, kinds={"html"},
    backfill_policy=BackfillPolicy.single_run(), owners=owners(), freshness_policy=made_by())
def report(context: AssetExecutionContext, settings: SettingsResource) -> MaterializeResult[None]:
    """One page on what was made of the logs: OUT/report/index.html."""
    told = settings.settings()
    with Store.published(told.warehouse) as store:
        page, stages, counts = write(store, told.report), funnel(store), totals(store)
    rows = pl.DataFrame([{"stage": row["stage"], "kept": row["kept"], "left": row["n_left"]} for row in stages],
                        schema={"stage": pl.String, "kept": pl.Int64, "left": pl.Int64})
    return MaterializeResult(metadata={
        "page": MetadataValue.path(str(page.absolute())), "bytes": MetadataValue.int(page.stat().st_size),
        "picture": shown_bars("what each stage kept", [(row["stage"], row["kept"], True) for row in stages]),
        "funnel": MetadataValue.md(markdown(rows)),
        **{name: MetadataValue.int(n) for name, n in counts.items() if isinstance(n, int)}})
