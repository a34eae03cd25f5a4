"""New files in the inbox (TRACEROOM_INBOX: folders and prefixes of object stores) ask for a run.

What is new is told by content: the run's key is a digest over the contents of all files, so the same files under other
names, or written again, ask for nothing. The cursor keeps path, size and time of change with the digest of each file,
so that a file is read again only where they changed. A file still being written asks again when it is done.
Of an object nothing is read: what the store says of its content (the entity tag) stands for it.
"""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from dagster import (
    DefaultSensorStatus,
    RunRequest,
    SensorEvaluationContext,
    SensorResult,
    SkipReason,
    sensor,
)

from extractors import objects
from extractors.inventory import NEVER_READ
from pipelines.assets import days, run_tags
from pipelines.schedules import AUTOMATIC, everything
from pipelines.settings import inboxes
from warehouse.errors import InputError

_BLOCK = 1 << 20
Seen = dict[str, list[str]]
"""Place -> a mark that changes when it is written, and a digest of its content."""


@sensor(job=everything, minimum_interval_seconds=60,
        default_status=DefaultSensorStatus.RUNNING if AUTOMATIC else DefaultSensorStatus.STOPPED)
def inbox(context: SensorEvaluationContext) -> SensorResult | SkipReason:
    """Asks for a run of today's partition when the inbox holds content that it did not hold before."""
    known: Seen = json.loads(context.cursor) if context.cursor else {}
    seen: Seen = {}
    for place in inboxes():
        if not objects.is_url(place) and not Path(place).is_dir():
            return SkipReason(f"{place} is no folder: make it, or set TRACEROOM_INBOX to the one that logs arrive in")
        try:
            seen.update(_of_store(place) if objects.is_url(place) else _of_folder(place, known))
        except InputError as error:
            return SkipReason(str(error))
    contents, before = {digest for _, digest in seen.values()}, {digest for _, digest in known.values()}
    cursor, new = json.dumps(seen, sort_keys=True), len(contents - before)
    if not new:
        return SensorResult(skip_reason=f"nothing new among {len(seen)} files in {', '.join(inboxes())}", cursor=cursor)
    key = hashlib.sha256("\n".join(sorted(contents)).encode()).hexdigest()
    tags = {"traceroom/asked_by": "inbox", "traceroom/new_files": str(new), **run_tags()}
    return SensorResult(
        run_requests=[RunRequest(run_key=key, partition_key=days.get_last_partition_key(), tags=tags)], cursor=cursor)


def _never(name: str) -> bool:
    return any(part.startswith(".") or part.casefold() == NEVER_READ for part in Path(name).parts)


def _of_folder(place: str, known: Seen) -> Iterator[tuple[str, list[str]]]:
    for path in sorted(Path(place).rglob("*")):
        if not _never(str(path.relative_to(place))) and path.is_file():
            state = path.stat()
            mark = f"{state.st_size} {state.st_mtime_ns}"
            there = known.get(str(path))
            yield str(path), there if there and there[0] == mark else [mark, _digest(path)]


def _of_store(address: str) -> Iterator[tuple[str, list[str]]]:
    for each in objects.below(address):
        if not _never(each.relative):
            mark = " ".join(map(str, each.stamp))
            yield each.url, [mark, f"{each.stamp[0]} {each.content}" if each.content else f"{each.url} {mark}"]


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
