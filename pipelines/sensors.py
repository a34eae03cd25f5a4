"""New files in the inbox folder (TRACEROOM_INBOX) ask for a run.

What is new is told by content: the run's key is a digest over the contents of all files, so the same files under other
names, or written again, ask for nothing. The cursor keeps path, size and time of change with the digest of each file,
so that a file is read again only where they changed. A file still being written asks again when it is done.
"""

import hashlib
import json
import os
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

from extractors.inventory import NEVER_READ
from pipelines.assets import days
from pipelines.schedules import everything

_BLOCK = 1 << 20


@sensor(job=everything, minimum_interval_seconds=60, default_status=DefaultSensorStatus.STOPPED)
def inbox(context: SensorEvaluationContext) -> SensorResult | SkipReason:
    """Asks for a run of today's partition when the inbox holds content that it did not hold before."""
    folder = Path(os.environ.get("TRACEROOM_INBOX", "inbox"))
    if not folder.is_dir():
        return SkipReason(f"{folder} is no folder: make it, or set TRACEROOM_INBOX to the one that logs arrive in")
    known: dict[str, list[str]] = json.loads(context.cursor) if context.cursor else {}
    seen = dict(_seen(folder, known))
    contents, before = {digest for _, digest in seen.values()}, {digest for _, digest in known.values()}
    cursor = json.dumps(seen, sort_keys=True)
    if not contents - before:
        return SensorResult(skip_reason=f"nothing new among {len(seen)} files in {folder}", cursor=cursor)
    key = hashlib.sha256("\n".join(sorted(contents)).encode()).hexdigest()
    day = days.get_last_partition_key()
    new = len(contents - before)
    return SensorResult(
        run_requests=[RunRequest(run_key=key, partition_key=day, tags={"traceroom/new_files": str(new)})], cursor=cursor)


def _seen(folder: Path, known: dict[str, list[str]]) -> Iterator[tuple[str, list[str]]]:
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder)
        never = any(part.startswith(".") or part.casefold() == NEVER_READ for part in name.parts)
        if not never and path.is_file():
            state = path.stat()
            mark = f"{state.st_size} {state.st_mtime_ns}"
            there = known.get(str(name))
            yield str(name), there if there and there[0] == mark else [mark, _digest(path)]


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(_BLOCK):
            digest.update(block)
    return digest.hexdigest()
