"""Syslog, one message a line: RFC 5424, RFC 3164, and the latter without its priority, as files hold it.

A message's structured data, JSON object, request or access log line is told as `application` tells it bare.
Does not see: the year of RFC 3164's time. It is 1972 and counts up where the months start again; `lossy` says so.
"""

from __future__ import annotations

from collections.abc import Iterable

from extractors.formats.application import tell_all
from extractors.formats.format import Emit, Format, Head, LogRecord
from extractors.formats.samples import sample
from extractors.formats.syslog_line import syslog_of


def claims(head: Head) -> bool:
    """More than half of the first lines have syslog's header."""
    return head.layout == "text" and sum(syslog_of(line) is not None for line in head.text) * 2 > len(head.text)


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """One message a line."""
    tell_all(records, emit)


FORMAT = Format(name="syslog", claims=claims, read=read, sample=sample("syslog.log"), rank=61)
