"""An application's request log: JSON lines with `req` and `res` (pino-http, Bunyan), bodies where they were logged.

The line is written when the answer is sent: the request's time is the line's time less `responseTime`. Lines of the same log
that tell no request are log lines. What is read is told in `application`.
"""

from __future__ import annotations

from collections.abc import Iterable

from extractors.formats.application import tell_all
from extractors.formats.format import Emit, Format, Head, LogRecord
from extractors.formats.samples import sample


def claims(head: Head) -> bool:
    """The first object has a request with method and url."""
    request = head.first.get("req")
    return head.layout in ("lines", "document") and isinstance(request, dict) and \
        isinstance(request.get("method"), str) and isinstance(request.get("url"), str)


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """One request a record, or a log line."""
    tell_all(records, emit)


FORMAT = Format(name="request_log", claims=claims, read=read, sample=sample("request_log.jsonl"), rank=35)
