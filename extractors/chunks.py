"""A log file as chunks of bounded size, each read and committed by itself.

A file that lies in lines is cut after a line, at the last one that ends within `CHUNK_BYTES`. Where a file begins anew after
its chunk depends on its content alone: a file that has grown is cut at the same places, and only its last chunk is another.
A document, an archive or a database is one chunk, of at most `containers.MOST_BYTES` unpacked; so long may a chunk be of a
format whose records cannot be read apart from each other.
Memory: one chunk, and a line of at most `MOST_RECORD` bytes; a longer line is passed over and becomes a decision.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from extractors import containers
from extractors.containers import Stream
from extractors.content import Records, head_of, header_of, records_of, text_head
from extractors.formats import Format, named, recognise
from extractors.formats.format import Layout
from extractors.inventory import SourceFile
from extractors.wrappings import Wrapping, find_wrapped

CHUNK_BYTES = 1 << 24
MOST_RECORD = 1 << 26
_BEGIN = 1 << 20
_LINES: tuple[Layout, ...] = ("lines", "text", "table")
_TOO_LARGE = f"is one document of more than {containers.MOST_BYTES >> 20} MiB; write it as JSON lines, or split it"
_NAMED_BY_HASH = re.compile("[0-9a-f]{64}")
_UNKNOWN = ("is in no format that is known; name one under `format` in the configuration, describe it with `traceroom sniff`, "
            "or add a format (docs/formats.md)")
_PROSE = (".md", ".rst", ".pdf", ".html")
_CONFIGURATION = "traceroom.toml"
_PROSE_NAMES = ("licence", "license", "notice", "readme", "source", "changelog", "copying", "authors")


class RejectedFile(NamedTuple):
    """A file that is not read, or the rest of one: why in a word, and the rest of the sentence that begins with its name."""

    reason: str
    detail: str
    file_id: str
    n_bytes: int
    """Of the whole file, as it lies there."""
    previous: str | None = None
    """The chunk before it."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A run of whole records of one file."""

    file_id: str
    """First 32 hex digits of sha256 over source, the chunk before it and content: equal ids mean equal files up to its end."""
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
    n_zero: int = 0
    """Of the last chunk: zero bytes of the file that were skipped (containers.Stream)."""
    previous: str | None = None
    """Id of the chunk before it."""
    replaces: tuple[str, ...] = ()
    """Ids of chunks that ended here before the file grew: what they hold is in this one and those that follow."""


Earlier = Callable[[str | None], Mapping[int, Collection[str]]]
"""Gives what ended a file after the chunk with that id (None: at its beginning) when it was read before: ids by their bytes."""


@dataclass(frozen=True)
class Log:
    """What reading any chunk of a file needs to know of it; travels between processes."""

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
    first_fields: tuple[str, ...] = ()
    """Names of the fields of its first record, sorted."""
    wrapping: Wrapping | None = None
    """How its records lie in those of the file; None: they are those of the file."""

    def records(self, chunk: Chunk) -> Records:
        """Return the records of one of its chunks."""
        header = self.header if chunk.number else b""
        if self.wrapping is not None:
            return self.wrapping.records(chunk.content, self.layout, self.document, header, chunk.line, chunk.byte_offset)
        return records_of(chunk.content, self.layout, self.whole, self.document, header, chunk.line, chunk.byte_offset)

    def with_format(self, log_format: Format, wrapping: Wrapping | None, objects: Sequence[Any]) -> Log:
        """Return the log as a format reads it; `objects`: its first records."""
        first = objects[0] if objects and isinstance(objects[0], dict) else {}
        return replace(self, format=log_format.name, whole=log_format.whole and wrapping is None, apart=log_format.apart,
                       wrapping=wrapping, first_fields=tuple(sorted(map(str, first))))


def opened(source_file: SourceFile, earlier: Earlier = lambda previous: {}) -> (
        tuple[Log, Iterator[Chunk | RejectedFile]] | RejectedFile):
    """Open a file: its log and its chunks. A damaged file ends with a `RejectedFile`. Errors: OSError; `Missing` (format)."""
    n_bytes = source_file.stamp().n_bytes
    file = source_file.open()
    try:
        stream = Stream(file, n_bytes)   # raises no ValueError
        log = _looked_at(source_file, stream, n_bytes)
    except ValueError as error:   # an archive or a database that cannot be opened
        rejected = _damaged(source_file, stream, str(error), None, n_bytes)
        file.close()
        return rejected
    except BaseException:
        file.close()
        raise
    if isinstance(log, RejectedFile):
        file.close()
        return log
    return log, _chunks(log, stream, earlier, n_bytes)


def log_of(source_file: SourceFile) -> Log | RejectedFile:
    """Return what a file begins as, without its content. Errors: OSError; `Missing` (format)."""
    n_bytes = source_file.stamp().n_bytes
    with source_file.open() as file:
        try:
            stream = Stream(file, n_bytes)
            return _looked_at(source_file, stream, n_bytes)
        except ValueError as error:   # an archive or a database that cannot be opened
            return _damaged(source_file, stream, str(error), None, n_bytes)


def _looked_at(source_file: SourceFile, stream: Stream, n_bytes: int) -> Log | RejectedFile:
    whole = stream.fill(_BEGIN)
    begin = stream.buffer
    nothing = _content_id(source_file, None, b"%d\0" % n_bytes + begin[:_BEGIN])
    path = PurePosixPath(source_file.relative.lower())
    if path.suffix in _PROSE or (path.suffix in ("", ".txt") and path.stem in _PROSE_NAMES):
        return RejectedFile("not_a_log", "is prose beside the logs; no action needed", nothing, n_bytes)
    if path.name == _CONFIGURATION:
        return RejectedFile("not_a_log", "is a configuration; to use it, give it with --config", nothing, n_bytes)
    if stream.damage and b"\n" not in begin:
        return _damaged(source_file, stream, stream.damage, None, n_bytes)
    if whole and not begin.strip():
        holds = f"holds {stream.n_zero} zero bytes and nothing else" if stream.n_zero else "is empty"
        return RejectedFile("empty_file", f"{holds}; no action needed", nothing, n_bytes)
    head = head_of(begin, whole and not stream.damage)
    if head is None:
        if not stream.fill(containers.MOST_BYTES + 1):
            return RejectedFile("too_large", _TOO_LARGE, nothing, n_bytes)
        if stream.damage:
            return _damaged(source_file, stream, stream.damage, None, n_bytes)
        head = head_of(stream.buffer, True)
    assert head is not None, "what is whole has a head"
    chosen = source_file.source.format
    log_format = named(chosen) if chosen else recognise(head)
    wrapped = None if chosen else find_wrapped(head, stream.buffer, log_format)
    if log_format is None and wrapped is None and head.layout == "table":   # lines of text with commas in them
        text = text_head(begin)
        log_format = recognise(text)
        wrapped = None if chosen else find_wrapped(text, stream.buffer, log_format)
        head = text if log_format or wrapped else head
    if log_format is None and wrapped is None:
        if _NAMED_BY_HASH.fullmatch(path.stem):
            return RejectedFile("not_a_log", "is named by a hash: bytes of a file; no action needed", nothing, n_bytes)
        return RejectedFile("unknown_format", _UNKNOWN, nothing, n_bytes)
    document = head.document if head.layout != "lines" else None
    header = header_of(begin) if head.layout == "table" and document is None else b""
    log = Log(source_file, "", head.layout, header=header, document=document)
    if wrapped is not None:
        return log.with_format(wrapped.format, wrapped.wrapping, wrapped.objects)
    assert log_format is not None, "either of them reads the file"
    return log.with_format(log_format, None, head.objects)


def _chunks(log: Log, stream: Stream, earlier: Earlier, n_bytes: int) -> Iterator[Chunk | RejectedFile]:
    in_lines = log.layout in _LINES and not (log.layout == "text" and log.whole) and log.document is None and not (
        log.wrapping is not None and log.wrapping.is_gathered)
    previous = None
    try:
        if in_lines:
            for chunk in _cut(log, stream, earlier):
                previous = chunk.file_id
                yield chunk
        elif not stream.fill(containers.MOST_BYTES + 1):
            yield RejectedFile("too_large", _TOO_LARGE, _content_id(log.source_file, None, stream.buffer), n_bytes)
        elif not stream.damage:
            replaces = _replaced(log, earlier, None, b"", stream.buffer)
            yield Chunk(_content_id(log.source_file, None, stream.buffer), 0, 1, stream.n_taken, stream.buffer, True,
                        n_zero=stream.n_zero, replaces=replaces)
        if stream.damage:
            yield _damaged(log.source_file, stream, stream.damage, previous, n_bytes)
    finally:
        stream.close()


def _cut(log: Log, stream: Stream, earlier: Earlier) -> Iterator[Chunk]:
    """Yield the chunks of a file in lines; of a damaged one, its whole lines before the damage."""
    number, line, size = 0, 1, CHUNK_BYTES if log.apart else containers.MOST_BYTES
    previous: str | None = None
    while not stream.ended:
        offset, too_long = stream.n_taken, 0
        stream.fill(size + 1)
        end = _end(stream.buffer, size, log.layout) if len(stream.buffer) > size else len(stream.buffer)
        if end == 0:
            end = stream.line_end(MOST_RECORD)
        if stream.damage and end == len(stream.buffer):
            end = _end(stream.buffer, end, log.layout)
            if end == 0:
                return
        header = log.header if number else b""
        replaces = _replaced(log, earlier, previous, header, stream.buffer)
        if end:
            content = stream.take(end)
            n_lines = content.count(b"\n")
        else:
            content = stream.buffer[:_BEGIN]
            too_long, n_lines = stream.pass_over_line(), 1
        file_id = _content_id(log.source_file, previous, header + content)
        is_last = stream.ended and not stream.damage
        yield Chunk(file_id, number, line, offset, content, is_last, too_long, stream.n_zero if stream.ended else 0, previous,
                    replaces)
        number, line, previous = number + 1, line + n_lines, file_id


def _end(content: bytes, size: int, layout: Layout) -> int:
    """Where a chunk that begins with `content` ends: after the last whole record within its size, 0 where there is none."""
    at = content.rfind(b"\n", 0, size) + 1
    if layout == "text":   # a line that begins with white space goes on with the one before
        back = at
        while back and content[back:back + 1] in (b" ", b"\t"):
            back = content.rfind(b"\n", 0, back - 1) + 1
        return back or at
    if layout == "table":   # a quoted field may hold line ends
        while at and content.count(b'"', 0, at) % 2:
            at = content.rfind(b"\n", 0, at - 1) + 1
    return at


def _replaced(log: Log, earlier: Earlier, previous: str | None, header: bytes, content: bytes) -> tuple[str, ...]:
    """Ids of the chunks that ended the file here before and are the beginning of `content`."""
    replaced, at = [], 0
    digest = _begun(log.source_file, previous, header)
    for n_bytes, ids in sorted(earlier(previous).items()):
        if not ids or n_bytes > len(content):
            continue
        digest.update(memoryview(content)[at:n_bytes])
        at, file_id = n_bytes, digest.hexdigest()[:32]
        if file_id in ids:
            replaced.append(file_id)
    return tuple(replaced)


def _content_id(source_file: SourceFile, previous: str | None, content: bytes) -> str:
    return _begun(source_file, previous, content).hexdigest()[:32]


def _begun(source_file: SourceFile, previous: str | None, content: bytes) -> hashlib._Hash:
    digest = hashlib.sha256(f"{source_file.source.name}\0{previous or ''}\0".encode())
    digest.update(content)
    return digest


def _damaged(source_file: SourceFile, stream: Stream, damage: str, previous: str | None, n_bytes: int) -> RejectedFile:
    beyond = f" beyond byte {stream.n_taken}" if previous else ""
    file_id = _content_id(source_file, previous, b"damaged\0%d\0%d\0" % (n_bytes, stream.n_taken) + stream.begin(_BEGIN))
    return RejectedFile("unreadable_file", f"cannot be unpacked{beyond}: {damage}; copy it again", file_id, n_bytes, previous)
