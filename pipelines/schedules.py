"""The job over all assets, and the nightly schedule: the newest day's partition in one run.

The schedule and the sensor of the inbox are off until somebody switches them on; TRACEROOM_AUTOMATION=on switches them on from
the start, for a deployment that nobody clicks in.
"""

from __future__ import annotations

import os

from dagster import (
    AssetSelection,
    DefaultScheduleStatus,
    build_schedule_from_partitioned_job,
    define_asset_job,
)

from pipelines.assets import run_tags

AUTOMATIC = os.environ.get("TRACEROOM_AUTOMATION") == "on"
everything = define_asset_job(
    "everything", selection=AssetSelection.all(), description="Logs in, environments out.",
    run_tags={"traceroom/asked_by": "hand", **run_tags()})
nightly = build_schedule_from_partitioned_job(
    everything, name="nightly", hour_of_day=2, minute_of_hour=30, tags={"traceroom/asked_by": "nightly", **run_tags()},
    default_status=DefaultScheduleStatus.RUNNING if AUTOMATIC else DefaultScheduleStatus.STOPPED,
    description="At 02:30 UTC: the newest day, and every file that came late for an older one.")
