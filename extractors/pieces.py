"""A log file as pieces of bounded size, each read and committed by itself.

A file that lies in lines is cut after a line, at the last one that ends within `PIECE_BYTES`; where the file begins anew after
its piece depends on its content alone, so a file that has grown is cut at the same places, and only its last piece is another.
A document, an archive or a database is one piece, of at most `containers.MOST_BYTES` unpacked; so long may a piece be of a
format whose records cannot be read apart from each other.
Memory: one piece, and a line of at most `MOST_RECORD` bytes; a longer line is passed over and becomes a verdict.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from extractors import containers
from extractors.content import head_of, header_of, text_head
from extractors.formats import named, recognise
from extractors.formats.format import Layout
from extractors.inventory import SourceFile
from extractors.streams import Stream

PIECE_BYTES = 1 << 24
MOST_RECORD = 1 << 26
_BEGIN = 1 << 20
_LINES: tuple[Layout, ...] = ("lines", "text", "table")
_TOO_LARGE = f"is one document of more than {containers.MOST_BYTES >> 20} MiB; write it as JSON lines, or split it"
_UNKNOWN = ("is in no format that is known; name one under `format` in the configuration, describe it with `traceroom sniff`, "
            "or add a format (docs/formats.md)")
_PROSE = (".md", ".rst", ".pdf", ".html")
_PROSE_NAMES = ("licence", "license", "notice", "readme", "source", "changelog", "copying", "authors")


class Left(NamedTuple):
    """A file that is not read, or the rest of one: why in a word, and the rest of the sentence that begins with its name."""

    reason: str
    detail: str
    file_id: str
    n_bytes: int
    """Of the whole file, as it lies there."""
    previous: str | None = None
    """The piece before it."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of whole records of one file."""

    file_id: str
    """sha256 over source, the piece before it and content, first 32 hex digits: the same id says that the file is the same from
    its beginning to the end of this piece."""
    number: int
    """0-based."""
    line: int
    """1-based number of its first line."""
    byte_offset: int
    """Where it begins in the unpacked file."""
    content: bytes
    last: bool
    """The file ends with it: it may grow."""
    too_long: int = 0
    """Not 0: it is one line of so many bytes, too long to be read; `content` is its beginning."""
    previous: str | None = None
    """Id of the piece before it."""
    replaces: tuple[str, ...] = ()
    """Ids of pieces that ended here before the file grew: what they hold is in this one and those that follow."""


Earlier = Callable[[str | None], Mapping[int, Collection[str]]]
"""Gives what ended a file after the piece with that id (None: at its beginning) when it was read before: ids by their bytes."""


@dataclass(frozen=True)
class Log:
    """What reading any piece of a file needs to know of it; travels between processes."""

    source_file: SourceFile
    format: str
    layout: Layout
    whole: bool = False
    """Its format takes a document or a text as one record."""
    apart: bool = True
    """Its records can be read apart from each other."""
    header: bytes = b""
    """First row of a table."""
    document: Any = field(default=None, repr=False)
    """Value of a file that is one document, while it stays in this process."""


def opened(source_file: SourceFile, earlier: Earlier = lambda previous: {}) -> tuple[Log, Iterator[Piece | Left]] | Left:
    """What the file is, and its pieces; a file that is damaged further on ends with a `Left`.

    Errors: OSError where it cannot be opened, `Missing` for an unknown format.
    """
    n_bytes = source_file.stamp().n_bytes
    file = source_file.open()
    try:
        stream = Stream(file, n_bytes)   # raises no ValueError
        found = _looked_at(source_file, stream, n_bytes)
    except ValueError as error:   # an archive or a database that cannot be opened
        left = _damaged(source_file, stream, str(error), None, n_bytes)
        file.close()
        return left
    except BaseException:
        file.close()
        raise
    if isinstance(found, Left):
        file.close()
        return found
    return found, _pieces(found, stream, earlier, n_bytes)


def _looked_at(source_file: SourceFile, stream: Stream, n_bytes: int) -> Log | Left:
    whole = stream.fill(_BEGIN)
    begin = stream.held
    nothing = _content_id(source_file, None, b"%d\0" % n_bytes + begin[:_BEGIN])
    if _is_prose(source_file):
        return Left("not_a_log", "is prose beside the logs; nothing to mend", nothing, n_bytes)
    if stream.damage and b"\n" not in begin:
        return _damaged(source_file, stream, stream.damage, None, n_bytes)
    if whole and not begin.strip():
        return Left("empty_file", "is empty; nothing to mend", nothing, n_bytes)
    head = head_of(begin, whole and not stream.damage)
    if head is None:
        if not stream.fill(containers.MOST_BYTES + 1):
            return Left("too_large", _TOO_LARGE, nothing, n_bytes)
        if stream.damage:
            return _damaged(source_file, stream, stream.damage, None, n_bytes)
        head = head_of(stream.held, True)
    assert head is not None, "what is whole has a head"
    chosen = source_file.source.format
    log_format = named(chosen) if chosen else recognise(head)
    if log_format is None and head.layout == "table":   # lines of text with commas in them
        head = text_head(begin)
        log_format = recognise(head)
    if log_format is None:
        return Left("unknown_format", _UNKNOWN, nothing, n_bytes)
    document = head.document if head.layout != "lines" else None
    header = header_of(begin) if head.layout == "table" and document is None else b""
    return Log(source_file, log_format.name, head.layout, log_format.whole, log_format.apart, header, document)


def _pieces(log: Log, stream: Stream, earlier: Earlier, n_bytes: int) -> Iterator[Piece | Left]:
    in_lines = log.layout in _LINES and not (log.layout == "text" and log.whole) and log.document is None
    previous = None
    try:
        if in_lines:
            for piece in _cut(log, stream, earlier):
                previous = piece.file_id
                yield piece
        elif not stream.fill(containers.MOST_BYTES + 1):
            yield Left("too_large", _TOO_LARGE, _content_id(log.source_file, None, stream.held), n_bytes)
        elif not stream.damage:
            replaces = _replaced(log, earlier, None, b"", stream.held)
            yield Piece(_content_id(log.source_file, None, stream.held), 0, 1, 0, stream.held, True, replaces=replaces)
        if stream.damage:
            yield _damaged(log.source_file, stream, stream.damage, previous, n_bytes)
    finally:
        stream.close()


def _cut(log: Log, stream: Stream, earlier: Earlier) -> Iterator[Piece]:
    """The pieces of a file in lines; of a damaged one, its whole lines before the damage."""
    number, line, size = 0, 1, PIECE_BYTES if log.apart else containers.MOST_BYTES
    previous: str | None = None
    while not stream.ended:
        offset, too_long = stream.n_taken, 0
        stream.fill(size + 1)
        end = _end(stream.held, size, log.layout) if len(stream.held) > size else len(stream.held)
        if end == 0:
            end = stream.line_end(MOST_RECORD)
        if stream.damage and end == len(stream.held):
            end = _end(stream.held, end, log.layout)
            if end == 0:
                return
        header = log.header if number else b""
        replaces = _replaced(log, earlier, previous, header, stream.held)
        if end:
            content = stream.take(end)
            n_lines = content.count(b"\n")
        else:
            content = stream.held[:_BEGIN]
            too_long, n_lines = stream.pass_over_line(), 1
        file_id = _content_id(log.source_file, previous, header + content)
        yield Piece(file_id, number, line, offset, content, stream.ended and not stream.damage, too_long, previous, replaces)
        number, line, previous = number + 1, line + n_lines, file_id


def _end(held: bytes, size: int, layout: Layout) -> int:
    """Where a piece ends that begins with `held`: after the last whole record within its size, 0 where there is none."""
    at = held.rfind(b"\n", 0, size) + 1
    if layout == "text":   # a line that begins with white space goes on with the one before
        back = at
        while back and held[back:back + 1] in (b" ", b"\t"):
            back = held.rfind(b"\n", 0, back - 1) + 1
        return back or at
    if layout == "table":   # a quoted field may hold line ends
        while at and held.count(b'"', 0, at) % 2:
            at = held.rfind(b"\n", 0, at - 1) + 1
    return at


def _replaced(log: Log, earlier: Earlier, previous: str | None, header: bytes, held: bytes) -> tuple[str, ...]:
    """Which of the pieces that ended the file here before are the beginning of what is held."""
    found, at = [], 0
    digest = _begun(log.source_file, previous, header)
    for n_bytes, ids in sorted(earlier(previous).items()):
        if not ids or n_bytes > len(held):
            continue
        digest.update(memoryview(held)[at:n_bytes])
        at, file_id = n_bytes, digest.hexdigest()[:32]
        if file_id in ids:
            found.append(file_id)
    return tuple(found)


def _content_id(source_file: SourceFile, previous: str | None, content: bytes) -> str:
    return _begun(source_file, previous, content).hexdigest()[:32]


def _begun(source_file: SourceFile, previous: str | None, content: bytes) -> hashlib._Hash:
    digest = hashlib.sha256(f"{source_file.source.name}\0{previous or ''}\0".encode())
    digest.update(content)
    return digest


def _damaged(source_file: SourceFile, stream: Stream, damage: str, previous: str | None, n_bytes: int) -> Left:
    beyond = f" beyond byte {stream.n_taken}" if previous else ""
    file_id = _content_id(source_file, previous, b"damaged\0%d\0%d\0" % (n_bytes, stream.n_taken) + stream.begin(_BEGIN))
    return Left("unreadable_file", f"cannot be unpacked{beyond}: {damage}; copy it again", file_id, n_bytes, previous)


def _is_prose(source_file: SourceFile) -> bool:
    path = PurePosixPath(source_file.relative.lower())
    return path.suffix in _PROSE or (path.suffix in ("", ".txt") and path.stem in _PROSE_NAMES)
