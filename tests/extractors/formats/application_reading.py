"""What the tests of application logs share: a format run over values as its files give them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson

from extractors.formats import Emit, LogRecord, named
from extractors.formats.envelope import Envelope
from extractors.formats.instants import microseconds

Row = dict[str, Any]


def read_payloads(name: str, values: Iterable[Any]) -> Emit:
    """Everything that the format tells of the values, a record each."""
    emit = Emit("file", "main", name, Envelope())
    named(name).read((LogRecord(f"{line:064d}", line, value) for line, value in enumerate(values, start=1)), emit)
    return emit


def lines(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines()


def objects(path: Path) -> list[Any]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()]


def canonical(data: Path) -> list[Row]:
    """Return the requests that every file of the support session tells."""
    return [{"method": each["method"], "path": each["path"], "status": each["status"], "duration_ms": each["duration_ms"],
             "at": microseconds(each["ts"]), "request_id": each["request_id"], "call_id": each["call_id"],
             "session": "sess_7f3a2c"} for each in objects(data / "format_samples/canonical_http_events.jsonl")]


def requests(emit: Emit) -> list[Row]:
    """Return the same facts of the requests that a format told."""
    rows = []
    for event in emit.events:
        assert event["kind"] == "request"
        method, _, path = event["tool"].partition(" ")
        query = orjson.loads(event["arguments"])["query"]
        rows.append({
            "method": method, "path": path + ("?" + "&".join(f"{k}={v}" for k, v in query.items()) if query else ""),
            "status": orjson.loads(event["value"])["status"], "duration_ms": event.get("latency_ms"),
            "at": event["happened_at"], "request_id": event.get("call_id"), "call_id": event.get("requestor"),
            "session": event.get("session_id")})
    return rows


def without(rows: list[Row], *names: str) -> list[Row]:
    return [{name: value for name, value in row.items() if name not in names} for row in rows]
