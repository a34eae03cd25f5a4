"""A log file as pieces of bounded size, each read and committed by itself.

A file that lies in lines is cut after a line, at the last one that ends within `PIECE_BYTES`; where the file begins anew after
its piece depends on its content alone, so a file that has grown is cut at the same places, and only its last piece is another.
A document, an archive or a database is one piece, of at most `containers.MOST_BYTES` unpacked; so long may a piece be of a
format whose records cannot be read apart from each other.
Memory: one piece, and a line of at most `MOST_RECORD` bytes; a longer line is passed over and becomes a verdict.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any, BinaryIO, NamedTuple

from extractors import containers
from extractors.content import head_of, header_of, text_head
from extractors.formats import named, recognise
from extractors.formats.format import Layout
from extractors.inventory import SourceFile

PIECE_BYTES = 1 << 25
MOST_RECORD = 1 << 26
_BEGIN = 1 << 20
_STEP = 1 << 22
_PACKED_MOST, _PACKED_RATIO = 1 << 30, 300
"""A packed file that unpacks to more than both is a bomb."""
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
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


@dataclass(frozen=True, slots=True)
class Piece:
    """A run of whole records of one file."""

    file_id: str
    """sha256 over source, number and content, first 32 hex digits: what the ledger knows it by."""
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


def opened(source_file: SourceFile) -> tuple[Log, Iterator[Piece | Left]] | Left:
    """What the file is, and its pieces; a file that is damaged further on ends with a `Left`.

    Errors: OSError where it cannot be opened, `Missing` for an unknown format.
    """
    file = source_file.open()
    try:
        stream = _Stream(file, source_file.stamp().n_bytes)
        found = _looked_at(source_file, stream)
    except BaseException as error:
        file.close()
        if _is_damage(error):
            return _damaged(source_file, error, b"")
        raise
    if isinstance(found, Left):
        file.close()
        return found
    return found, _pieces(found, stream)


def _looked_at(source_file: SourceFile, stream: _Stream) -> Log | Left:
    whole = stream.fill(_BEGIN)
    begin = stream.held
    nothing = _content_id(source_file, 0, b"%d\0" % source_file.stamp().n_bytes + begin[:_BEGIN])
    if _is_prose(source_file):
        return Left("not_a_log", "is prose beside the logs; nothing to mend", nothing)
    if whole and not begin.strip():
        return Left("empty_file", "is empty; nothing to mend", nothing)
    head = head_of(begin, whole)
    if head is None:
        if not stream.fill(containers.MOST_BYTES + 1):
            return Left("too_large", _TOO_LARGE, nothing)
        head = head_of(stream.held, True)
    assert head is not None, "what is whole has a head"
    chosen = source_file.source.format
    log_format = named(chosen) if chosen else recognise(head)
    if log_format is None and head.layout == "table":   # lines of text with commas in them
        head = text_head(begin)
        log_format = recognise(head)
    if log_format is None:
        return Left("unknown_format", _UNKNOWN, nothing)
    document = head.document if head.layout != "lines" else None
    header = header_of(begin) if head.layout == "table" and document is None else b""
    return Log(source_file, log_format.name, head.layout, log_format.whole, log_format.apart, header, document)


def _pieces(log: Log, stream: _Stream) -> Iterator[Piece | Left]:
    in_lines = log.layout in _LINES and not (log.layout == "text" and log.whole) and log.document is None
    try:
        if in_lines:
            yield from _cut(log, stream)
        elif stream.fill(containers.MOST_BYTES + 1):
            content = stream.held
            yield Piece(_content_id(log.source_file, 0, content), 0, 1, 0, content, True)
        else:
            yield Left("too_large", _TOO_LARGE, _content_id(log.source_file, 0, stream.held))
    except (*containers.DAMAGED, ValueError) as error:
        if not _is_damage(error):
            raise
        yield _damaged(log.source_file, error, b"%d" % stream.n_taken)
    finally:
        stream.close()


def _cut(log: Log, stream: _Stream) -> Iterator[Piece]:
    """The pieces of a file in lines."""
    number, line, size = 0, 1, PIECE_BYTES if log.apart else containers.MOST_BYTES
    while not stream.ended:
        offset, too_long = stream.n_taken, 0
        stream.fill(size + 1)
        end = _end(stream.held, size, log.layout) if len(stream.held) > size else len(stream.held)
        if end == 0:
            end = stream.line_end(MOST_RECORD)
        if end:
            content = stream.take(end)
            n_lines = content.count(b"\n")
        else:
            content = stream.held[:_BEGIN]
            too_long, n_lines = stream.pass_over_line(), 1
        header = log.header if number else b""
        yield Piece(_content_id(log.source_file, number, header + content), number, line, offset, content, stream.ended,
                    too_long)
        number, line = number + 1, line + n_lines


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


class _Stream:
    """The unpacked content of a file, read as it is needed."""

    def __init__(self, file: BinaryIO, n_bytes: int) -> None:
        self._file = file
        self._stream = containers.stream(file)
        self._most = max(_PACKED_MOST, _PACKED_RATIO * n_bytes)
        self._read_all = False
        self.held = b""
        """Read, not taken."""
        self.n_taken = 0
        self.fill(len(_UTF_16[0]))
        if self.held[:2] in _UTF_16:
            self._recode()

    @property
    def ended(self) -> bool:
        """Whether all was taken."""
        return not self.held and self.fill(1)

    def fill(self, n_bytes: int) -> bool:
        """Hold at least `n_bytes` if there are so many; True: what is held is all that is left."""
        missing = n_bytes - len(self.held)
        if missing > 0 and not self._read_all:
            more = [self.held]
            while missing > 0 and (step := self._stream.read(min(missing, _STEP))):
                more.append(step)
                missing -= len(step)
            self._read_all = missing > 0
            self.held = b"".join(more)
            if self._stream is not self._file and self.n_taken + len(self.held) > self._most:
                raise ValueError(f"it unpacks to more than {self._most >> 20} MiB")
        return self._read_all or not self._more()

    def _more(self) -> bool:
        step = self._stream.read(1)
        self.held += step
        self._read_all = not step
        return bool(step)

    def take(self, n_bytes: int) -> bytes:
        """Take what is held."""
        taken, self.held = self.held[:n_bytes], self.held[n_bytes:]
        self.n_taken += len(taken)
        return taken

    def line_end(self, most: int) -> int:
        """Where the line that is held ends, 0 where it is longer than `most`."""
        looked = 0
        while True:
            whole = self.fill(min(len(self.held) + _STEP, most))
            at = self.held.find(b"\n", looked, most) + 1
            if at or whole or len(self.held) >= most:
                return at or (len(self.held) if whole and len(self.held) <= most else 0)
            looked = len(self.held)

    def pass_over_line(self) -> int:
        """Take a line of any length without keeping it; gives its length."""
        before = self.n_taken
        while (at := self.held.find(b"\n") + 1) == 0 and self.held:
            self.take(len(self.held))
            self.fill(_STEP)
        self.take(at)
        return self.n_taken - before

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _recode(self) -> None:
        """UTF-16 to UTF-8, as a whole."""
        if not self.fill(containers.MOST_BYTES + 1):
            raise ValueError(f"it is UTF-16 of more than {containers.MOST_BYTES >> 20} MiB; write it as UTF-8")
        try:
            self.held = self.held.decode("utf-16").encode()
        except UnicodeError as error:
            raise ValueError(f"it begins as UTF-16 but is none ({error})") from error


def begins_with(log: Log, piece: Piece, file_id: str, n_bytes: int) -> bool:
    """Whether the piece that the ledger knows by `file_id`, of `n_bytes`, is the beginning of this one."""
    header = log.header if piece.number else b""
    return _content_id(log.source_file, piece.number, header + piece.content[:n_bytes]) == file_id


def _content_id(source_file: SourceFile, number: int, content: bytes) -> str:
    digest = hashlib.sha256(f"{source_file.source.name}\0{number}\0".encode())
    digest.update(content)
    return digest.hexdigest()[:32]


def _is_damage(error: BaseException) -> bool:
    """Whether the content is at fault, not the disk or the code."""
    return isinstance(error, ValueError) or (
        isinstance(error, containers.DAMAGED) and not (isinstance(error, OSError) and error.errno is not None))


def _damaged(source_file: SourceFile, error: BaseException, place: bytes) -> Left:
    return Left("unreadable_file", f"cannot be unpacked: {error}; copy it again", _content_id(source_file, -1, place))


def _is_prose(source_file: SourceFile) -> bool:
    path = PurePosixPath(source_file.relative.lower())
    return path.suffix in _PROSE or (path.suffix in ("", ".txt") and path.stem in _PROSE_NAMES)
