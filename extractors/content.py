"""Read what a log file begins with, and the records of a chunk of it.

Input: unpacked bytes. Output: layout and first objects; records with position (line, byte offset) and bytes. A record is parsed
on demand: a line that is no JSON has no value but a problem."""

from __future__ import annotations

import codecs
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
from extractors.formats.values import object_in

BOM = b"\xef\xbb\xbf"
_XML = re.compile(rb"\s*<(\?xml|!DOCTYPE|!--|[A-Za-z_][\w.:-]*[\s/>])")
_NO_NAME = re.compile(r'^\s*$|^[\d\s.:-]+$|[{}<>]|\d{4}-\d\d-\d\d[T ]|^(data|event|id|retry):')
_ROW_NUMBER = "row_number"
"""Name of a first column that has none: an index, as data frames write it."""
_DELIMITERS = (",", ";", "\t", "|")
_CP_1252 = "traceroom_cp1252"
_N_LINES = 20
_KEEP = 5
_DEEP = 254
"""How deep orjson writes what it reads; a deeper value could not be stored."""


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
    notes: dict[int, str] = field(default_factory=dict)
    """What could not be taken as it lies there, of a record that has its value already."""

    def value(self, index: int) -> tuple[Any, str | None, str | None]:
        """Value of a record, why it has none, and what of it could not be taken as it lies there."""
        if index in self.problems:
            return None, self.problems[index], None
        if self.values is not None:
            return self.values[index], None, self.notes.get(index)
        content = self.contents[index]
        return (content.decode("utf-8", "replace"), None, None) if self.text else parsed(content)


    def first_values(self, most: int) -> Iterator[Any]:
        """Yield the values of the first records."""
        for index in range(min(most, len(self.contents))):
            value, problem, _ = self.value(index)
            if problem is None:
                yield value


def head_of(content: bytes, whole: bool = True) -> Head | None:
    """Read the layout and the first objects of a file (`whole`: all of it); None if it is a document that seems to go on.

    Errors: ValueError if an archive or a database cannot be opened."""
    if containers.claims(content):
        return containers.head_of(content) if whole else None
    body = content.removeprefix(BOM)
    start = body.lstrip()[:1]
    if start in (b"{", b"[") or body.lstrip()[:4] == b"null":
        head = _json_head(body, whole)
        return head if head is None or head.layout != "text" else text_head(body)
    if start == b"<" and _XML.match(body) is not None:
        return Head("xml", [], None, _first_lines(body)) if whole else None
    text = decoded(body[:65536])
    try:
        rows = list(itertools.islice(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter_of(text)), _KEEP + 1))
    except csv.Error:
        return text_head(body)
    # a header names columns: each differently, and none by a number, JSON, or with a quote that is not doubled
    names = rows[0] if rows and b"\0" not in body[:1024] else []
    if len(names) > 2 and names[0] == "" and all(row[:1] and row[0].isdecimal() for row in rows[1:]):
        names = [_ROW_NUMBER, *names[1:]]
    if len(names) < 2 or len(set(names)) < len(names) or any(
            _NO_NAME.search(name) or ('"' in name and name.replace('"', '""') not in text) for name in names):
        return text_head(body)
    return Head("table", [dict(zip(names, row, strict=False)) for row in rows[1:]], None, _first_lines(body))


def _first_lines(body: bytes) -> list[str]:
    return [line.decode("utf-8", "replace").rstrip("\r") for line in body[:65536].split(b"\n") if line.strip()][:_N_LINES]


def records_of(content: bytes, layout: Layout, whole: bool = False, document: Any = None, header: bytes = b"",
               line: int = 1, byte_offset: int = 0) -> Records:
    """Split a chunk that begins at `line` and `byte_offset` of its file into records.

    `whole`: a document, an archive, a database or a text is one record. `document`: its parsed value. `header`: first row of
    the table that the chunk continues."""
    if layout == "lines":
        return _split(content, line, byte_offset, lambda lines: [each.strip() for each in lines])
    if layout == "table" and document is None and not containers.claims(content):
        return _rows(content, header, line, byte_offset)
    if layout == "text" and not whole:
        records = _split(content, line, byte_offset, lambda records: [each.rstrip(b"\r") for each in records])
        records.text = True
        return records
    if layout == "text":
        return Records([1], [0], [content], [content.removeprefix(BOM).decode("utf-8", "replace")])
    if layout == "xml":
        return Records([1], [0], [content], [content])
    if document is not None:
        value = document
    else:
        packed = containers.head_of(content)
        value = parsed(content.removeprefix(BOM))[0] if packed is None else packed.document
    if whole or not isinstance(value, list):
        return Records([1], [0], [content], [value])
    elements = [orjson.dumps(element, default=str) for element in value]
    return Records(list(range(1, len(value) + 1)), [0] * len(value), elements, value)


def header_of(content: bytes) -> bytes:
    """Return the first row of a table as bytes."""
    taken: list[str] = []
    text = decoded(content.removeprefix(BOM))
    next(csv.reader(_watched(text, taken), delimiter=delimiter_of(text)), None)
    return "".join(taken).encode()


def decoded(content: bytes) -> str:
    """Return text in UTF-8; a byte that is none is a character of Windows-1252, which Latin-1 is a part of."""
    return content.decode("utf-8", _CP_1252)


def _in_windows(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    bad = error.object[error.start:error.start + 1]
    return bad.decode("cp1252", "replace"), error.start + 1


codecs.register_error(_CP_1252, _in_windows)


def delimiter_of(text: str) -> str:
    """Return what separates the columns of a table: the character that its first line holds most of, outside quotes."""
    line = re.sub(r'"(?:[^"]|"")*"', "", text[:65536].lstrip("\n\r").partition("\n")[0])
    return max(_DELIMITERS, key=line.count)


def _json_head(body: bytes, whole: bool) -> Head | None:
    """Lines where the first line is a JSON value of its own; else a document, if it is one; else lines, some of them bad."""
    lines = [line for line in body.split(b"\n", _N_LINES)[:_N_LINES] if line.strip()]
    if not whole and len(lines) > 1:
        lines.pop()
    first_parsed = [parsed(line) for line in lines]
    values = [value for value, problem, _ in first_parsed if problem is None]
    objects = [value for value in values if isinstance(value, dict)][:_KEEP]
    if not objects and len(values) > 1:   # a list a line
        objects = [each for value in values if isinstance(value, list) for each in value if isinstance(each, dict)][:_KEEP]
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


def text_head(body: bytes) -> Head:
    """Read the first lines as text; none if it holds zero bytes."""
    if b"\0" in body[:1024]:
        return Head("text", [])
    lines = _first_lines(body)
    values = [parsed(line.encode()) for line in lines]
    objects = [value for value, problem, _ in values if problem is None and isinstance(value, dict)]
    return Head("text", objects[:_KEEP], None, lines)


def _split(content: bytes, line: int, byte_offset: int, trimmed: Callable[[list[bytes]], list[bytes]]) -> Records:
    mark = len(BOM) if content.startswith(BOM) else 0
    lines = content[mark:].split(b"\n")
    offsets = itertools.accumulate((len(each) + 1 for each in lines), initial=byte_offset + mark)
    contents = trimmed(lines)
    if all(map(bytes.strip, contents[:-1])):
        n_lines = len(contents) if contents[-1].strip() else len(contents) - 1
        return Records(list(range(line, line + n_lines)), list(itertools.islice(offsets, n_lines)), contents[:n_lines])
    kept = [(n, at, each) for n, at, each in zip(itertools.count(line), offsets, contents, strict=False) if each.strip()]
    return Records([n for n, _, _ in kept], [at for _, at, _ in kept], [each for _, _, each in kept])


def _rows(content: bytes, header: bytes, line: int, byte_offset: int) -> Records:
    """Read the rows of a table. Offsets are counted over the text that the reader took, as a quoted field may span lines.

    A quote that never closes makes the rest of the chunk one row, with a problem: a wrong number of fields."""
    records = Records([], [], [], [])
    values: list[Any] = []
    mark = len(BOM) if content.startswith(BOM) else 0
    taken: list[str] = []
    text = decoded(header + content[mark:])
    reader = csv.reader(_watched(text, taken), delimiter=delimiter_of(text))
    names = next(reader, [])
    if len(names) > 2 and names[0] == "":
        names[0] = _ROW_NUMBER
    if not header:
        byte_offset, line = byte_offset + len("".join(taken).encode()) + mark, line + len(taken)
    taken.clear()
    while True:
        is_too_long = False
        try:
            row = next(reader)
        except StopIteration:
            break
        except csv.Error:   # a field longer than `csv` reads: what it took is one row with a problem
            row, is_too_long = ["a field longer than the reader takes"], True
        raw = "".join(taken).encode()
        if row:
            if is_too_long or len(row) != len(names):
                records.problems[len(records.lines)] = f"{len(row)} fields where the header has {len(names)}"
            records.lines.append(line)
            records.byte_offsets.append(byte_offset)
            records.contents.append(raw.strip())
            values.append(dict(zip(names, row, strict=False)))
        byte_offset, line = byte_offset + len(raw), line + len(taken)
        taken.clear()
    records.values = values
    return records


def _watched(text: str, taken: list[str]) -> Iterator[str]:
    for line in io.StringIO(text, newline=""):
        taken.append(line)
        yield line


def parsed(content: bytes) -> tuple[Any, str | None, str | None]:
    """Parse JSON: the value, else the problem, and a note on what was replaced.

    Reads what orjson rejects: NaN and infinities as null, lone surrogates as `?`, bytes that are no UTF-8 as U+FFFD."""
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
    if content.count(b"{") + content.count(b"[") > _DEEP:
        try:
            orjson.dumps(value)
        except TypeError:
            return None, f"it nests values deeper than {_DEEP} times", None
    return value, None, note


def object_of(text: str | None) -> dict[str, Any]:
    """Parse a JSON object; empty if the text is none."""
    return (object_in(text) if text else None) or {}
