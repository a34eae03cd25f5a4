"""wal2json: both versions tell the same changes; transactions, places in the log, what is no change of a row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import polars as pl

from extractors.inventory import SourceFile
from extractors.reading import Reading, read
from extractors.sessions import assemble

AT = "2026-03-02 10:15:48.702000+00"


def read_all(tmp_path: Path, *values: Any) -> Reading:
    path = tmp_path / "changes"
    path.write_bytes(b"\n".join(map(orjson.dumps, values)))
    reading = read(SourceFile(path, path.name))
    assert reading.file.format == "wal2json"
    return reading


def column(name: str, value: Any) -> dict[str, Any]:
    return {"name": name, "type": "text", "value": value}


def test_both_versions_tell_the_same(data: Path) -> None:
    event_rows = []
    for name in ("wal2json_v1.jsonl", "wal2json_v2.jsonl"):
        path = data / "format_samples/08_app" / name
        reading = read(SourceFile(path, name))
        assert reading.decisions.filter(~pl.col("kept")).is_empty()
        assert set(reading.records["record_id"]) == set(reading.events["record_id"]), "nothing vanishes"
        event_rows.append(assemble(reading.events).row_changes.drop("change_id", "source"))
        assert reading.events.filter(kind="row_change")["lossy"].to_list() == [None] + ['["before beyond its key"]'] * 2
    assert event_rows[0].equals(event_rows[1]) and event_rows[0]["key"].to_list() == [None, '{"id":"LN-10482"}', '{"id":5512}']


def test_a_row_takes_time_and_transaction_of_its_frame(tmp_path: Path) -> None:
    reading = read_all(
        tmp_path, {"action": "B", "xid": 7, "timestamp": AT},
        {"action": "I", "schema": "public", "table": "t", "lsn": "1/10", "columns": [column("id", 1), column("n", None)],
         "pk": [{"name": "id", "type": "integer"}]},
        {"action": "D", "schema": "public", "table": "t", "identity": [column("id", 1)]}, {"action": "C", "xid": 7},
        {"action": "U", "schema": "public", "table": "t", "columns": [column("id", 1)], "identity": [column("id", 0)]})
    rows = reading.events.filter(kind="row_change")
    assert rows.select("name", "call_id", "arguments", "position").rows() == [
        ("create", "7", '{"id":1}', (1 << 32) + 16), ("delete", "7", '{"id":1}', 2), ("update", None, '{"id":0}', 3)]
    assert rows["happened_at"].null_count() == 1 and rows["value"].to_list() == [
        '{"before":null,"after":{"id":1,"n":null}}', '{"before":{"id":1},"after":null}', '{"before":{"id":0},"after":{"id":1}}']
    assert rows["lossy"].null_count() == 3, "a full old row loses nothing"


def test_what_is_no_change_of_a_row(tmp_path: Path) -> None:
    message = {"kind": "message", "transactional": True, "prefix": "audit", "content": "hello"}
    broken = {"kind": "insert", "table": "t", "columnnames": ["a", "b"], "columnvalues": [1]}
    reading = read_all(
        tmp_path, {"xid": 1, "timestamp": AT, "change": []},
        {"xid": 2, "change": [message, {"kind": "truncate", "table": "t"}]},
        {"change": [broken]}, {"action": "M", "prefix": "p", "content": "said"}, {"action": "T", "table": "t"}, [1])
    assert reading.events.select("kind", "tool", "content", "call_id").rows() == [
        ("log", "transaction", orjson.dumps({"xid": 1, "timestamp": AT, "change": []}).decode(), "1"),
        ("log", "audit", "hello", "2"), ("log", "p", "said", None)]
    rejected = reading.decisions.filter(~pl.col("kept")).sort("line")
    assert rejected.select("line", "reason").rows() == [
        (2, "unsupported_operation"), (3, "malformed_record"), (5, "unsupported_operation"), (6, "no_change")]
