"""Datasets of JSON lines: one file a side, written row by row, and verdicts on what was left.

In: what a form makes of one side. Out: `NAME.train.jsonl`, `NAME.validation.jsonl`, `NAME.held_out.jsonl`, empty where a
side has no rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from env_builder.exports.conversations import Episode, conversations, dumps, left
from env_builder.exports.exporter import Exported, Exporter, Source
from warehouse.records import SIDES

Row = dict[str, Any]
Left = list[tuple[str, str]]
"""(session or task, reason) of what a form left out."""


def write(name: str, out: Path, source: Source, rows: Callable[[Source, str, Left], Iterator[Row]]) -> Exported:
    """Write what `rows(source, side, left)` gives for each side; it adds to `left` what it leaves out."""
    missed: Left = []
    paths = []
    for side in SIDES:
        path = out / f"{name}.{side}.jsonl"
        with path.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(dumps(row) + "\n" for row in rows(source, side, missed))
        paths.append(path)
    return Exported(sorted(paths), left(missed))


def form(name: str, rows: Callable[[Source, str, Left], Iterator[Row]], by_default: bool = False) -> Exporter:
    """An exporter of such a form."""
    return Exporter(name, lambda out, source: write(name, out, source, rows), by_default)


def told(source: Source, side: str, missed: Left, wanted: Callable[[Episode], str | None]) -> Iterator[Episode]:
    """The episodes of a side that a chat format can tell and that `wanted` gives no reason against; the others are missed."""
    for episode in conversations(source, (side,)):
        reason = wanted(episode) or episode.left
        if reason is None:
            yield episode
        else:
            missed.append((episode.about["session_id"], reason))


def good(episode: Episode) -> str | None:
    """Why the episode is not known to be good, a reason; None: it is."""
    return None if episode.about["good"] else "not_known_good"


def labelled(episode: Episode) -> str | None:
    """Why the episode is neither good nor bad, a reason; None: it is one of them."""
    return None if episode.about["good"] or is_bad(episode.about) else "no_label"


def is_bad(about: Row) -> bool:
    """Has the episode more likely failed than not, by its reward or its probability of success?"""
    return not about["good"] and about["final"] is not None and (about["label_source"] == "rubric" or about["final"] < 0.5)
