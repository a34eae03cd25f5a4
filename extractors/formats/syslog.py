"""Syslog, one message a line: RFC 5424, RFC 3164, and the latter without its priority, as files hold it.

A message's structured data, JSON object, request or access log line is read as `application` reads it bare.
Does not see: the year of RFC 3164's time. It is 1972 and counts up where the months start again; `lossy` says so.
"""

from __future__ import annotations

from extractors.formats.application import read_payloads
from extractors.formats.format import Format, Head, sample
from extractors.formats.line_shapes import syslog_of


def claims(head: Head) -> bool:
    """More than half of the first lines have syslog's header."""
    return head.layout == "text" and sum(syslog_of(line) is not None for line in head.text) * 2 > len(head.text)


FORMAT = Format(name="syslog", claims=claims, read=read_payloads, sample=sample("syslog.log"), rank=61)
