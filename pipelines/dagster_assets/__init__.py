"""Dagster's side: assets, checks, schedules, sensors, alerts and the release."""
