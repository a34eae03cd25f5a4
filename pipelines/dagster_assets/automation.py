"""The job over all assets, and the nightly schedule: the newest day's partition in one run.

The schedule and the sensor of the inbox are off until a person switches them on; TRACEROOM_AUTOMATION=on switches them on from
the start, for a deployment without a person at its pages.

New files in the inbox (TRACEROOM_INBOX: folders and prefixes of object stores) ask for a run.

What is new depends on content: the run's key is a digest over the contents of all files, so the same files under other
names, or written again, ask for nothing. The cursor keeps path, size and time of change with the digest of each file,
so that a file is read again only where they changed. A file still being written asks again when it is done.
Of an object nothing is read: what the store says of its content (the entity tag) stands for it."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import dagster as dg

from extractors import objects
from extractors.inventory import NEVER_READ
from pipelines.dagster_assets.assets import days, run_tags
from pipelines.settings import inboxes
from warehouse.errors import InputError

AUTOMATIC = os.environ.get("TRACEROOM_AUTOMATION") == "on"
everything = dg.define_asset_job(
    "everything", selection=dg.AssetSelection.all(), description="Logs in, environments out.",
    run_tags={"traceroom/asked_by": "hand", **run_tags()})


def night_time() -> tuple[int, int]:
    """Hour and minute in UTC at which the nightly run begins (TRACEROOM_NIGHTLY). Raises InputError."""
    text = os.environ.get("TRACEROOM_NIGHTLY") or "02:30"
    if not (parts := re.fullmatch(r"([01]\d|2[0-3]):([0-5]\d)", text)):
        raise InputError(f"invalid time {text!r} (expected HH:MM)", "TRACEROOM_NIGHTLY", "give such as 02:30, in UTC")
    return int(parts[1]), int(parts[2])


_HOUR, _MINUTE = night_time()
nightly = dg.build_schedule_from_partitioned_job(
    everything, name="nightly", hour_of_day=_HOUR, minute_of_hour=_MINUTE,
    tags={"traceroom/asked_by": "nightly", **run_tags()},
    default_status=dg.DefaultScheduleStatus.RUNNING if AUTOMATIC else dg.DefaultScheduleStatus.STOPPED,
    description=f"At {_HOUR:02}:{_MINUTE:02} UTC: the newest day, and every file that came late for an older one.")
FileMarks = dict[str, list[str]]
"""Place -> a mark that changes when it is written, and a digest of its content."""


@dg.sensor(job=everything, minimum_interval_seconds=60,
        default_status=dg.DefaultSensorStatus.RUNNING if AUTOMATIC else dg.DefaultSensorStatus.STOPPED)
def inbox(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
    """Asks for a run of today's partition when the inbox holds content that it did not hold before."""
    before_marks: FileMarks = json.loads(context.cursor) if context.cursor else {}
    marks: FileMarks = {}
    for place in inboxes():
        if not objects.is_url(place) and not Path(place).is_dir():
            return dg.SkipReason(f"{place} is no folder: make it, or set TRACEROOM_INBOX to the one that logs arrive in")
        try:
            marks.update(_of_store(place) if objects.is_url(place) else _of_folder(place, before_marks))
        except InputError as error:
            return dg.SkipReason(str(error))
    contents, before = {digest for _, digest in marks.values()}, {digest for _, digest in before_marks.values()}
    cursor, new = json.dumps(marks, sort_keys=True), len(contents - before)
    if not new:
        return dg.SensorResult(skip_reason=f"nothing new among {len(marks)} files in {', '.join(inboxes())}", cursor=cursor)
    key = hashlib.sha256("\n".join(sorted(contents)).encode()).hexdigest()
    tags = {"traceroom/asked_by": "inbox", "traceroom/new_files": str(new), **run_tags()}
    return dg.SensorResult(
        run_requests=[dg.RunRequest(run_key=key, partition_key=days.get_last_partition_key(), tags=tags)], cursor=cursor)


def _never(name: str) -> bool:
    return any(part.startswith(".") or part.casefold() == NEVER_READ for part in Path(name).parts)


def _of_folder(place: str, before_marks: FileMarks) -> Iterator[tuple[str, list[str]]]:
    for path in sorted(Path(place).rglob("*")):
        if not _never(str(path.relative_to(place))) and path.is_file():
            state = path.stat()
            mark = f"{state.st_size} {state.st_mtime_ns}"
            there = before_marks.get(str(path))
            yield str(path), there if there and there[0] == mark else [mark, _digest(path)]


def _of_store(address: str) -> Iterator[tuple[str, list[str]]]:
    for each in objects.below(address):
        if not _never(each.relative):
            mark = " ".join(map(str, each.stamp))
            yield each.url, [mark, f"{each.stamp[0]} {each.content}" if each.content else f"{each.url} {mark}"]


def _digest(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
