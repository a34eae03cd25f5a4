"""XES and OCEL: what each notation tells, and that an XML file can do no harm."""

from __future__ import annotations

import json
import sqlite3
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from extractors.inventory import SourceFile
from extractors.reading import Reading, read
from extractors.sessions import assemble

LAUGHS = b"""<?xml version="1.0"?><!DOCTYPE log [<!ENTITY a "ha">%s]><log><trace><event>
<string key="concept:name" value="&z20;"/></event></trace></log>""" % b"".join(
    b'<!ENTITY z%d "%s">' % (i, b"&z%d;" % (i - 1) * 20 if i else b"&a;" * 20) for i in range(21))


def reading(folder: Path, value: bytes) -> Reading:
    path = folder / "log"
    path.write_bytes(value)
    return read(SourceFile(path, path.name))


def trace(*events: str, inside: str = "") -> bytes:
    body = "".join(f"<event>{each}</event>" for each in events)
    return f'<log xmlns="http://www.xes-standard.org/"><trace>{inside}{body}</trace></log>'.encode()


def rejected_rows(log_reading: Reading) -> list[tuple[Any, ...]]:
    return log_reading.decisions.filter(~pl.col("kept")).select("reason", "detail").rows()


@pytest.mark.parametrize("laughs", [LAUGHS, LAUGHS.replace(b"&z20;", b"x")], ids=["used", "declared only"])
def test_entities_that_multiply_are_refused_at_once(laughs: bytes, tmp_path: Path) -> None:
    started = time.process_time()
    log_reading = reading(tmp_path, laughs)
    assert time.process_time() - started < 2 and log_reading.events.is_empty()
    assert log_reading.decisions.filter(pl.col("kept") & (pl.col("reason") != "read")).is_empty()
    assert rejected_rows(log_reading) and rejected_rows(log_reading)[0][0] in ("malformed_record", "unknown_format")


@pytest.mark.parametrize("root", ["<trace><event><string key='concept:name' value='a'/></event></trace>", "<events></events>"])
@pytest.mark.parametrize("name", ["xes", "ocel"])
def test_files_outside_are_never_opened(root: str, name: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("the secret")
    text = f'<!DOCTYPE log [<!ENTITY x SYSTEM "file://{secret}">]><log>{root}<string key="k" value="v"/>&x;</log>'
    path = tmp_path / "log.xml"
    path.write_text(text)
    from extractors.configuration import Source
    log_reading = read(SourceFile(path, path.name, Source(format=name)))
    assert "the secret" not in str(log_reading.events.to_dicts()) and log_reading.events.is_empty()
    assert rejected_rows(log_reading)[0][0] == "malformed_record" and "document type" in rejected_rows(log_reading)[0][1]


def test_xes_types_lists_nesting_and_lifecycle(tmp_path: Path) -> None:
    begun = ('<string key="concept:name" value="pack"/><date key="time:timestamp" value="2026-03-02T10:00:00+01:00"/>'
             '<string key="lifecycle:transition" value="start"/>')
    done = ('<string key="concept:name" value="pack"/><date key="time:timestamp" value="2026-03-02T10:00:02.5+01:00"/>'
            '<string key="lifecycle:transition" value="COMPLETE"/><string key="org:resource" value="ann"/>'
            '<int key="n" value="3"/><float key="f" value="0.5"/><boolean key="b" value="true"/><int key="bad" value="x"/>'
            '<int key="large" value="99999999999999999999"/>'
            '<list key="l"><values><int key="i" value="1"/></values></list>'
            '<string key="outer" value="o"><string key="inner" value="i"/></string>')
    case = '<string key="concept:name" value="case 1"/><int key="k" value="2"/>'
    log_reading = reading(tmp_path, trace(begun, done, "", inside=case))
    rows = log_reading.events.filter(kind="business").to_dicts()
    assert [(row["session_id"], row["tool"], row["latency_ms"], row["name"]) for row in rows] == [
        ("case 1", "pack", None, None), ("case 1", "pack", 2500.0, "ann"), ("case 1", "UNKNOWN", None, None)]
    assert str(rows[0]["happened_at"]) == "2026-03-02 09:00:00+00:00"
    facts = json.loads(rows[1]["arguments"])
    assert facts | {"lifecycle:transition": "", "org:resource": ""} == {
        "n": 3, "f": 0.5, "b": True, "bad": "x", "large": "99999999999999999999", "l": [{"i": 1}], "outer": "o",
        "outer.inner": "i", "lifecycle:transition": "", "org:resource": ""}
    assert log_reading.events.filter(kind="log")["content"].to_list() == ['{"concept:name":"case 1","k":2}']
    assert not rejected_rows(log_reading)


def test_damaged_and_deep_xml_is_told_of(tmp_path: Path) -> None:
    whole = trace('<string key="concept:name" value="a"/>', '<string key="concept:name" value="b"/>')
    torn = reading(tmp_path, whole.replace(b"</trace>", b"</trace><trace>")[:-6])
    assert torn.events["tool"].to_list() == ["a", "b"] and rejected_rows(torn)[0][0] == "malformed_record"
    deep = reading(tmp_path, trace('<string key="a" value="1">' * 5000 + "</string>" * 5000, '<int key="n" value="1"/>'))
    assert rejected_rows(deep)[0][0] == "malformed_record" and "deeper" in rejected_rows(deep)[0][1]
    assert reading(tmp_path, trace()).events["kind"].to_list() == ["log"], "a case without events"
    assert rejected_rows(reading(tmp_path, b'<log><extension name="Concept"/></log>'))[0][0] == "no_events"


def test_ocel_says_the_same_in_each_notation(data: Path) -> None:
    folder = data / "format_samples" / "08_app"
    tables = [read(SourceFile(folder / name, name)).events for name in ("ocel2.json", "ocel2.xml", "ocel2.sqlite")]
    columns = ["kind", "happened_at", "tool", "name", "arguments", "value"]
    events = [table.filter(kind="business").select(columns) for table in tables]
    assert events[0].height == 5 and events[0].equals(events[1]) and events[0].equals(events[2])
    assert json.loads(events[0]["arguments"][2])["amount_cents"] == 2490, "as declared, a number"
    changes = [table.filter(kind="row_change").select(columns) for table in tables]
    assert changes[0].equals(changes[1])
    solved = changes[2].filter(tool="ticket", name="update").row(0, named=True)
    assert json.loads(solved["value"]) == {"before": {"id": "ticket:5512", "status": "open"},
                                           "after": {"id": "ticket:5512", "status": "solved"}}
    assert changes[0]["name"].to_list() == ["snapshot", "create", "update", "create", "snapshot"]
    made = assemble(tables[0]).row_changes
    assert made.height == 5 and set(made["table_name"]) == {"order", "ticket", "refund", "customer"}


def test_ocel_of_the_first_version(tmp_path: Path) -> None:
    log = {"ocel:global-log": {}, "ocel:events": {"e1": {"ocel:activity": "pay", "ocel:timestamp": "2026-03-02 10:00:00",
                                                         "ocel:omap": ["o1"], "ocel:vmap": {"sum": 3}}},
           "ocel:objects": {"o1": {"ocel:type": "order", "ocel:ovmap": {"size": 2}}}}
    log_reading = reading(tmp_path, json.dumps(log).encode())
    assert log_reading.events.select("kind", "tool", "arguments").rows() == [
        ("business", "pay", '{"sum":3,"relationships":[{"objectId":"o1","type":"order","qualifier":null}]}'),
        ("row_change", "order", '{"id":"o1"}')]
    assert log_reading.file.format == "ocel" and not rejected_rows(log_reading)


def test_a_database_that_lacks_a_table_is_told_of(data: Path, tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    path.write_bytes((data / "format_samples" / "08_app" / "ocel2.sqlite").read_bytes())
    with sqlite3.connect(path) as connection:
        connection.execute("drop table event_RefundFailed")
    connection.close()
    log_reading = read(SourceFile(path, path.name))
    assert log_reading.events.filter(kind="business").height == 5, "the event is known, its attributes are not"
    with sqlite3.connect(path) as connection:
        connection.execute("drop table event_map_type")
    connection.close()
    assert rejected_rows(read(SourceFile(path, path.name)))[0][0] == "unknown_format"
