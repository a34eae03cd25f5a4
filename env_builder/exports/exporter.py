"""What every exporter is: a name and a function to files, from tables (`Exporter`) or from a built room (`RoomExporter`).

A dataset exporter gets `Source`, a room exporter `Kit`; both write into a folder, and say which files they made and what
they left out. The same tables and the same room give the same bytes: rows are sorted, and no clock, host or path is
written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import polars as pl

from env_builder.exports.kit import Kit

WAYS: dict[str, pl.DataType] = {
    "task_id": pl.String(), "family_id": pl.String(), "split": pl.String(), "goal": pl.String(), "opening": pl.String(),
    "rubric_id": pl.String(), "solution": pl.String()}
"""Of a published task: its opening as JSON messages, the digest of its rubric, and its known-good steps as JSON."""


class Source(NamedTuple):
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
    (JSON list of checks with their verdicts) and `cut_off` (did the episode end before it was over?)."""
    marks: pl.DataFrame | None = None
    """What else is known of turns, columns of `steps.MARKS` that it has: tokens, log-probabilities, state, tier."""
    ways: pl.DataFrame | None = None
    """The published tasks, columns of `WAYS`; None where nothing was published."""
    families: Mapping[str, str] = MappingProxyType({})
    """Ids of families by their names."""
    discount: float = 1.0
    """Of a reward for each act that comes before it."""
    pad_to: int = 0
    """Steps that each episode is padded to where a form knows of padding; 0: none is."""
    privacy_policy: str | None = None
    """Version of the rules by which personal data was taken out; None: none was."""


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
    by_default: bool = True
    """Does every run write it? What takes long, or repeats what others hold, is written where somebody asks for it."""


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
        .with_columns(pl.col("session_id").is_in(pl.col("good_session_ids")).fill_null(False).alias("good"))
        .drop("good_session_ids")
        .sort("session_id", "task_id")
    )
