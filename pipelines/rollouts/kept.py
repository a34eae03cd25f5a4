"""What rollouts leave on disk: two files that are only ever added to, a line at a time, each on disk before it is told.

`trajectories.jsonl` holds an ATIF trajectory a line, `groups.jsonl` a closed group a line. A process that is killed loses the
episodes that were running and nothing else: a line that was not written to its end is cut off by the next one, and every
episode is known by its id, so none is there twice. One writer at a time.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from filelock import FileLock, Timeout

from env_builder.runtime.trajectory import OWN
from pipelines import progress
from pipelines.rollouts.groups import Group
from warehouse.errors import Busy

TRAJECTORIES, GROUPS = "trajectories.jsonl", "groups.jsonl"
Row = dict[str, Any]


class Kept:
    """The folder of an environment's rollouts, open for writing."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._lock = FileLock(folder / ".lock")
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise Busy("another rollout writes there", str(folder), "wait for it, or name another folder with --out") from None
        self.episodes: dict[str, Row] = {about["episode_id"]: about for about in map(summary, trajectories(folder))}
        """What is known of each episode but its steps and checks, by its id."""
        self.groups: dict[str, Row] = {row["group_id"]: row for row in lines(folder / GROUPS)}
        self._files = {name: _adding(folder / name) for name in (TRAJECTORIES, GROUPS)}

    def add(self, trajectory: Row) -> bool:
        """Keep an episode; False where it is there already."""
        about = summary(trajectory)
        if about["episode_id"] in self.episodes:
            return False
        self._write(TRAJECTORIES, trajectory)
        self.episodes[about["episode_id"]] = about
        return True

    def close_group(self, group: Group) -> None:
        """Keep a closed group."""
        self._write(GROUPS, group._asdict())
        self.groups[group.group_id] = group._asdict()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        for file in self._files.values():
            os.close(file)
        self._lock.release()

    def _write(self, name: str, row: Row) -> None:
        data = json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass") + b"\n"
        view = memoryview(data)
        while view:
            view = view[os.write(self._files[name], view):]
        os.fsync(self._files[name])


def summary(trajectory: Row) -> Row:
    """What is known of an episode but its steps and checks."""
    about = trajectory["extra"][OWN]
    return {"reward": None, **{name: value for name, value in about.items() if name != "checks"}}


def trajectories(folder: Path) -> Iterator[Row]:
    """The trajectories of a folder, as they were added, each id once."""
    known = set()
    for row in lines(folder / TRAJECTORIES):
        episode_id = row["extra"][OWN]["episode_id"]
        if episode_id not in known:
            known.add(episode_id)
            yield row


def lines(path: Path) -> Iterator[Row]:
    """Objects of a file that is added to; a line that is damaged is passed over with a warning, the last one in silence."""
    if not path.is_file():
        return
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                row = json.loads(line)
            except ValueError:
                row = None
            if isinstance(row, dict) and line.endswith(b"\n"):
                yield row
            elif line.endswith(b"\n"):
                progress.warn("rollout", f"{path}, line {number}: this is no JSON object; what it held is played again.")


def _adding(path: Path) -> int:
    """The file, open at its end, without a last line that was not written to its end."""
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
