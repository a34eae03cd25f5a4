"""CloudEvents: data of every kind, batches, second deliveries, traces instead of sessions."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from extractors.inventory import SourceFile
from extractors.reading import Reading, read

TRACE = "b96c3b0e79076932b19593ae7bd7bac5"


def event(number: int, **fields: Any) -> dict[str, Any]:
    return {"specversion": "1.0", "id": f"e{number}", "source": "/shop", "type": "shop.opened",
            "time": "2026-03-02T10:15:00+00:00", **fields}


def read_all(tmp_path: Path, content: bytes) -> Reading:
    path = tmp_path / "events"
    path.write_bytes(content)
    reading = read(SourceFile(path, path.name))
    assert reading.file.format == "cloudevents"
    return reading


@pytest.mark.parametrize("fields, carried", [
    ({"data": {"a": 1}}, {"a": 1}), ({"data": [1]}, {"data": [1]}), ({}, {}),
    ({"data": "plain", "datacontenttype": "text/plain"}, {"data": "plain"}),
    ({"data_base64": base64.b64encode(b'{"a":1}').decode()}, {"a": 1}),
    ({"data_base64": base64.b64encode(b'{"a":1}').decode(), "datacontenttype": "text/plain"}, {"data": '{"a":1}'}),
    ({"data_base64": base64.b64encode(b"\xff\x00").decode()}, {"data_base64": "/wA="}),
    ({"data_base64": "not base64!"}, {"data_base64": "not base64!"}), ({"data_base64": "e3Rvcm4="}, {"data": "{torn"})])
def test_data(tmp_path: Path, fields: dict[str, Any], carried: Any) -> None:
    reading = read_all(tmp_path, orjson.dumps(event(1, **fields)))
    assert orjson.loads(reading.events["arguments"].item()) == carried
    assert reading.events["tool"].item() == "shop.opened" and reading.events["call_id"].item() == "e1"


def test_batches_and_second_deliveries(tmp_path: Path) -> None:
    batch = [event(1), event(2, source="/other", userid="ann"), event(1), event(3, region="eu", subject="ticket/7")]
    as_document = read_all(tmp_path, orjson.dumps(batch, option=orjson.OPT_INDENT_2))
    as_lines = read_all(tmp_path, b"\n".join(map(orjson.dumps, batch)))
    a_line = read_all(tmp_path, orjson.dumps(event(0)) + b"\n" + orjson.dumps(batch))
    for reading, first in ((as_document, []), (as_lines, []), (a_line, ["e0"])):
        assert reading.events["call_id"].to_list() == [*first, "e1", "e2", "e3"]
        assert reading.decisions.filter(~pl.col("kept"))["reason"].to_list() == ["duplicate_event"]
    assert as_lines.events.select("name", "content", "lossy").rows() == [
        (None, None, None), ("ann", None, None), (None, "ticket/7", '["region eu"]')]


def test_a_trace_stands_for_the_session_and_is_linked_to_it(tmp_path: Path) -> None:
    parent = f"00-{TRACE}-510fb5acda88b8a5-01"
    lines = [event(1, traceparent=parent), event(2, traceparent=parent, sessionid="s"), event(3, data={"session_id": "t"}),
             event(4, traceparent=parent, sessionid="s"), event(5, traceparent="garbage")]
    reading = read_all(tmp_path, b"\n".join(map(orjson.dumps, lines)))
    assert reading.events.select("kind", "session_id", "value").rows() == [
        ("business", f"trace:{TRACE}", None), ("link", "s", f"trace:{TRACE}"), ("business", "s", None), ("business", "t", None),
        ("business", "s", None), ("business", None, None)]
