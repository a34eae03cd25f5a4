"""What every exporter is: a name and a function to files, from tables (`Exporter`) or from a built room (`RoomExporter`).

A dataset exporter gets `Source`, a room exporter `Kit`; both write into a folder, and say which files they made and what
they left out. The same tables and the same room give the same bytes: rows are sorted, and no clock, host or path is
written.

Which exporters there are: the entry points of the group `traceroom.exports`, ours like anybody's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import polars as pl

from env_builder.exports.kit import Kit
from warehouse.errors import InputError, Missing

PUBLISHED_TASKS: dict[str, pl.DataType] = {
    "task_id": pl.String(), "family_id": pl.String(), "split": pl.String(), "goal": pl.String(), "opening": pl.String(),
    "rubric_id": pl.String(), "solution": pl.String()}
"""Of a published task: its opening as JSON messages, the digest of its rubric, and its known-good steps as JSON."""


class DatasetSource(NamedTuple):
    """The tables of one environment."""

    environment: str
    """Name of the environment."""
    content_digest: str | None
    """Of the environment's content; None where none was published."""
    tasks: pl.DataFrame
    """Frame of `Task`: the tasks to export. Sessions of no task are not exported."""
    turns: pl.DataFrame | pl.LazyFrame
    """Frame of `Turn`, in any order; lazy where there is more than memory should hold, best by side, task and session."""
    outcomes: pl.DataFrame
    """Frame of `Outcome`."""
    tools: pl.DataFrame
    """Frame of `Tool`."""
    grades: pl.DataFrame | None = None
    """Columns session_id, reward: what the published rubric gives the session's replay; wins over the outcome. May hold `parts`
    (JSON list of checks with their decisions) and `cut_off` (did the episode end before it was over?)."""
    marks: pl.DataFrame | None = None
    """What else is known of turns, columns of `steps.MARKS` that it has: tokens, log-probabilities, state, tier."""
    published: pl.DataFrame | None = None
    """The published tasks, columns of `PUBLISHED_TASKS`; None where nothing was published."""
    families: Mapping[str, str] = MappingProxyType({})
    """Ids of families by their names."""
    discount: float = 1.0
    """Of a reward for each act that comes before it."""
    pad_to: int = 0
    """Steps that each episode is padded to where a form knows of padding; 0: none is."""
    page_steps: pl.DataFrame | None = None
    """Frame of `SiteStepRow`: of a site, what its pages showed before each call; None where no pages are."""
    privacy_policy: str | None = None
    """Version of the rules by which personal data was taken out; None: none was."""


class Exported(NamedTuple):
    """What an exporter did."""

    paths: list[Path]
    """Files written, sorted."""
    decisions: pl.DataFrame
    """Frame of `Decision`, stage `datasets`: sessions that it left out."""


@dataclass(frozen=True)
class Exporter:
    """An exporter of datasets, as the entry points of `traceroom.exports` name it."""

    name: str
    write: Callable[[Path, DatasetSource], Exported]
    """Writes into an existing folder."""
    by_default: bool = True
    """Does every run write it? What takes long, or repeats what others hold, is written where somebody asks for it."""


@dataclass(frozen=True)
class RoomExporter:
    """An exporter of a room to act in, as the entry points of `traceroom.exports` name it. Runs do not call it."""

    name: str
    write: Callable[[Path, Kit], Exported]
    """Writes into an existing folder. Paths of what it made may be folders."""
    shows_calls: bool = False
    """Does it show calls that were made before the agent's first move? It takes tasks that start midway (`starts.py`)."""


def members(tasks: pl.DataFrame) -> pl.DataFrame:
    """One row a session of a task: session_id, task_id, family, split, goal, service, good."""
    return (
        tasks.select("task_id", "family", "split", "goal", "service", "session_ids", "succeeded_session_ids")
        .explode("session_ids")
        .rename({"session_ids": "session_id"})
        .drop_nulls("session_id")
        .with_columns(pl.col("session_id").is_in(pl.col("succeeded_session_ids")).fill_null(False).alias("good"))
        .drop("succeeded_session_ids")
        .sort("session_id", "task_id")
    )


GROUP = "traceroom.exports"


@cache
def registered() -> dict[str, Exporter | RoomExporter]:
    """All exporters by name."""
    exporters: dict[str, Exporter | RoomExporter] = {}
    for point in entry_points(group=GROUP):
        loaded = point.load()
        if not isinstance(loaded, Exporter | RoomExporter):
            raise InputError(
                "the entry point is no Exporter and no RoomExporter", f"{GROUP}: {point.name} = {point.value}",
                "name an instance of env_builder.exports.Exporter or RoomExporter there")
        exporters[loaded.name] = loaded
    return dict(sorted(exporters.items()))


def of_tables() -> dict[str, Exporter]:
    """Return the exporters of datasets by name."""
    return {name: exporter for name, exporter in registered().items() if isinstance(exporter, Exporter)}


def named(name: str) -> Exporter | RoomExporter:
    """Return the exporter called `name`; a miss lists what there is."""
    exporters = registered()
    if name not in exporters:
        raise Missing.named("exporter", name, exporters)
    return exporters[name]
