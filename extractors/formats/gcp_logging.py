"""Google Cloud's LogEntry as exported: JSON lines or a list, with `httpRequest`, and a text, JSON or audit payload.

An entry with `httpRequest` is a request, its payload stating more of it; another one is read by its payload. The same entry
twice (`insertId`, `logName`, `timestamp`) is read once; a text that was split over entries is joined.
Does not see: BigQuery's export, which renames the fields.
"""

from __future__ import annotations

from extractors.formats.application import PayloadContext, PayloadReader
from extractors.formats.format import Emit, Format, Head, LogRecord, LogRecords, Row, sample
from extractors.formats.instants import microseconds
from extractors.formats.values import object_of

_PAYLOADS = ("textPayload", "jsonPayload", "protoPayload", "httpRequest")
_ENVELOPE = frozenset(("insertId", "logName", "receiveTimestamp", "resource", "traceSampled", "timestamp", "operation", "split",
                       "sourceLocation", "spanId", "jsonPayload", "protoPayload", "textPayload"))


def claims(head: Head) -> bool:
    """Return whether the first object names its log and holds a payload or a resource."""
    first = head.first
    return head.is_json and isinstance(first.get("logName"), str) and \
        ("resource" in first or any(name in first for name in _PAYLOADS))


def read(records: LogRecords, emit: Emit) -> None:
    """One entry a record."""
    reader = PayloadReader(emit)
    exported: set[tuple[str, str, str]] = set()
    parts: dict[str, list[str]] = {}
    for record in records:
        value = record.value
        if not isinstance(value, dict):
            reader.read(record, value)
            continue
        with emit.guarded(record):
            identity = (str(value.get("insertId")), str(value.get("logName")), str(value.get("timestamp")))
            if value.get("insertId") and identity in exported:
                emit.reject(record, "duplicate_entry", "the same entry was exported twice; no action needed")
                continue
            exported.add(identity)
            text = _joined(value, parts)
            if text is None:
                emit.reject(record, "joined_line", "the entry is a part of a split one, told with the last; no action needed")
            else:
                _read_entry(record, value, text, reader)
    reader.finish()


def _joined(value: Row, parts: dict[str, list[str]]) -> str | None:
    """Return the entry's text, None as long as parts of it are to come."""
    text, split = value.get("textPayload"), object_of(value.get("split"))
    text = text if isinstance(text, str) else ""
    if not isinstance(split.get("totalSplits"), int):
        return text
    texts = parts.setdefault(str(split.get("uid")), [])
    texts.append(text)
    return "".join(parts.pop(str(split.get("uid")))) if len(texts) >= split["totalSplits"] else None


def _read_entry(record: LogRecord, value: Row, text: str, reader: PayloadReader) -> None:
    labels = object_of(object_of(value.get("resource")).get("labels"))
    service = next((labels[name] for name in ("service_name", "module_id", "container_name", "function_name", "job")
                    if isinstance(labels.get(name), str)), None)
    around = PayloadContext(microseconds(value.get("timestamp") or value.get("receiveTimestamp")), service)
    payload = object_of(value.get("jsonPayload", value.get("protoPayload")))
    if not payload and "httpRequest" not in value and text:
        reader.read(record, text, around)
        return
    message = text or (str(payload["methodName"]) if "methodName" in payload else "")
    facts = {key: inner for key, inner in value.items() if key not in _ENVELOPE}
    reader.read(record, {**facts, **({"message": message} if message or "methodName" in payload else {}), **payload}, around)


FORMAT = Format(name="gcp_logging", claims=claims, read=read, sample=sample("gcp_logging.jsonl"), rank=31)
