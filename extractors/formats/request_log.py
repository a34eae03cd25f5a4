"""An application's request log: JSON lines with `req` and `res` (pino-http, Bunyan), bodies where they were logged.

The line is written when the answer is sent: the request's time is the line's time less `responseTime`. Other lines of the same
log are log lines. `application` reads both.
"""

from __future__ import annotations

from extractors.formats.application import read_payloads
from extractors.formats.format import Format, Head, sample


def claims(head: Head) -> bool:
    """Return whether the first object has a request with method and url."""
    request = head.first.get("req")
    return head.is_json and isinstance(request, dict) and \
        isinstance(request.get("method"), str) and isinstance(request.get("url"), str)


FORMAT = Format(name="request_log", claims=claims, read=read_payloads, sample=sample("request_log.jsonl"), rank=35)
