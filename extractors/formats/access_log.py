"""A web server's access log, one request a line: Common, Combined, and Combined with `name=value` pairs behind.

Sees what `access_line` sees; lines of another kind in between are told as `application` tells them. A request is put where the
line says (nginx writes the end of the request there, Apache its begin), less the duration where the line states one.
Does not see: bodies; who sits behind one address; a session where no pair behind the fields names one.
"""

from __future__ import annotations

from collections.abc import Iterable

from extractors.formats.access_line import fields_of
from extractors.formats.application import tell_all
from extractors.formats.format import Emit, Format, Head, LogRecord
from extractors.formats.samples import sample


def claims(head: Head) -> bool:
    """More than half of the first lines are lines of an access log."""
    return head.layout == "text" and sum(fields_of(line) is not None for line in head.text) * 2 > len(head.text)


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """One request a line."""
    tell_all(records, emit)


FORMAT = Format(name="access_log", claims=claims, read=read, sample=sample("access_log.log"), rank=60)
