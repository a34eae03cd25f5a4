"""The nightly schedule: yesterday's partition, in one run over all assets."""

from __future__ import annotations

from dagster import AssetSelection, build_schedule_from_partitioned_job, define_asset_job

everything = define_asset_job(
    "everything", selection=AssetSelection.all(), description="Logs in, environments out.")
nightly = build_schedule_from_partitioned_job(
    everything, name="nightly", hour_of_day=2, minute_of_hour=30,
    description="At 02:30 UTC: the newest day, and every file that came late for an older one.")
