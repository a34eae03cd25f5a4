"""Events of files in the words of several watchers, and what only looks like one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from extractors import content
from extractors.formats import named, recognise
from extractors.inventory import SourceFile
from extractors.reading import read
from extractors.sessions import assemble
from tests.extractors.formats.accounts import problems_of

AT = "2026-03-02T10:00:00Z"
HASH = "5db2c4d677170a5b8282765997c16e0c2a69943d098907fb20b32ee5a3874ed7"


def events_of(tmp_path: Path, *rows: dict[str, Any]) -> list[tuple[str, str | None, dict[str, Any]]]:
    path = tmp_path / "audit.jsonl"
    path.write_bytes(b"\n".join(map(orjson.dumps, rows)))
    reading = read(SourceFile(path, path.name))
    assert reading.file.format == "file_audit" and not problems_of(reading)
    return [(tool, name, orjson.loads(arguments)) for tool, name, arguments in
            reading.events.select("tool", "name", "arguments").rows()]


@pytest.mark.parametrize(("row", "expected"), [
    ({"at": AT, "user": "ruth", "process": "files", "op": "rename", "path": "/a/b.pdf", "to": "/c/d.pdf"},
     ("file rename", "ruth", {"operation": "rename", "path": "/a/b.pdf", "to": "/c/d.pdf", "process": "files"})),
    ({"name": "file_events", "unixTime": 1772445600, "action": "added", "columns": {
        "action": "CREATED", "target_path": "/home/ruth/a.pdf", "sha256": HASH, "time": "1772445600", "uid": "1000"}},
     ("file create", "1000", {"operation": "create", "path": "/home/ruth/a.pdf", "sha256": HASH})),
    ({"timestamp": AT, "dir": "/srv/in/", "file": "a.pdf", "event": ["MOVED_TO"]},
     ("file moved_to", None, {"operation": "moved_to", "path": "/srv/in/a.pdf"})),
    ({"time": AT, "path": "/srv/in/a.pdf", "mask": "IN_CLOSE_WRITE|IN_ISDIR", "size": "12"},
     ("file modify", None, {"operation": "modify", "path": "/srv/in/a.pdf", "size": 12})),
    ({"EventID": 11, "EventData": {"UtcTime": "2026-03-02 10:00:00.000", "Image": "C:\\x\\word.exe", "User": "D\\ruth",
                                   "TargetFilename": "C:\\in\\a.docx"}},
     ("file create", "D\\ruth",
      {"operation": "create", "path": "C:\\in\\a.docx", "process": "C:\\x\\word.exe"})),
    ({"ts": 1772445600, "action": "deleted", "file_path": "reports/2026/a.csv", "username": "ruth", "session_id": "s1"},
     ("file delete", "ruth", {"operation": "delete", "path": "reports/2026/a.csv"}))])
def test_a_watchers_words_are_read(row: dict[str, Any], expected: tuple[str, str | None, dict[str, Any]],
                                   tmp_path: Path) -> None:
    assert events_of(tmp_path, row, row) == [expected, expected]


def test_instants_and_sessions_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    path.write_bytes(orjson.dumps({"ts": 1772445600, "action": "deleted", "path": "/a/b.csv", "session_id": "s1"}) + b"\n")
    event = read(SourceFile(path, path.name)).events.row(0, named=True)
    assert event["happened_at"].isoformat() == "2026-03-02T10:00:00+00:00" and event["session_id"] == "s1"


@pytest.mark.parametrize("row", [
    {"time": AT, "operation": "create", "path": "/api/orders", "status": 201},
    {"time": AT, "operation": "create", "path": "/api/orders", "user": "ruth"},
    {"op": "add", "path": "/a/b.txt", "value": 1}, {"time": AT, "action": "read", "path": "/a/b.txt"},
    {"ts": AT, "op": "c", "source": {"table": "t"}, "before": None, "after": {"path": "/a.txt"}},
    {"time": AT, "event": "created", "path": "an order", "size": 3}])
def test_requests_patches_and_changes_of_rows_are_no_events_of_files(row: dict[str, Any]) -> None:
    head = content.head_of(orjson.dumps(row) + b"\n" + orjson.dumps(row))
    assert head is not None and not named("file_audit").claims(head)
    found = recognise(head)
    assert found is None or found.name != "file_audit"


def test_a_record_without_a_path_has_a_decision(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    row = {"at": AT, "op": "create", "path": "/a/b.pdf"}
    path.write_bytes(b"\n".join(map(orjson.dumps, [*[row] * 9, {"at": AT, "op": "create"}])))
    reading = read(SourceFile(path, path.name))
    assert reading.events.height == 9 and "no_file_event" in reading.decisions["reason"].to_list()


def test_events_of_files_are_no_routine_of_their_own(tmp_path: Path) -> None:
    path = tmp_path / "audit.jsonl"
    rows = [{"at": f"2026-03-02T10:{number:02}:{second:02}Z", "user": "ruth", "op": op, "path": "/a/b.pdf"}
            for number in range(30) for second, op in enumerate(("create", "copy", "delete"))]
    path.write_bytes(b"\n".join(map(orjson.dumps, rows)))
    events = read(SourceFile(path, path.name)).events
    assert events.height == 90 and assemble(events).sessions.is_empty()
    assert assemble(events.with_columns(format=pl.lit("event_table"))).sessions.height > 20, "another format's would be one"
