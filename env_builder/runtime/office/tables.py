"""CSV, base64 and numbers of arguments as public servers of tools take and write them."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Sequence

_SPECIAL = frozenset(',"\r\n')


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as Go's `encoding/csv` writes it: a cell is quoted only where it must be, lines end with a line feed."""
    return "".join(",".join(map(_cell, row)) + "\n" for row in (header, *rows))


def count_of(value: object, otherwise: int) -> int:
    """Return an argument that is a number or the text of one; `otherwise` for anything else."""
    try:
        return int(float(str(value)))
    except (ValueError, OverflowError):
        return otherwise


def encode_cursor(text: str) -> str:
    """Return a cursor that says where a page begins."""
    return base64.b64encode(text.encode()).decode()


def decode_cursor(cursor: str) -> str | None:
    """Return what a cursor says, or None if it is none."""
    try:
        return base64.b64decode(cursor, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return None


def _cell(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    if text and (text == "\\." or text[0].isspace() or not _SPECIAL.isdisjoint(text)):
        return '"' + text.replace('"', '""') + '"'
    return text
