"""The law that nothing vanishes, as sentences on a reading that broke it."""

from __future__ import annotations

from typing import get_args

import polars as pl

from extractors.reading import Reading
from warehouse.records import Event, EventKind, frame_schema


def accounted_for(found: Reading) -> set[str]:
    """Ids of the records that became an event, or have a verdict."""
    said = found.records.join(found.verdicts.drop_nulls("line"), on=["file_id", "line"], how="semi")
    return {*found.events["record_id"], *said["record_id"]}


def problems_of(found: Reading) -> list[str]:
    """Records that became nothing, and events that are none; empty where all is well.

    Each record becomes an event, a declaration or a verdict; a file without records has a verdict itself.
    """
    problems = []
    silent = found.records.filter(~pl.col("record_id").is_in(list(accounted_for(found))))
    if silent.height and not found.declarations.height:
        lines = silent["line"].to_list()[:9]
        problems.append(f"{silent.height} of {found.records.height} records became nothing: lines {lines}")
    if not found.records.height and not found.verdicts.height:
        problems.append("the file became nothing")
    if not found.events["event_id"].is_unique().all():
        problems.append("two events have one id")
    if dict(found.events.schema) != frame_schema(Event):
        problems.append("the events are not shaped as core.events")
    if strange := set(found.events["kind"]) - set(get_args(EventKind)):
        problems.append(f"there are events of kinds that are none: {sorted(map(str, strange))}")
    return problems
