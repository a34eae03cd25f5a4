"""Free text logs, one statement a line; lines of mixed notations; exports with a time before each line (CloudWatch to S3).

Sees what `line_shapes` sees; a line that begins no record joins the one before. Statements are grouped by `templates`.
Prose, source code and tables are no logs: their lines begin with neither time nor level.
"""

from __future__ import annotations

from collections import Counter

from extractors.formats import line_shapes
from extractors.formats.application import read_payloads
from extractors.formats.format import Format, Head, sample
from extractors.formats.values import object_in

_OTHERS = ("AUDIT: ", "Z ##[group]")
"""What a line holds whose notation has a format of its own."""


def claims(head: Head) -> bool:
    """Most of the first lines begin a record; those that go on with one count for neither side. No single notation rules."""
    if head.layout != "text" or any(other in line for line in head.text for other in _OTHERS):
        return False
    kinds = Counter(map(_kind, head.text))
    if max(kinds["access"], kinds["syslog"]) * 2 > len(head.text):
        return False
    n_counted = len(head.text) - kinds["goes on"]
    return kinds["shaped"] > 0 and (n_counted - kinds[""]) * 2 > n_counted


def _kind(line: str) -> str:
    if line_shapes.fields_of(line) is not None:
        return "access"
    if line_shapes.syslog_of(line) is not None:
        return "syslog"
    if line_shapes.shape_of(line) is not None:
        return "shaped"
    if line[:1] == "{":
        return "object" if object_in(line) is not None else ""
    return "goes on" if line_shapes.goes_on(line) else ""


FORMAT = Format(name="text_log", claims=claims, read=read_payloads, sample=sample("text_log.log"), rank=90)
