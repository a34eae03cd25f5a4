"""Unpack gzip and zstd streams, zip archives, SQLite databases and Parquet tables within bounds.

A file that would unpack to more than `MOST_BYTES` is refused: it is a bomb, or it should be split. A stream is read as it is
needed; UTF-16 is recoded to UTF-8. The content before a damage is read, and the damage is reported. Does not see what the log
beside a database (`-wal`) holds."""

from __future__ import annotations

import contextlib
import gzip
import io
import re
import sqlite3
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any, BinaryIO
from uuid import UUID

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import zstandard

from extractors.formats.format import Head
from extractors.formats.values import parsed_json

MOST_BYTES = 1 << 27
DAMAGED = (OSError, EOFError, zlib.error, zstandard.ZstdError, MemoryError)
_NO_ZIP = (zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError, IndexError)
"""RuntimeError: it is encrypted, or packed in a way that `zipfile` does not know."""
_UNPACK_STEP = 1 << 20
_GZIP, _ZSTD, _ZIP = b"\x1f\x8b", b"\x28\xb5\x2f\xfd", (b"PK\x03\x04", b"PK\x05\x06")
_WAL, _NO_WAL = b"\2\2", b"\1\1"
"""How a database says that it is written through a log beside it (https://www.sqlite.org/fileformat.html, offset 18)."""
_SQLITE, _PARQUET = b"SQLite format 3\0", b"PAR1"
_ZSTD_IN_ZIP = 93
_KEEP = 5
_MOST_MEMBERS = 100_000
_MOST_CELLS = 1 << 25
"""Values of a database or a table, all rows together: a few bytes of a file may stand for any number of them."""
_ROWS_AT_ONCE = 256
_MOST_STEPS, _STEPS = 100, 1_000_000
"""Steps of SQLite's machine that reading a database may take: so often so many."""


def claims(content: bytes) -> bool:
    """Whether it begins as an archive, a database or a Parquet table does."""
    return content.startswith((*_ZIP, _SQLITE, _PARQUET)) or content[_TAR_AT:].startswith(_TAR)


def head_of(content: bytes) -> Head | None:
    """Layout and content of an archive, a database or a Parquet table; None for anything else. Errors: ValueError."""
    if content.startswith(_ZIP):
        files: dict[str, bytes] = {}
        remaining = MOST_BYTES
        try:
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                infos = archive.infolist()
                if len(infos) > _MOST_MEMBERS:
                    raise ValueError(f"it holds more than {_MOST_MEMBERS} files")
                for info in infos:
                    if info.filename in files:
                        raise ValueError(f"it holds two files called {info.filename!r}")
                    if not info.is_dir():
                        files[info.filename] = _member(archive, content, info, remaining)
                        remaining -= len(files[info.filename])
        except _NO_ZIP as error:
            raise ValueError(f"damaged zip ({error})") from error
        return Head("archive", [], files)
    if content[_TAR_AT:].startswith(_TAR):
        return Head("archive", [], _tar_members(content))
    if content.startswith(_SQLITE):
        tables = _tables(content)
        return Head("database", [{name: rows[:_KEEP] for name, rows in tables.items()}], tables)
    if content.startswith(_PARQUET):
        rows = _parquet(content)
        return Head("table", rows[:_KEEP], rows)
    return None


def _member(archive: zipfile.ZipFile, content: bytes, info: zipfile.ZipInfo, remaining: int) -> bytes:
    """One file of an archive; zstd inside zip is unpacked here, since `zipfile` learns it in Python 3.14."""
    if info.compress_type == _ZSTD_IN_ZIP:
        at = info.header_offset
        name, extra = (int.from_bytes(content[i:i + 2], "little") for i in (at + 26, at + 28))
        start = at + 30 + name + extra
        unpacked, most = bytearray(), remaining
        try:
            with zstandard.ZstdDecompressor().stream_reader(
                    content[start:start + info.compress_size], read_across_frames=True) as packed:
                while len(unpacked) <= remaining and (step := packed.read(_UNPACK_STEP)):
                    unpacked += step
        except (zstandard.ZstdError, MemoryError) as error:
            raise ValueError(f"damaged zstd ({error})") from error
    else:
        most = MOST_BYTES
        with archive.open(info) as stream:
            unpacked = bytearray(stream.read(remaining + 1))
    if len(unpacked) > remaining:
        raise ValueError(f"it unpacks to more than {most} bytes")
    return bytes(unpacked)


def _tar_members(content: bytes) -> dict[str, bytes]:
    files: dict[str, bytes] = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as archive:
            remaining = MOST_BYTES
            for info in archive:
                name = info.name.removeprefix("./")
                if name in files:
                    raise ValueError(f"it holds two files called {name!r}")
                if info.isfile() and (member := archive.extractfile(info)) is not None:
                    remaining -= info.size   # of a sparse file, what it unpacks to
                    if remaining < 0:
                        raise ValueError(f"it unpacks to more than {MOST_BYTES} bytes")
                    files[name] = member.read()
                if len(files) > _MOST_MEMBERS:
                    raise ValueError(f"it holds more than {_MOST_MEMBERS} files")
    except (tarfile.TarError, OSError, EOFError) as error:
        raise ValueError(f"damaged tar ({error})") from error
    return files


def _tables(content: bytes) -> dict[str, list[dict[str, Any]]]:
    try:
        connection = sqlite3.connect(":memory:")
        try:
            if content[18:20] == _WAL:   # a log beside the file, which memory has not: what the file holds is read
                content = content[:18] + _NO_WAL + content[20:]
            connection.deserialize(content)
            connection.row_factory = sqlite3.Row
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_BYTES)
            connection.execute("pragma trusted_schema = off")
            steps = iter(range(_MOST_STEPS))
            connection.set_progress_handler(lambda: next(steps, None) is None, _STEPS)
            names = [row[0] for row in connection.execute("select name from sqlite_master where type = 'table' order by name")]
            bound = _UnpackedSize()
            return {name: [bound.count(_written(dict(row))) for row in connection.execute(_stored_columns(connection, name))]
                    for name in names}
        finally:
            connection.close()
    except (sqlite3.Error, OverflowError, UnicodeError) as error:
        raise ValueError(f"damaged SQLite database ({error})") from error


def _stored_columns(connection: sqlite3.Connection, table: str) -> str:
    """Return the query of a table's rows without the columns that are computed when they are read."""
    quoted = _quoted(table)
    columns = [row["name"] for row in connection.execute(f"pragma table_xinfo({quoted})") if row["hidden"] in (0, 3)]
    return f"select {', '.join(map(_quoted, columns)) or '*'} from {quoted}"


def _quoted(name: str) -> str:
    return '"{}"'.format(name.replace('"', '""'))


class _UnpackedSize:
    """What rows of a database hold together. Errors: ValueError beyond what one file may unpack to."""

    def __init__(self) -> None:
        self._n_bytes = self._n_cells = 0

    def count(self, row: dict[str, Any]) -> dict[str, Any]:
        """Count a row, and return it."""
        self._n_cells += len(row)
        self._n_bytes += sum(len(value) for value in row.values() if isinstance(value, str | bytes))
        _check_size(self._n_bytes, self._n_cells)
        return row


def _check_size(n_bytes: int, n_cells: int) -> None:
    if n_bytes > MOST_BYTES:
        raise ValueError(f"it unpacks to more than {MOST_BYTES} bytes")
    if n_cells > _MOST_CELLS:
        raise ValueError(f"it unpacks to more than {_MOST_CELLS} values")


def _parquet(content: bytes) -> list[dict[str, Any]]:
    """Return a Parquet file's rows, read few at a time: equal texts lie in a file once, and below records are copied."""
    try:
        file = pq.ParquetFile(pa.BufferReader(content))
        _check_size(0, file.metadata.num_rows * len(file.schema_arrow))
        parts: list[list[dict[str, Any]]] = []
        is_plain = not any(_needs_arrow(field.type) for field in file.schema_arrow)
        n_bytes = n_cells = 0
        for batch in file.iter_batches(_ROWS_AT_ONCE, use_threads=False):
            frame = pl.DataFrame(pl.from_arrow(_uuids_as_text(batch)))
            sizes = [_size_of(column) for column in frame]
            n_bytes, n_cells = n_bytes + sum(size for size, _ in sizes), n_cells + sum(n for _, n in sizes)
            _check_size(n_bytes, n_cells)
            parts.append(frame.to_dicts() if is_plain else [
                {field.name: _json_opened(row[field.name], field.type) for field in file.schema_arrow}
                for row in batch.to_pylist(maps_as_pydicts="lossy")])
        return [_row_written(row) for part in parts for row in part]
    except (pa.ArrowException, pl.exceptions.PolarsError, OSError, pl.exceptions.PanicException) as error:
        raise ValueError(f"damaged Parquet ({str(error).splitlines()[0]})") from error


def _needs_arrow(kind: pa.DataType) -> bool:
    """Return whether a type holds a map, JSON or, inside a value, a UUID: Polars has them as lists, as text and as bytes."""
    if isinstance(kind, pa.MapType | pa.JsonType):
        return True
    inner = [kind.field(n).type for n in range(kind.num_fields)]
    return any(isinstance(each, pa.UuidType) or _needs_arrow(each) for each in inner)


def _json_opened(value: Any, kind: pa.DataType) -> Any:
    """Return a value with what its type says is JSON as JSON says it."""
    if isinstance(kind, pa.JsonType) and isinstance(value, str):
        return parsed_json(value, value)
    if isinstance(value, dict) and isinstance(kind, pa.StructType):
        return {name: _json_opened(each, kind.field(name).type) for name, each in value.items()}
    if isinstance(value, dict) and isinstance(kind, pa.MapType):
        return {name: _json_opened(each, kind.item_type) for name, each in value.items()}
    if isinstance(value, list) and isinstance(kind, pa.ListType | pa.LargeListType | pa.FixedSizeListType):
        return [_json_opened(each, kind.value_type) for each in value]
    return value


def _uuids_as_text(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch with the UUIDs of its columns as text, which Polars has as their 16 bytes."""
    for n, field in enumerate(batch.schema):
        if isinstance(field.type, pa.UuidType):
            texts = pa.array([None if value is None else str(value) for value in batch.column(n).to_pylist()], pa.string())
            batch = batch.set_column(n, field.name, texts)
    return batch


def _written(value: Any) -> Any:
    """Return a table's value as JSON writes it: formats know times, numbers and texts as JSON has them."""
    if isinstance(value, dict):
        return {name: _written(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_without_nulls(_written(each)) for each in value]
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, bytes):
        with contextlib.suppress(UnicodeDecodeError):
            return value.decode()
    return value


def _row_written(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row as `_written` does; a field that an object in it does not have is a null in its column, and goes."""
    return {name: _without_nulls(_written(value)) for name, value in row.items()}


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(each) for name, each in value.items() if each is not None}
    return value


def _size_of(column: pl.Series) -> tuple[int, int]:
    """Return the bytes of a column's texts, and the number of its values."""
    kind = column.dtype
    if isinstance(kind, pl.Struct):
        sizes = [_size_of(column.struct.field(field.name)) for field in kind.fields]
        return sum(size for size, _ in sizes), len(column) + sum(n for _, n in sizes)
    if isinstance(kind, pl.List | pl.Array):
        size, n = _size_of(column.drop_nulls().explode())
        return size, n + len(column)
    lengths = column.str.len_bytes() if kind == pl.String else column.bin.size() if kind == pl.Binary else None
    return int(lengths.sum() or 0) if lengths is not None else 0, len(column)


_STEP = 1 << 22
_PACKED_STEP = 1 << 18
_PACKED_MOST, _PACKED_RATIO = 1 << 30, 300
"""A packed file that unpacks to more than both is a bomb."""
_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
_TAR, _TAR_AT = b"ustar", 257
_HOLE = re.compile(rb"\0{8,}")
"""Zero bytes that a file system shows where nothing was written: a log that was copied and truncated has them."""
_BEGIN_OF_KIND = 512
"""Bytes that tell what kind of file it is."""


class Stream:
    """The unpacked content of a file. Errors: OSError where the disk or the connection fails."""

    def __init__(self, file: BinaryIO, n_bytes: int) -> None:
        self._file = file
        begin = file.read(4)
        file.seek(0)
        stream: Any = file   # unpacked while it is read; a damaged file raises one of `DAMAGED`
        if begin.startswith(_GZIP):
            stream = gzip.GzipFile(fileobj=file)
        elif begin.startswith(_ZSTD):
            stream = zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True)
        self._packed = stream is not file
        self._read: Callable[[int], bytes] = stream.read1 if self._packed else stream.read
        self._most = max(_PACKED_MOST, _PACKED_RATIO * n_bytes)
        self._read_all = False
        self._n_unpacked = 0
        self.damage: str | None = None
        """What is wrong with the file after what is held: there is no more of it."""
        self.buffer = b""
        """Read, not taken."""
        self.n_taken = 0
        self.n_zero = 0
        """Zero bytes that were skipped: of the beginning, and of holes."""
        self._has_holes = False
        """Are holes skipped? Those of a text are; to an archive or a database, zero bytes are content."""
        self._tail = b""
        """Zero bytes at the end of what was read: more may follow."""
        self.fill(_BEGIN_OF_KIND)
        if self.buffer[:2] not in _UTF_16:
            self._begin_text()
            return
        try:   # to UTF-8, as a whole
            if self.fill(MOST_BYTES + 1):
                self.buffer = self.buffer.decode("utf-16").encode()
                return
            self.damage = f"it is UTF-16 of more than {MOST_BYTES >> 20} MiB; write it as UTF-8"
        except UnicodeError as error:
            self.damage = f"it begins as UTF-16 but is none ({error})"
        self.buffer, self._read_all = b"", True

    def _begin_text(self) -> None:
        """Skip the zero bytes that a text begins with, and from now on its holes."""
        if claims(self.buffer) or self.buffer[_TAR_AT:].startswith(_TAR) or _is_wide(self.buffer):
            return
        self._has_holes = True
        while self.buffer[:1] == b"\0" or (not self.buffer and not self._read_all):
            body = self.buffer.lstrip(b"\0")
            self.n_zero += len(self.buffer) - len(body)
            self.buffer = body or self._raw(_STEP)
        self.n_taken = self.n_zero
        self.buffer = self._without_holes(self.buffer)

    def _without_holes(self, step: bytes) -> bytes:
        """Return what was read without its holes; where one stands within a line, the line ends."""
        if not self._tail and b"\0" not in step:
            return step
        step = self._tail + step
        body = step if self._read_all else step.rstrip(b"\0")
        self._tail = step[len(body):]
        if len(self._tail) > _STEP:
            self.n_zero += len(self._tail) - _STEP
            self._tail = self._tail[-_STEP:]
        self.n_zero += sum(len(hole.group()) for hole in _HOLE.finditer(body))
        return _HOLE.sub(b"\n", body)

    @property
    def ended(self) -> bool:
        return not self.buffer and self.fill(1)

    def fill(self, n_bytes: int) -> bool:
        """Hold at least `n_bytes` if there are so many; True: what is held is all that is left."""
        missing = n_bytes - len(self.buffer)
        if not self._read_all:
            more = [self.buffer]
            while missing > 0 and (step := self._next(missing)):
                more.append(step)
                missing -= len(step)
            if not self._read_all:
                more.append(self._next(1))   # nothing, where all was read
            self.buffer = b"".join(more)
        return self._read_all

    def _next(self, n_bytes: int) -> bytes:
        """Return at most about so many bytes, none at the end alone."""
        step = self._raw(n_bytes)
        if not self._has_holes:
            return step
        step = self._without_holes(step)
        while not step and not self._read_all:  # a hole and nothing else so far
            step = self._without_holes(self._raw(_STEP))
        return step

    def _raw(self, n_bytes: int) -> bytes:
        """At most so many bytes, none at the end. Of a packed file in small steps: what a step that fails unpacked is lost."""
        if self._read_all:
            return b""
        try:
            step = self._read(min(n_bytes, _PACKED_STEP if self._packed else _STEP))
        except DAMAGED as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            self.damage, self._read_all = str(error), True
            return b""
        self._read_all = not step
        self._n_unpacked += len(step)
        if self._packed and self._n_unpacked > self._most:
            self.damage, self._read_all = f"it unpacks to more than {self._most >> 20} MiB", True
        return bytes(step)

    def take(self, n_bytes: int) -> bytes:
        taken, self.buffer = self.buffer[:n_bytes], self.buffer[n_bytes:]
        self.n_taken += len(taken)
        return taken

    def line_end(self, most: int) -> int:
        """Where the line that is held ends, 0 where it is longer than `most`."""
        looked = 0
        while True:
            whole = self.fill(min(len(self.buffer) + _STEP, most))
            at = self.buffer.find(b"\n", looked, most) + 1
            if at or whole or len(self.buffer) >= most:
                return at or (len(self.buffer) if whole and len(self.buffer) <= most else 0)
            looked = len(self.buffer)

    def pass_over_line(self) -> int:
        """Take a line of any length without keeping it; gives its length."""
        before = self.n_taken
        while (at := self.buffer.find(b"\n") + 1) == 0 and self.buffer:
            self.take(len(self.buffer))
            self.fill(_STEP)
        self.take(at)
        return self.n_taken - before

    def begin(self, n_bytes: int) -> bytes:
        """Read what the file begins with as it lies there; nothing can be read afterwards."""
        self._file.seek(0)
        return self._file.read(n_bytes)

    def close(self) -> None:
        self._file.close()


def _is_wide(begin: bytes) -> bool:
    """Return whether a text has two or four bytes a character: zero bytes stand between all others."""
    body = begin.strip(b"\0")
    return b"\0" in body and body.count(b"\0") * 3 > len(body)
