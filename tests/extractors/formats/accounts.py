"""The law that nothing vanishes, as sentences on a reading that broke it."""

from __future__ import annotations

from typing import get_args

import polars as pl

from extractors.reading import Reading
from warehouse.records import Event, EventKind, frame_schema


def accounted_for(log_reading: Reading) -> set[str]:
    """Ids of the records that became an event, or have a decision."""
    text = log_reading.records.join(log_reading.decisions.drop_nulls("line"), on=["file_id", "line"], how="semi")
    return {*log_reading.events["record_id"], *text["record_id"]}


def problems_of(log_reading: Reading) -> list[str]:
    """Return records that became nothing, and events that are none; empty where all is well.

    Each record becomes an event, a declaration or a decision; a file without records has a decision itself.
    """
    problems = []
    silent = log_reading.records.filter(~pl.col("record_id").is_in(list(accounted_for(log_reading))))
    if silent.height and not log_reading.declarations.height:
        lines = silent["line"].to_list()[:9]
        problems.append(f"{silent.height} of {log_reading.records.height} records became nothing: lines {lines}")
    if not log_reading.records.height and not log_reading.decisions.height:
        problems.append("the file became nothing")
    if not log_reading.events["event_id"].is_unique().all():
        problems.append("two events have one id")
    if dict(log_reading.events.schema) != frame_schema(Event):
        problems.append("the events are not shaped as core.events")
    if strange := set(log_reading.events["kind"]) - set(get_args(EventKind)):
        problems.append(f"there are events of kinds that are none: {sorted(map(str, strange))}")
    return problems
