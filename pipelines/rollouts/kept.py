"""The files of rollouts: two append-only files, each line on disk before it is reported.

`trajectories.jsonl` has an ATIF trajectory per line, `groups.jsonl` a closed group per line. A process that is killed loses
only the episodes that were running: the next writer truncates an unfinished line, and an episode's id keeps it from being
added twice. One writer at a time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Self

from filelock import FileLock, Timeout

from env_builder.runtime.admission import is_well_formed, well_formed
from env_builder.runtime.trajectory import OWN
from pipelines import progress
from pipelines.durable_files import write_all
from pipelines.rollouts.orders import Group
from warehouse.errors import Busy

TRAJECTORIES, GROUPS = "trajectories.jsonl", "groups.jsonl"
Row = dict[str, Any]


def _reject_constant(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


DECODER = json.JSONDecoder(parse_constant=_reject_constant)


class Kept:
    """The folder of an environment's rollouts, open for writing."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._lock = FileLock(folder / ".lock")
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise Busy("another rollout writes to this folder", str(folder),
                       "wait for it, or name another folder with --out") from None
        self.episodes: dict[str, Row] = {about["episode_id"]: about for about in map(summary, trajectories(folder))}
        """Each episode without its steps and checks, by its id."""
        self.groups: dict[str, Row] = {row["group_id"]: row for row in lines(folder / GROUPS)}
        self._files = {name: _adding(folder / name) for name in (TRAJECTORIES, GROUPS)}

    def add(self, trajectory: Row) -> bool:
        """Append an episode; False if it is stored already."""
        about = summary(trajectory)
        if about["episode_id"] in self.episodes:
            return False
        self._write(TRAJECTORIES, trajectory)
        self.episodes[about["episode_id"]] = about
        return True

    def close_group(self, group: Group) -> None:
        """Append a closed group."""
        self._write(GROUPS, group._asdict())
        self.groups[group.group_id] = group._asdict()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for file in self._files.values():
            os.close(file)
        self._lock.release()

    def _write(self, name: str, row: Row) -> None:
        line = json.dumps(well_formed(row), ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"
        write_all(self._files[name], line.encode())
        os.fsync(self._files[name])


def summary(trajectory: Row) -> Row:
    """Return an episode without its steps and checks."""
    about = trajectory["extra"][OWN]
    return {"reward": None, **{name: value for name, value in about.items() if name != "checks"}}


def trajectories(folder: Path) -> Iterator[Row]:
    """Yield the trajectories of a folder, as they were added, each episode once."""
    return distinct(lines(folder / TRAJECTORIES))


def distinct(rows: Iterable[Row]) -> Iterator[Row]:
    """Yield each episode once."""
    episode_ids = set()
    for row in rows:
        episode_id = row["extra"][OWN]["episode_id"]
        if episode_id not in episode_ids:
            episode_ids.add(episode_id)
            yield row


def lines(path: Path) -> Iterator[Row]:
    """Yield the objects of an append-only file; skip a damaged line with a warning, and an unfinished last line silently."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                text = line.decode("utf-8", "surrogatepass")  # versions up to 0.1 wrote half characters too
                row = well_formed(DECODER.decode(text)) if not is_well_formed(text) else DECODER.decode(text)
            except (ValueError, RecursionError):
                row = None
            if isinstance(row, dict) and line.endswith(b"\n"):
                yield row
            elif line.endswith(b"\n"):
                progress.warn("rollout", f"{path}, line {number}: this is no JSON object; its episode is played again.")


def _adding(path: Path) -> int:
    """Open the file at its end, and truncate an unfinished last line."""
    file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    end = os.fstat(file).st_size
    kept = end
    while kept and os.pread(file, 1, kept - 1) != b"\n":
        begin = max(0, kept - 65536)
        kept = begin + os.pread(file, kept - begin, begin).rfind(b"\n") + 1
    if kept < end:
        os.ftruncate(file, kept)
    os.lseek(file, kept, os.SEEK_SET)
    return file
