"""The report as an asset: written after each whole run, from the warehouse that the run published."""

from dagster import AssetExecutionContext, BackfillPolicy, MaterializeResult, MetadataValue, asset

from pipelines.assets import POOL, days, key_of, made_by, owners
from pipelines.reporting import report as write
from pipelines.resources import SettingsResource
from warehouse.store import Store


@asset(
    name="report", group_name="report", deps=[key_of("mart.verdicts")], partitions_def=days, pool=POOL, kinds={"html"},
    backfill_policy=BackfillPolicy.single_run(), owners=owners(), freshness_policy=made_by())
def report(context: AssetExecutionContext, settings: SettingsResource) -> MaterializeResult[None]:
    """One page on what was made of the logs: OUT/report/index.html."""
    told = settings.settings()
    with Store.published(told.warehouse) as store:
        page = write(store, told.report)
    return MaterializeResult(metadata={
        "page": MetadataValue.path(str(page.absolute())), "bytes": MetadataValue.int(page.stat().st_size)})
