"""How many records are read wrongly because of the container that they lie in.

In: the records of every built-in sample and of the shapes in a folder, written into each container of
`benchmarks.first_hour_containers`. A pair of records and container is right if what is read of it equals what is read of the
same records as JSON lines: kinds, sessions, times, roles, texts, tools, arguments, results, errors, feedback. It is rejected if
the file or a record is, with a reason. It is wrong otherwise.
Sees: what a container states itself is no difference: a time for a record that has none, numbers and flags as text, no field
for a null. Does not
see: log events of files that hold more than those, but for how many are read.
"""

from __future__ import annotations

import re
import tempfile
from collections import Counter
from collections.abc import Collection, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import orjson
import polars as pl

from benchmarks.first_hour_containers import CONTAINERS, lines
from extractors import content
from extractors.formats import registered
from extractors.inventory import SourceFile
from extractors.reading import Reading, read

_COLUMNS = ("kind", "role", "content", "tool", "arguments", "value", "is_error", "call_id", "name", "model")
_NUMBER = re.compile(r'"(-?\d+)"')
_FLAGS = {"true": "1", "false": "0", "t": "1", "f": "0"}
RIGHT, REJECTED, WRONG = "right", "rejected", "wrong"
Events = list[tuple[tuple[str, ...], str | None]]
"""Columns and time of each event."""


def measure(shapes: Path, names: Collection[str] = CONTAINERS, every: int = 1) -> dict[str, Any]:
    """Return {"wrapped_wrong", "wrapped_rejected", "n_wrapped", "wrapped": {container: {records: what is wrong}}}.

    `names`: the containers; `every`: only every so many-th of the records."""
    counts: Counter[str] = Counter()
    wrong: dict[str, dict[str, str]] = {}
    for title, records in list(_records(shapes).items())[::every]:
        for name, (decision, why) in decisions(title, records, names):
            counts[decision] += 1
            if decision == WRONG:
                wrong.setdefault(name, {})[title] = why
    return {"wrapped_wrong": counts[WRONG], "wrapped_rejected": counts[REJECTED], "n_wrapped": counts.total(), "wrapped": wrong}


def decisions(title: str, records: list[dict[str, Any]], names: Collection[str]) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield for each container that can hold them how records are read, and what is wrong."""
    plain = _read(lines(records))
    if plain.events.is_empty() and plain.declarations.is_empty():
        return
    for name in names:
        packed = CONTAINERS[name](records)
        if packed is not None:
            expected = _read(lines([{"_id": "0", **each} for each in records])) if "mongo" in name else plain
            yield name, _compared(expected, _read(packed), lines(records).decode())


@cache
def _records(shapes: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the records of every sample and shape whose records are objects."""
    files = {f"sample {each.name}": each.sample() for each in registered()} | {
        path.name: path.read_bytes() for path in sorted(shapes.iterdir()) if path.name != "expected.json"}
    return {name: records for name, each in files.items() if (records := _objects(each))}


def _objects(packed: bytes) -> list[dict[str, Any]]:
    head = content.head_of(packed)
    if head is None or head.layout not in ("lines", "document", "table"):
        return []
    records = content.records_of(packed, head.layout, document=head.document if head.layout == "document" else None)
    values = [records.value(index)[0] for index in range(len(records.contents))]
    return values if all(isinstance(each, dict) for each in values) else []


def _read(packed: bytes) -> Reading:
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "log")
        path.write_bytes(packed)
        return read(SourceFile(path, path.name))


def _compared(plain: Reading, wrapped: Reading, text: str) -> tuple[str, str]:
    expected, given = _events(plain, text), _events(wrapped, text)
    if wrapped.declarations.height == plain.declarations.height and _is_same(expected, given):
        return RIGHT, ""
    if _n_rejected(wrapped) > _n_rejected(plain):
        return REJECTED, ""
    lost = Counter(row for row, _ in expected) - Counter(row for row, _ in given)
    return WRONG, f"{plain.file.format} as {wrapped.file.format}: {lost.total()} of {len(expected)} events differ"


def _n_rejected(reading: Reading) -> int:
    return reading.decisions.filter(~pl.col("kept")).height


def _is_same(expected: Events, given: Events) -> bool:
    """Return whether events are the same, but for times of events that had none."""
    timed = Counter((row, at) for row, at in expected if at is not None)
    rest = Counter((row, at) for row, at in given)
    rest.subtract(timed)
    return min(rest.values(), default=0) >= 0 and Counter(row for row, at in expected if at is None) == Counter(
        row for (row, _), n in rest.items() for _ in range(n))


def _events(reading: Reading, text: str) -> Events:
    """Return what events say, with sessions that were made up numbered."""
    frame = reading.events
    if frame.filter(pl.col("kind") != "log").height:
        frame = frame.filter(pl.col("kind") != "log")
    sessions: dict[str, str] = {}
    events: Events = []
    for row in frame.iter_rows(named=True):
        session = row["session_id"]
        if session is not None and session.split(":", 1)[-1] not in text:
            session = sessions.setdefault(session, f"#{len(sessions)}")
        at = row["happened_at"]
        said = [_plain(row[name]) if row["kind"] != "log" or name not in ("content", "arguments") else "" for name in _COLUMNS]
        events.append(((str(session), *said), None if at is None else at.isoformat()))
    return events


def _without_nulls(value: Any) -> Any:
    """Return a value without the fields that hold nothing: a table has all fields in every row."""
    if isinstance(value, dict):
        return {name: _without_nulls(each) for name, each in value.items() if each is not None}
    return [_without_nulls(each) for each in value] if isinstance(value, list) else value


def _plain(value: Any) -> str:
    """Return a value with numbers and flags as text has them, and keys in one order."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            value = orjson.dumps(_without_nulls(orjson.loads(value)), option=orjson.OPT_SORT_KEYS).decode()
        except orjson.JSONDecodeError:
            return str(value)
    text = _NUMBER.sub(r"\1", str(value))
    return _FLAGS.get(text.lower(), text)
