"""Reading made-up logs of providers the public way, for their tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import polars as pl
from hypothesis import strategies as st

from extractors.formats import Emit, Format, LogRecord
from extractors.formats.envelope import Envelope
from extractors.formats.format import event_frame
from extractors.inventory import SourceFile
from extractors.reading import Reading, read
from extractors.sessions import AssembledSessions, assemble

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=6)
    | st.sampled_from(["assistant", "user", "message", "response", "list", "function_call", "text", '{"a":1}']),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=4), max_leaves=8)


def log(folder: Path, records: list[Any] | bytes, name: str = "log") -> tuple[Reading, AssembledSessions]:
    """Return a file of these JSON lines (or of these bytes), read and assembled."""
    path = folder / name
    path.write_bytes(records if isinstance(records, bytes) else b"".join(orjson.dumps(each) + b"\n" for each in records))
    reading = read(SourceFile(path, path.name))
    return reading, assemble(reading.events, reading.declarations)


def logs(folder: Path, files: dict[str, list[Any]]) -> AssembledSessions:
    """Several files, assembled together."""
    return assemble(pl.concat([log(folder, records, name)[0].events for name, records in files.items()]))


def spoken_turns(made: AssembledSessions, session_id: str | None = None) -> list[tuple[str | None, str | None]]:
    """Who said what, and which tool answered what, in order."""
    turns = made.turns if session_id is None else made.turns.filter(session_id=session_id)
    return [(row["tool"] or row["role"], row["content"]) for row in turns.sort("session_id", "position").to_dicts()]


def rejected_reasons(reading: Reading) -> list[str]:
    """Why something became no event."""
    return reading.decisions.filter(~pl.col("kept")).sort("line")["reason"].to_list()


def nothing_vanishes(log_format: Format, values: list[Any]) -> None:
    """Every record gives an event or a reject, and every event has an id of its own."""
    emit = Emit("file", "main", log_format.name, Envelope())
    records = [LogRecord(f"{number:064d}", number, value) for number, value in enumerate(values)]
    log_format.read(iter(records), emit)
    event_rows = {row["record_id"] for row in emit.events} | {record.record_id for record, _, _ in emit.rejects}
    assert emit.declarations or event_rows == {record.record_id for record in records}
    assert event_frame(emit.events)["event_id"].is_unique().all()


def damaged(value: Any, place: list[int], other: Any) -> Any:
    """`value` with something deep inside (where `place` leads) replaced."""
    copy = orjson.loads(orjson.dumps(value))
    inner = copy
    for number in place:
        keys = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
        key = keys[number % len(keys)]
        if not isinstance(inner[key], (dict, list)) or not inner[key]:
            break
        inner = inner[key]
        keys = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
        key = keys[number % len(keys)]
    else:
        keys = list(inner) if isinstance(inner, dict) else list(range(len(inner)))
        key = keys[0]
    inner[key] = other
    return copy
