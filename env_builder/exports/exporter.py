"""What every exporter is: a name and a function to files, from tables (`Exporter`) or from a built room (`RoomExporter`).

A dataset exporter gets `Source`, a room exporter `Kit`; both write into a folder, and say which files they made and what they
left out. The same tables and the same room give the same bytes: rows are sorted, and no clock, host or path is written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import polars as pl

from env_builder.exports.kit import Kit


class Source(NamedTuple):
    """The tables of one environment."""

    environment: str
    """Name of the environment."""
    content_digest: str | None
    """Of the environment's content; None where none was published."""
    tasks: pl.DataFrame
    """Frame of `Task`: the tasks to export. Sessions of no task are not exported."""
    turns: pl.DataFrame
    """Frame of `Turn`."""
    outcomes: pl.DataFrame
    """Frame of `Outcome`."""
    tools: pl.DataFrame
    """Frame of `Tool`."""
    grades: pl.DataFrame | None = None
    """Columns session_id, reward: what the published rubric gives the session's replay; wins over the outcome."""


class Exported(NamedTuple):
    """What an exporter did."""

    paths: list[Path]
    """Files written, sorted."""
    verdicts: pl.DataFrame
    """Frame of `Verdict`, stage `datasets`: sessions that it left out."""


@dataclass(frozen=True)
class Exporter:
    """An exporter of datasets, as the entry points of `traceroom.exports` name it."""

    name: str
    write: Callable[[Path, Source], Exported]
    """Writes into an existing folder."""


@dataclass(frozen=True)
class RoomExporter:
    """An exporter of a room to act in, as the entry points of `traceroom.exports` name it. Runs do not call it."""

    name: str
    write: Callable[[Path, Kit], Exported]
    """Writes into an existing folder. Paths of what it made may be folders."""


def members(tasks: pl.DataFrame) -> pl.DataFrame:
    """One row a session of a task: session_id, task_id, family, split, goal, service, good."""
    return (
        tasks.select("task_id", "family", "split", "goal", "service", "session_ids", "good_session_ids")
        .explode("session_ids")
        .rename({"session_ids": "session_id"})
        .drop_nulls("session_id")
        .with_columns(pl.col("session_id").is_in(pl.col("good_session_ids")).alias("good"))
        .drop("good_session_ids")
        .sort("session_id", "task_id")
    )
