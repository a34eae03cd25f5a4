"""CloudWatch Logs: what filter-log-events and get-log-events print, Insights' results, and subscriptions (Lambda, Kinesis,
Firehose: base64 of gzip of `{messageType, logGroup, logStream, logEvents}`; Firehose's files without line ends between).

Each message is read as `application` reads it bare; the log group is the service where the message names none.
Does not see: the S3 export task's files, which are text with a time before each line (`text_log` reads them).
"""

from __future__ import annotations

import base64
import binascii
import json
import zlib
from collections.abc import Iterator
from typing import Any

import orjson

from extractors.formats.application import PayloadContext, PayloadReader
from extractors.formats.format import Emit, Format, Head, LogRecord, LogRecords, Row, sample
from extractors.formats.instants import microseconds

_MOST_BYTES = 64 << 20
_FIREHOSE = '{"messageType":"'


def claims(head: Head) -> bool:
    """Log events with a message each, a subscription's envelope, or Insights' rows of fields."""
    first = head.first
    if head.layout == "text":
        return bool(head.text) and head.text[0].replace(" ", "").startswith(_FIREHOSE) and '"logEvents"' in head.text[0]
    if not head.is_json:
        return False
    if (isinstance(first.get("logEvents"), list) and "messageType" in first) or [*_packed(first)]:
        return True
    events, rows = first.get("events"), first.get("results")
    row = rows[0] if isinstance(rows, list) and rows else None   # of Insights: a list of {field, value}
    if isinstance(row, list) and row and isinstance(row[0], dict) and {"field", "value"} <= row[0].keys():
        return True
    return isinstance(events, list) and bool(events) and isinstance(events[0], dict) and \
        {"timestamp", "message"} <= events[0].keys() and not {"ingestionTime", "logStreamName"}.isdisjoint(events[0])


def read(records: LogRecords, emit: Emit) -> None:
    """Read the events of every message."""
    reader = PayloadReader(emit)
    for record in records:
        with emit.guarded(record):
            has_events = False
            for value in _values(record.value):
                has_events |= _read_object(record, value, reader, emit)
            if not has_events:
                emit.reject(record, "no_log_events", "the record holds no log events; no action needed")
    reader.finish()


def _values(value: Any) -> Iterator[Row]:
    """Yield the objects of a record: it, what is packed in it, or what stands one after the other in a text."""
    if isinstance(value, str):
        decoder, at = json.JSONDecoder(), 0
        while at < len(value):
            inner, at = decoder.raw_decode(value, at)
            yield from _values(inner)
            at += len(value[at:]) - len(value[at:].lstrip())
    elif isinstance(value, dict):
        texts = list(_packed(value))
        for packed in texts:
            yield from _values(_unpacked(packed))
        if not texts:
            yield value


def _read_object(record: LogRecord, value: Row, reader: PayloadReader, emit: Emit) -> bool:
    """Read the events of one object; whether it held any."""
    if value.get("messageType") == "CONTROL_MESSAGE":
        emit.reject(record, "control_message", "the service asks here whether anybody listens; no action needed")
        return True
    service = _service(value.get("logGroup"))
    events = list(_events(value))
    for event in events:
        at = microseconds(event.get("timestamp", event.get("@timestamp")))
        around = PayloadContext(at, service or _service(event.get("logStreamName", value.get("logStream"))))
        message = event.get("message", event.get("@message"))
        reader.read(record, event if message is None else message, around)
    return bool(events)


def _events(value: Row) -> Iterator[Row]:
    for key in ("logEvents", "events", "results"):
        for event in value.get(key) or ():
            if isinstance(event, list):   # Insights: a list of {field, value}
                yield {str(each.get("field")): each.get("value") for each in event if isinstance(each, dict)}
            elif isinstance(event, dict):
                yield event


def _service(name: Any) -> str | None:
    """Return a log group's or stream's name without path and instance: `/aws/lambda/shop` and `shop/i-0abc` to `shop`."""
    if not isinstance(name, str) or not name.strip("/"):
        return None
    parts = name.strip("/").split("/")
    return parts[-1] if name.startswith("/") else parts[0]


def _packed(value: Row) -> Iterator[str]:
    """Base64 texts that hold an envelope each."""
    inner = value.get("awslogs")
    if isinstance(inner, dict) and isinstance(inner.get("data"), str):
        yield inner["data"]
    rows = value.get("Records", value.get("records"))
    for row in rows if isinstance(rows, list) else ():
        kinesis = row.get("kinesis", row) if isinstance(row, dict) else None
        if isinstance(kinesis, dict) and isinstance(kinesis.get("data"), str):
            yield kinesis["data"]


def _unpacked(packed: str) -> Any:
    """Return what a base64 text of gzip holds. Errors: ValueError where it holds nothing of the kind."""
    try:
        stream = zlib.decompressobj(wbits=47)
        text = stream.decompress(base64.b64decode(packed, validate=True), _MOST_BYTES)
        if not stream.eof:
            raise ValueError("the packed data is cut or unpacks to too much")
        return orjson.loads(text)
    except (binascii.Error, zlib.error) as error:
        raise ValueError(f"the packed data is damaged: {error}") from error


FORMAT = Format(name="cloudwatch", claims=claims, read=read, sample=sample("cloudwatch.json"), rank=32)
