"""Preferences, as DPO takes them (Rafailov et al. 2023): two acts in the same state of one task, a good session's and a
bad one's.

A row is {"prompt", "chosen": [act], "rejected": [act], "tools", "exact", "difference", "weight", "task_id",
"chosen_episode_id", "rejected_episode_id"}; what pairs are, and what they do not see: `pairs.py`. Rows stand by difference,
the smallest first: two calls of one tool that differ in a value teach most. `weight` is how likely both labels are right;
`chosen_episode_id` is null where the chosen act is of a verified solution that nobody logged. Left out, with a verdict:
sessions without a counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from env_builder.exports.conversations import dumps, functions, left
from env_builder.exports.exporter import Exported, Exporter, Source
from env_builder.exports.lines import Left, Row
from env_builder.exports.pairs import Pair, pairs
from warehouse.records import SIDES

Key = tuple[bool, int, str, str]


def _write(out: Path, source: Source) -> Exported:
    missed: Left = []
    paths = []
    for side in SIDES:
        path = out / f"dpo.{side}.jsonl"
        with path.open("wb") as file:
            _sorted(file, _rows(source, side, missed))
        paths.append(path)
    return Exported(sorted(paths), left(missed))


def _rows(source: Source, side: str, missed: Left) -> Iterator[tuple[Key, Row]]:
    tools = dumps(functions(source.tools))
    for pair in pairs(source, side, missed):
        key = (not pair.exact, pair.difference, pair.bad["task_id"], pair.bad["session_id"])
        yield key, {
            "prompt": pair.prompt, "chosen": [pair.chosen], "rejected": [pair.rejected],
            "tools": tools, "exact": pair.exact, "difference": pair.difference,
            "weight": _weight(pair), "task_id": pair.bad["task_id"], "chosen_episode_id": pair.good["session_id"],
            "rejected_episode_id": pair.bad["session_id"]}


def _weight(pair: Pair) -> float | None:
    weights = (pair.good["weight"], pair.bad["weight"])
    return None if None in weights else round(weights[0] * weights[1], 6)


def _sorted(file: IO[bytes], rows: Iterator[tuple[Key, Row]]) -> None:
    """Write the rows by their keys; what is in memory is a key and a place a row."""
    with TemporaryFile() as aside:
        places: list[tuple[Key, int, int]] = []
        begins = 0
        for key, row in rows:
            line = (dumps(row) + "\n").encode()
            aside.write(line)
            places.append((key, begins, len(line)))
            begins += len(line)
        for _, begins, length in sorted(places):
            aside.seek(begins)
            file.write(aside.read(length))


EXPORTER = Exporter("dpo", _write, by_default=False)
