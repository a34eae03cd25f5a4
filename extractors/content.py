"""What a log file begins with, and the records of a piece of it.

In: bytes that are unpacked already. Out: the layout and the first objects; the records, each with where it lies (line, byte
offset) and its bytes. A record is parsed when it is asked for: a line that is no JSON has no value, but what is wrong with it.
"""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import orjson

from extractors import containers
from extractors.formats.format import Head, Layout

BOM = b"\xef\xbb\xbf"
_XML = re.compile(rb"\s*<(\?xml|!DOCTYPE|!--|[A-Za-z_][\w.:-]*[\s/>])")
_NO_NAME = re.compile(r'^\s*$|^[\d\s.:-]+$|[{}<>]|\d{4}-\d\d-\d\d[T ]|^(data|event|id|retry):')
_LOOK_AT = 20
_KEEP = 5
_DEEP = 254
"""How deep orjson writes what it reads; a deeper value could be told, but never written down."""


@dataclass(slots=True)
class Records:
    """Records of a piece of a file, in columns of equal length, in file order."""

    lines: list[int]
    """1-based line, or element of a document."""
    byte_offsets: list[int]
    contents: list[bytes]
    values: list[Any] | None = None
    """What each says; None: they are JSON (or text), to be parsed when asked for."""
    text: bool = False
    """They are lines of text."""
    problems: dict[int, str] = field(default_factory=dict)
    """Why the record at an index has no value."""

    def value(self, index: int) -> tuple[Any, str | None, str | None]:
        """Value of a record, why it has none, and what of it could not be taken as it lies there."""
        if index in self.problems:
            return None, self.problems[index], None
        if self.values is not None:
            return self.values[index], None, None
        content = self.contents[index]
        return (content.decode("utf-8", "replace"), None, None) if self.text else parsed(content)


def head_of(content: bytes, whole: bool = True) -> Head | None:
    """Layout and first objects of what a file begins with; `whole`: it is all of the file.

    None: it looks like a document that goes on beyond `content`. Errors: ValueError where an archive or a database cannot be
    opened.
    """
    if containers.claims(content):
        return containers.head_of(content) if whole else None
    body = content.removeprefix(BOM)
    start = body.lstrip()[:1]
    if start in (b"{", b"[") or body.lstrip()[:4] == b"null":
        found = _json_head(body, whole)
        return found if found is None or found.layout != "text" else text_head(body)
    if start == b"<" and _XML.match(body) is not None:
        return Head("xml", [], None, _first_lines(body)) if whole else None
    return _table_head(body)


def records_of(content: bytes, layout: Layout, whole: bool = False, document: Any = None, header: bytes = b"",
               line: int = 1, byte_offset: int = 0) -> Records:
    """The records of a piece that begins at `line` and `byte_offset` of its file.

    `whole`: a document, an archive, a database or a text is one record. `document`: its value where that is known already.
    `header`: first row of the table that the piece goes on with.
    """
    if layout == "lines":
        return _lines(content, line, byte_offset)
    if layout == "table" and document is None and not containers.claims(content):
        return _rows(content, header, line, byte_offset)
    if layout == "text" and not whole:
        return _text_lines(content, line, byte_offset)
    if layout == "text":
        return Records([1], [0], [content], [content.removeprefix(BOM).decode("utf-8", "replace")])
    if layout == "xml":
        return Records([1], [0], [content], [content])
    value = document if document is not None else _document(content)
    if whole or not isinstance(value, list):
        return Records([1], [0], [content], [value])
    elements = [orjson.dumps(element, default=str) for element in value]
    return Records(list(range(1, len(value) + 1)), [0] * len(value), elements, value)


def _document(content: bytes) -> Any:
    """The value of a file that is one document, an archive, a database or a Parquet table."""
    packed = containers.head_of(content)
    return parsed(content.removeprefix(BOM))[0] if packed is None else packed.document


def header_of(content: bytes) -> bytes:
    """The first row of a table, as it lies there."""
    taken: list[str] = []
    next(csv.reader(_watched(content.removeprefix(BOM).decode("utf-8", "replace"), taken)), None)
    return "".join(taken).encode()


def _json_head(body: bytes, whole: bool) -> Head | None:
    """Lines where the first line is a JSON value of its own; else a document, if it is one; else lines, some of them bad."""
    lines = [line for line in body.split(b"\n", _LOOK_AT)[:_LOOK_AT] if line.strip()]
    if not whole and len(lines) > 1:
        lines.pop()
    first_parsed = [parsed(line) for line in lines]
    objects = [value for value, problem, _ in first_parsed if problem is None and isinstance(value, dict)][:_KEEP]
    if len(lines) > 1 and sum(problem is None for _, problem, _ in first_parsed) * 2 < len(lines) and objects and (
            first_parsed[0][1] is None or not whole or parsed(body)[1] is not None):
        return Head("text", objects)   # some lines are JSON, most are not
    if first_parsed[0][1] is None and (len(lines) > 1 or not whole):
        return Head("lines", objects)
    if not whole:
        return Head("lines", objects) if objects else None
    document, problem, _ = parsed(body)
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
        return text_head(body)
    if b"\0" in body[:1024] or not rows or not _is_header(rows[0], text):
        return text_head(body)
    return Head("table", [dict(zip(rows[0], row, strict=False)) for row in rows[1:]], None, _first_lines(body))


def _is_header(names: list[str], text: str) -> bool:
    """Whether a first row names columns: each differently, and none by a number, JSON, or with a quote that is not doubled."""
    return len(names) > 1 and len(set(names)) == len(names) and not any(
        _NO_NAME.search(name) or ('"' in name and name.replace('"', '""') not in text) for name in names)


def text_head(body: bytes) -> Head:
    """Text where it is some: zeros are none."""
    if b"\0" in body[:1024]:
        return Head("text", [])
    lines = _first_lines(body)
    values = [parsed(line.encode()) for line in lines]
    objects = [value for value, problem, _ in values if problem is None and isinstance(value, dict)]
    return Head("text", objects[:_KEEP], None, lines)


def _first_lines(body: bytes) -> list[str]:
    return [line.decode("utf-8", "replace").rstrip("\r") for line in body[:65536].split(b"\n") if line.strip()][:_LOOK_AT]


def _lines(content: bytes, line: int, byte_offset: int) -> Records:
    """The lines that are not blank, without white space at their ends."""
    return _split(content, line, byte_offset, lambda found: [each.strip() for each in found])


def _text_lines(content: bytes, line: int, byte_offset: int) -> Records:
    """The lines that are not blank; white space at their beginning may mean something."""
    found = _split(content, line, byte_offset, lambda found: [each.rstrip(b"\r") for each in found])
    found.text = True
    return found


def _split(content: bytes, line: int, byte_offset: int, trimmed: Callable[[list[bytes]], list[bytes]]) -> Records:
    mark = len(BOM) if content.startswith(BOM) else 0
    found = content[mark:].split(b"\n")
    offsets = itertools.accumulate((len(each) + 1 for each in found), initial=byte_offset + mark)
    contents = trimmed(found)
    if all(map(bytes.strip, contents[:-1])):
        n_lines = len(contents) if contents[-1].strip() else len(contents) - 1
        return Records(list(range(line, line + n_lines)), list(itertools.islice(offsets, n_lines)), contents[:n_lines])
    kept = [(n, at, each) for n, at, each in zip(itertools.count(line), offsets, contents, strict=False) if each.strip()]
    return Records([n for n, _, _ in kept], [at for _, at, _ in kept], [each for _, _, each in kept])


def _rows(content: bytes, header: bytes, line: int, byte_offset: int) -> Records:
    """Rows of a table; a quoted field may span lines, so offsets are counted over the text that the reader took.

    A quote that never closes makes the rest of the piece one row: with a wrong number of fields it is a problem of that row.
    """
    found = Records([], [], [], [])
    values: list[Any] = []
    mark = len(BOM) if content.startswith(BOM) else 0
    taken: list[str] = []
    reader = csv.reader(_watched((header + content[mark:]).decode("utf-8", "replace"), taken))
    names = next(reader, [])
    if not header:
        byte_offset, line = byte_offset + len("".join(taken).encode()) + mark, line + len(taken)
    taken.clear()
    for row in _told(reader):
        raw = "".join(taken).encode()
        if row:
            if row == _TOO_LONG or len(row) != len(names):
                found.problems[len(found.lines)] = f"{len(row)} fields where the header has {len(names)}"
            found.lines.append(line)
            found.byte_offsets.append(byte_offset)
            found.contents.append(raw.strip())
            values.append(dict(zip(names, row, strict=False)))
        byte_offset, line = byte_offset + len(raw), line + len(taken)
        taken.clear()
    found.values = values
    return found


_TOO_LONG = ["a field longer than the reader takes"]


def _told(reader: Iterator[list[str]]) -> Iterator[list[str]]:
    """The rows; where a field is longer than `csv` reads, what it took is one row with a problem."""
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except csv.Error:
            row = _TOO_LONG
        yield row


def _watched(text: str, taken: list[str]) -> Iterator[str]:
    for line in io.StringIO(text, newline=""):
        taken.append(line)
        yield line


def parsed(content: bytes) -> tuple[Any, str | None, str | None]:
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

