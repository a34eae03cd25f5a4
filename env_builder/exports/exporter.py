"""What every exporter is: a name and a function from tables to files.

An exporter gets `Source`, writes into a folder, and says which files it made and which sessions it left out. The same
tables give the same bytes: rows are sorted, and no clock, host or path is written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import polars as pl


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
    """An exporter, as the entry points of `traceroom.exports` name it."""

    name: str
    write: Callable[[Path, Source], Exported]
    """Writes into an existing folder."""


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
