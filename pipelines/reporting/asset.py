"""The report as an asset: written after each whole run, from the warehouse that the run published."""

import polars as pl
from dagster import AssetExecutionContext, BackfillPolicy, MaterializeResult, MetadataValue, asset

from pipelines.dagster_assets.assets import POOL, days, key_of, made_by, owners
from pipelines.dagster_assets.pictures import markdown, shown_bars
from pipelines.inspection.views import StoreSource, stages, totals
from pipelines.reporting import report as write
from pipelines.resources import SettingsResource
from warehouse.store import Store


@asset(
    name="report", group_name="report", deps=[key_of("mart.decisions")], partitions_def=days, pool=POOL, kinds={"html"},
    backfill_policy=BackfillPolicy.single_run(), owners=owners(), freshness_policy=made_by())
def report(context: AssetExecutionContext, settings: SettingsResource) -> MaterializeResult[None]:
    """One page on what was made of the logs: OUT/report/index.html."""
    current = settings.settings()
    with Store.published(current.warehouse) as store:
        source = StoreSource(store)
        page, listed, counts = write(store, current.report), stages(source), totals(source)
    rows = pl.DataFrame([{"stage": row["stage"], "kept": row["kept"], "rejected": row["n_rejected"]} for row in listed],
                        schema={"stage": pl.String, "kept": pl.Int64, "rejected": pl.Int64})
    return MaterializeResult(metadata={
        "page": MetadataValue.path(str(page.absolute())), "bytes": MetadataValue.int(page.stat().st_size),
        "picture": shown_bars("what each stage kept", [(row["stage"], row["kept"], True) for row in listed]),
        "funnel": MetadataValue.md(markdown(rows)),
        **{name: MetadataValue.int(n) for name, n in counts.items() if isinstance(n, int)}})
