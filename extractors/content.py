"""The content of a log file as records: JSON lines, a document, a table, text, XML, an archive, a database; packed or not.

In: bytes. Out: the layout, the first objects, and for each record where it lies (line, byte offset, bytes) and its value.
A line that is no JSON is a record without a value, with what is wrong. Memory: the file, and one record at a time.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import orjson

from extractors import containers
from extractors.containers import unpack
from extractors.formats.format import Head, Row

_BOM = b"\xef\xbb\xbf"
_XML = re.compile(rb"\s*<(\?xml|!DOCTYPE|!--|[A-Za-z_][\w.:-]*[\s/>])")
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_LOOK_AT = 20
_KEEP = 5
_DEEP = 254
"""How deep orjson writes what it reads; a deeper value could be told, but never written down."""


class Piece(NamedTuple):
    """A record as it lies in the file."""

    line: int
    byte_offset: int
    content: bytes
    value: Any
    problem: str | None
    """Why it has no value."""
    note: str | None = None
    """What of it could not be taken as it lies there."""


def unpacked(content: bytes) -> bytes:
    """The content, unpacked where it is gzip or zstd, as UTF-8 where it begins as UTF-16 does.

    Errors: ValueError where it is damaged, or would unpack to more than `MOST_BYTES`.
    """
    content = unpack(content)
    if content[:2] in _UTF_16:
        try:
            content = content.decode("utf-16").encode()
        except UnicodeError as error:
            raise ValueError(f"it begins as UTF-16 but is none ({error})") from error
    return content


def head_of(content: bytes) -> Head:
    """Layout and first objects. Errors: ValueError for an archive or a database that cannot be opened."""
    if (other := containers.head_of(content)) is not None:
        return other
    body = content.removeprefix(_BOM)
    start = body.lstrip()[:1]
    if start in (b"{", b"[") or body.lstrip()[:4] == b"null":
        found = _json_head(body)
        return found if found.layout != "text" else _text_head(body)
    if start == b"<" and _XML.match(body) is not None:
        return Head("xml", [], None, _first_lines(body))
    return _table_head(body)


def pieces(content: bytes, head: Head, whole: bool) -> Iterator[Piece]:
    """The records in file order; `whole`: a document, an archive, a database, or a text is one record."""
    if head.layout == "lines":
        yield from _lines(content)
    elif head.layout == "table":
        yield from (_rows(content) if head.document is None else _elements(head.document))
    elif head.layout == "text" and not whole:
        yield from _text_lines(content)
    elif head.layout == "text":
        yield Piece(1, 0, content, content.removeprefix(_BOM).decode("utf-8", "replace"), None)
    elif head.layout == "xml":
        yield Piece(1, 0, content, content, None)
    elif whole or not isinstance(head.document, list):
        yield Piece(1, 0, content, head.document, None)
    else:
        yield from _elements(head.document)


def _elements(values: list[Any]) -> Iterator[Piece]:
    for number, element in enumerate(values, start=1):
        yield Piece(number, 0, orjson.dumps(element, default=str), element, None)


def _text_lines(content: bytes) -> Iterator[Piece]:
    offset = len(_BOM) if content.startswith(_BOM) else 0
    for number, line in enumerate(content[offset:].split(b"\n"), start=1):
        stripped = line.rstrip(b"\r")
        if stripped.strip():
            yield Piece(number, offset, stripped, stripped.decode("utf-8", "replace"), None)
        offset += len(line) + 1


def _first_lines(body: bytes) -> list[str]:
    return [line.decode("utf-8", "replace").rstrip("\r") for line in body[:65536].split(b"\n") if line.strip()][:_LOOK_AT]


def _text_head(body: bytes) -> Head:
    """Text where it is some: zeros are none."""
    if b"\0" in body[:1024]:
        return Head("text", [])
    lines = _first_lines(body)
    parsed = [_parsed(line.encode()) for line in lines]
    objects = [value for value, problem, _ in parsed if problem is None and isinstance(value, dict)]
    return Head("text", objects[:_KEEP], None, lines)


def _json_head(body: bytes) -> Head:
    """Lines where the first line is a JSON value of its own; else a document, if it is one; else lines, some of them bad."""
    lines = [line for line in body.split(b"\n", _LOOK_AT)[:_LOOK_AT] if line.strip()]
    parsed = [_parsed(line) for line in lines]
    objects = [value for value, problem, _ in parsed if problem is None and isinstance(value, dict)][:_KEEP]
    if len(lines) > 1 and parsed[0][1] is None:
        return Head("lines", objects)
    document, problem, _ = _parsed(body)
    if problem is not None:
        return Head("lines" if objects else "text", objects)
    if len(lines) == 1 and isinstance(document, dict):
        return Head("lines", objects, document)
    elements = document if isinstance(document, list) else [document]
    return Head("document", [each for each in elements if isinstance(each, dict)][:_KEEP], document)


def _table_head(body: bytes) -> Head:
    text = body[:65536].decode("utf-8", "replace")
    try:
        rows = [row for row, _ in zip(csv.reader(io.StringIO(text, newline="")), range(_KEEP + 1), strict=False)]
    except csv.Error:
        return _text_head(body)
    if b"\0" in body[:1024] or len(rows[0]) < 2 or not all(name.strip() for name in rows[0]):
        return _text_head(body)
    return Head("table", [dict(zip(rows[0], row, strict=False)) for row in rows[1:]], None, _first_lines(body))


def _lines(content: bytes) -> Iterator[Piece]:
    offset = len(_BOM) if content.startswith(_BOM) else 0
    for number, line in enumerate(content[offset:].split(b"\n"), start=1):
        stripped = line.strip()
        if stripped:
            yield Piece(number, offset, stripped, *_parsed(stripped))
        offset += len(line) + 1


def _rows(content: bytes) -> Iterator[Piece]:
    """Rows of a table; a quoted field may span lines, so offsets are counted over the text that the reader took.

    A quote that never closes makes the rest of the file one row: with a wrong number of fields it is a problem of that row.
    """
    text = content.removeprefix(_BOM).decode("utf-8", "replace")
    taken: list[str] = []
    reader = csv.reader(_watched(text, taken))
    names = next(reader, [])
    offset, line = len("".join(taken).encode()) + (len(_BOM) if content.startswith(_BOM) else 0), 1 + len(taken)
    taken.clear()
    for row in reader:
        raw = "".join(taken).encode()
        if row:
            problem = None if len(row) == len(names) else f"{len(row)} fields where the header has {len(names)}"
            value: Row = dict(zip(names, row, strict=False))
            yield Piece(line, offset, raw.strip(), value, problem)
        offset, line = offset + len(raw), line + len(taken)
        taken.clear()


def _watched(text: str, taken: list[str]) -> Iterator[str]:
    for line in io.StringIO(text, newline=""):
        taken.append(line)
        yield line


def _parsed(content: bytes) -> tuple[Any, str | None, str | None]:
    """Value of JSON text that can be written again, else what is wrong with it; and what of it is not as it was.

    What orjson refuses but others write is read: NaN and infinities as null, lone surrogates as `?`, bytes that are no
    UTF-8 as U+FFFD.
    """
    note = None
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError as error:
        problem = f"it is no JSON at column {error.colno} ({error.msg})"
        try:
            lax = json.loads(content.decode("utf-8", "replace"), parse_constant=lambda name: None)
            value = orjson.loads(json.dumps(lax, ensure_ascii=False).encode("utf-8", "replace"))
        except (ValueError, RecursionError):
            return None, problem, None
        note = f"{problem}; it is read with what is no JSON or no UTF-8 replaced; write it as UTF-8 JSON"
    if content.count(b"{") + content.count(b"[") > _DEEP and _is_too_deep(value):
        return None, f"it nests values deeper than {_DEEP} times", None
    return value, None, note


def _is_too_deep(value: Any) -> bool:
    try:
        orjson.dumps(value)
    except TypeError:
        return True
    return False
