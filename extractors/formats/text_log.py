"""Free text logs, one statement a line; lines of mixed notations; exports with a time before each line (CloudWatch to S3).

Sees what `line_shapes` sees; a line that begins no record joins the one before. Statements are grouped by `templates`.
Prose, source code and tables are no logs: their lines begin with neither time nor level.
"""

from __future__ import annotations

from collections.abc import Iterable

import orjson

from extractors.formats import line_shapes
from extractors.formats.access_line import fields_of
from extractors.formats.application import tell_all
from extractors.formats.format import Emit, Format, Head, LogRecord
from extractors.formats.samples import sample
from extractors.formats.syslog_line import syslog_of

_LEAST = 0.5
_OTHERS = ("AUDIT: ",)
"""What a line holds whose notation has a format of its own."""


def claims(head: Head) -> bool:
    """Most of the first lines begin a record; those that go on with one count for neither side. No single notation rules."""
    if head.layout != "text" or any(other in line for line in head.text for other in _OTHERS):
        return False
    known = [_kind(line) for line in head.text]
    counted = [kind for kind in known if kind != "goes on"]
    if sum(kind == "access" for kind in counted) * 2 > len(known) or sum(kind == "syslog" for kind in counted) * 2 > len(known):
        return False
    return any(kind == "shaped" for kind in counted) and sum(kind != "" for kind in counted) > _LEAST * len(counted)


def _kind(line: str) -> str:
    if fields_of(line) is not None:
        return "access"
    if syslog_of(line) is not None:
        return "syslog"
    if line_shapes.shape_of(line) is not None:
        return "shaped"
    if line[:1] == "{":
        return "object" if _is_object(line) else ""
    return "goes on" if line_shapes.goes_on(line) else ""


def _is_object(line: str) -> bool:
    try:
        return isinstance(orjson.loads(line), dict)
    except orjson.JSONDecodeError:
        return False


def read(records: Iterable[LogRecord], emit: Emit) -> None:
    """One statement a line, but for lines that go on."""
    tell_all(records, emit)


FORMAT = Format(name="text_log", claims=claims, read=read, sample=sample("text_log.log"), rank=90)
