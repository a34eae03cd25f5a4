"""Google Cloud's LogEntry as exported: JSON lines or a list, with `httpRequest`, and a text, JSON or audit payload.

An entry with `httpRequest` is a request, its payload stating more of it; another one is told by its payload. The same entry
twice (`insertId`, `logName`, `timestamp`) is read once; a text that was split over entries is joined.
Does not see: BigQuery's export, which renames the fields.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from extractors.formats.application import Around, Teller
from extractors.formats.format import Emit, Format, Head, LogRecord, Row
from extractors.formats.instants import microseconds
from extractors.formats.samples import sample

_PAYLOADS = ("textPayload", "jsonPayload", "protoPayload", "httpRequest")
_ENVELOPE = frozenset(("insertId", "logName", "receiveTimestamp", "resource", "traceSampled", "timestamp", "operation", "split",
                       "sourceLocation", "spanId", "jsonPayload", "protoPayload", "textPayload"))


def claims(head: Head) -> bool:
    """The first object names its log and holds a payload or a resource."""
    first = head.first
    return head.layout in ("lines", "document") and isinstance(first.get("logName"), str) and \
        ("resource" in first or any(name in first for name in _PAYLOADS))


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """One entry a record."""
    teller = Teller(emit)
    seen: set[tuple[str, str, str]] = set()
    parts: dict[str, list[str]] = {}
    for record in records:
        value = record.value if isinstance(record.value, dict) else None
        if value is None:
            teller.tell(record, record.value)
            continue
        with emit.guarded(record):
            identity = (str(value.get("insertId")), str(value.get("logName")), str(value.get("timestamp")))
            if value.get("insertId") and identity in seen:
                emit.reject(record, "duplicate_entry", "the same entry was exported twice; nothing to mend")
                continue
            seen.add(identity)
            text = _joined(value, parts)
            if text is None:
                emit.reject(record, "joined_line", "the entry is a part of a split one, told with the last; nothing to mend")
                continue
            _tell(record, value, text, teller)
    teller.finish()


def _joined(value: Row, parts: dict[str, list[str]]) -> str | None:
    """The entry's text, None as long as parts of it are to come."""
    text = value.get("textPayload")
    text = text if isinstance(text, str) else ""
    split = value.get("split")
    if not isinstance(split, dict) or not isinstance(split.get("totalSplits"), int):
        return text
    held = parts.setdefault(str(split.get("uid")), [])
    held.append(text)
    return "".join(parts.pop(str(split.get("uid")))) if len(held) >= split["totalSplits"] else None


def _tell(record: LogRecord, value: Row, text: str, teller: Teller) -> None:
    resource = value.get("resource")
    labels = resource.get("labels") if isinstance(resource, dict) else None
    service = next((labels[name] for name in ("service_name", "module_id", "container_name", "function_name", "job")
                    if isinstance(labels.get(name), str)), None) if isinstance(labels, dict) else None
    around = Around(happened_at=microseconds(value.get("timestamp") or value.get("receiveTimestamp")), service=service)
    payload = value.get("jsonPayload", value.get("protoPayload"))
    payload = payload if isinstance(payload, dict) else {}
    facts: Row = {key: inner for key, inner in value.items() if key not in _ENVELOPE}
    if not payload and "httpRequest" not in value and text:
        teller.tell(record, text, around)
        return
    merged: dict[str, Any] = {"message": text} if text else {}
    if "methodName" in payload and not text:
        merged["message"] = str(payload["methodName"])
    teller.tell(record, {**facts, **merged, **payload}, around)


FORMAT = Format(name="gcp_logging", claims=claims, read=read, sample=sample("gcp_logging.jsonl"), rank=31)
