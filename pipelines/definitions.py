"""What Dagster loads: `dagster dev`, or any launcher, by `[tool.dagster]` in pyproject.toml."""

from __future__ import annotations

from dagster import Definitions

from pipelines.dagster_assets.alerts import alerts
from pipelines.dagster_assets.assets import assets, checks, release, report
from pipelines.dagster_assets.automation import everything, inbox, nightly
from pipelines.dagster_assets.live_sources import live_sources
from pipelines.dagster_assets.orphans import end_with_parent
from pipelines.dagster_assets.settings_resource import SettingsResource

end_with_parent()

defs = Definitions(
    assets=[live_sources, *assets, report, release], asset_checks=checks, jobs=[everything], schedules=[nightly],
    sensors=[inbox, alerts],
    resources={"settings": SettingsResource()})
