"""What is packed: gzip and zstd streams, zip archives, SQLite databases and Parquet tables, unpacked within bounds.

A file that would unpack to more than `MOST_BYTES` is refused: it is a bomb, or it should be split.
"""

from __future__ import annotations

import gzip
import io
import sqlite3
import zipfile
import zlib
from typing import Any, BinaryIO, cast

import polars as pl
import zstandard

from extractors.formats.format import Head

MOST_BYTES = 1 << 27
DAMAGED = (OSError, EOFError, zlib.error, zstandard.ZstdError, MemoryError)
_NO_ZIP = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, IndexError)
"""RuntimeError: it is encrypted, or packed in a way that `zipfile` does not know."""
_STEP = 1 << 20
_GZIP, _ZSTD, _ZIP = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", (b"PK\x03\x04", b"PK\x05\x06")
_SQLITE, _PARQUET = b"SQLite format 3\0", b"PAR1"
_ZSTD_IN_ZIP = 93
_KEEP = 5
_MOST_MEMBERS = 100_000


def unpack(content: bytes, most: int = MOST_BYTES) -> bytes:
    """The content of a gzip or zstd stream (several one after another too), else `content` itself. Errors: ValueError."""
    if content.startswith(_GZIP):
        return _gunzip(content, most)
    if content.startswith(_ZSTD):
        return _unzstd(content, most)
    return content


def claims(content: bytes) -> bool:
    """Whether it begins as an archive, a database or a Parquet table does."""
    return content.startswith((*_ZIP, _SQLITE, _PARQUET))


def stream(file: BinaryIO) -> BinaryIO:
    """The content of an open file, unpacked while it is read where it is gzip or zstd.

    What reads from it raises the errors in `DAMAGED` where the file is damaged.
    """
    begin = file.read(4)
    file.seek(0)
    if begin.startswith(_GZIP):
        return cast(BinaryIO, gzip.GzipFile(fileobj=file))
    if begin.startswith(_ZSTD):
        return cast(BinaryIO, zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True))
    return file


def head_of(content: bytes) -> Head | None:
    """Layout and content of an archive, a database or a Parquet table; None for anything else. Errors: ValueError."""
    if content.startswith(_ZIP):
        return Head("archive", [], _members(content))
    if content.startswith(_SQLITE):
        tables = _tables(content)
        return Head("database", [{name: rows[:_KEEP] for name, rows in tables.items()}], tables)
    if content.startswith(_PARQUET):
        rows = _parquet(content)
        return Head("table", rows[:_KEEP], rows)
    return None


def _gunzip(content: bytes, most: int) -> bytes:
    found, rest = bytearray(), content
    while rest:
        stream = zlib.decompressobj(wbits=31)
        try:
            while not stream.eof:
                found += stream.decompress(stream.unconsumed_tail or rest, _STEP)
                rest = b""
                if len(found) > most:
                    raise ValueError(f"it unpacks to more than {most} bytes")
                if not stream.unconsumed_tail and not stream.eof:
                    raise ValueError("damaged gzip (it ends before its end)")
        except zlib.error as error:
            raise ValueError(f"damaged gzip ({error})") from error
        rest = stream.unused_data.lstrip(b"\0")
    return bytes(found)


def _unzstd(content: bytes, most: int) -> bytes:
    found = bytearray()
    try:
        with zstandard.ZstdDecompressor().stream_reader(content, read_across_frames=True) as stream:
            while step := stream.read(_STEP):
                found += step
                if len(found) > most:
                    raise ValueError(f"it unpacks to more than {most} bytes")
    except (zstandard.ZstdError, MemoryError) as error:
        raise ValueError(f"damaged zstd ({error})") from error
    return bytes(found)


def _members(content: bytes) -> dict[str, bytes]:
    """The files of a zip archive by name, read and never written: a name with `..` in it is a name."""
    found: dict[str, bytes] = {}
    left = MOST_BYTES
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            infos = archive.infolist()
            if len(infos) > _MOST_MEMBERS:
                raise ValueError(f"it holds more than {_MOST_MEMBERS} files")
            for info in infos:
                if not info.is_dir():
                    found[info.filename] = _member(archive, content, info, left)
                    left -= len(found[info.filename])
    except _NO_ZIP as error:
        raise ValueError(f"damaged zip ({error})") from error
    return found


def _member(archive: zipfile.ZipFile, content: bytes, info: zipfile.ZipInfo, left: int) -> bytes:
    """One file of an archive; zstd inside zip is unpacked here, since `zipfile` learns it in Python 3.14."""
    if info.compress_type == _ZSTD_IN_ZIP:
        at = info.header_offset
        name, extra = (int.from_bytes(content[i:i + 2], "little") for i in (at + 26, at + 28))
        start = at + 30 + name + extra
        return _unzstd(content[start:start + info.compress_size], left)
    with archive.open(info) as stream:
        found = stream.read(left + 1)
    if len(found) > left:
        raise ValueError(f"it unpacks to more than {MOST_BYTES} bytes")
    return found


def _tables(content: bytes) -> dict[str, list[dict[str, Any]]]:
    """The rows of each table of a SQLite database, in the order of the table."""
    try:
        connection = sqlite3.connect(":memory:")
        try:
            connection.deserialize(content)
            connection.row_factory = sqlite3.Row
            names = [row[0] for row in connection.execute("select name from sqlite_master where type = 'table' order by name")]
            return {name: [dict(row) for row in connection.execute('select * from "{}"'.format(name.replace('"', '""')))]
                    for name in names}
        finally:
            connection.close()
    except (sqlite3.Error, OverflowError, UnicodeError) as error:
        raise ValueError(f"damaged SQLite database ({error})") from error


def _parquet(content: bytes) -> list[dict[str, Any]]:
    try:
        return pl.read_parquet(io.BytesIO(content)).to_dicts()
    except (pl.exceptions.PolarsError, OSError, pl.exceptions.PanicException) as error:
        raise ValueError(f"damaged Parquet ({str(error).splitlines()[0]})") from error
