"""What Dagster loads: `dagster dev`, or any launcher, by `[tool.dagster]` in pyproject.toml."""

from __future__ import annotations

from dagster import Definitions

from pipelines.alerts import alerts
from pipelines.assets import assets
from pipelines.checks import checks
from pipelines.publishing import release
from pipelines.reporting.asset import report
from pipelines.resources import SettingsResource
from pipelines.schedules import everything, nightly
from pipelines.sensors import inbox

defs = Definitions(
    assets=[*assets, report, release], asset_checks=checks, jobs=[everything], schedules=[nightly], sensors=[inbox, alerts],
    resources={"settings": SettingsResource()})
