"""Whether an original is left in anything that is published: a byte search through everything that a run and a release write.

In: the folder of a run, and values. Out: in how many files which of them stand. Files are looked at as they lie, and once more
as what they hold: tables of Parquet and of DuckDB as text, archives and what is compressed opened, rooms as the layers of their
images (`env_builder/layers.py`; where an engine answers, the whole archive that it loads). Upper and lower case are one.
"""

from __future__ import annotations

import gzip
import io
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import polars as pl

from env_builder import image
from env_builder.layers import layers_of
from warehouse.errors import Unavailable
from warehouse.store import Store

_ROWS = 5_000
Named = tuple[str, bytes]


def left_in(out: Path, originals: Iterable[str]) -> dict[str, list[str]]:
    """File (and what is inside of it) -> the originals that stand in it, of those that do."""
    sought = {each.lower().encode(): each for each in originals}
    patterns = pl.Series([[each.decode("latin-1") for each in sought]], dtype=pl.List(pl.String))
    found: dict[str, list[str]] = {}
    for name, content in everything(out):
        lower = content.lower()
        if _holds_any(lower, patterns) and (here := {each for each in sought if each in lower}):
            found[name] = sorted(sought[each] for each in here)
    return found


def _holds_any(content: bytes, patterns: pl.Series) -> bool:
    """Return whether any of the patterns stands in the bytes: one pass for all of them. Latin-1 writes each byte as one
    character, so that bytes which are no text are searched too."""
    return bool(pl.Series([content.decode("latin-1")]).str.contains_any(patterns).item())


def everything(out: Path) -> Iterator[Named]:
    """Everything in a folder, by its name, as it lies and as what it holds."""
    for path in sorted(out.rglob("*")):
        if path.is_file():
            name = path.relative_to(out).as_posix()
            yield name, path.read_bytes()
            yield from ((f"{name}: {inside}", content) for inside, content in _inside(path))
    for manifest in sorted((out / "environments").glob("*/manifest.json")):
        name = manifest.parent.relative_to(out).as_posix()
        for number, layer in enumerate(layers_of(manifest.parent)):
            yield from ((f"{name}: layer {number}: {inside}", content) for inside, content in _opened(layer))
        yield from ((f"{name}: image: {inside}", content) for inside, content in _image(manifest.parent))


def _inside(path: Path) -> Iterator[Named]:
    if path.suffix == ".parquet":
        yield "rows", pl.read_parquet(path).write_ndjson().encode()
    elif path.suffix == ".duckdb":
        yield from _tables(path)
    elif path.suffix in (".gz", ".tar", ".tgz", ".zip", ".whl"):
        yield from _opened(path.read_bytes())


def _tables(path: Path) -> Iterator[Named]:
    with Store.open(path, write=False) as store:
        names = store.read("select table_schema || '.' || table_name as name from information_schema.tables "
                           "where table_type = 'BASE TABLE' order by all")["name"]
        for name in names:
            for part in store.table(name).iter_slices(_ROWS):
                rows = part.with_columns(pl.selectors.binary().map_elements(repr, pl.String))
                yield name, rows.write_ndjson().encode()


def _opened(content: bytes) -> Iterator[Named]:
    """Yield the files of an archive, and theirs; what is none gives nothing."""
    if content[:2] == b"\x1f\x8b":
        plain = gzip.decompress(content)
        yield "unpacked", plain
        yield from _opened(plain)
    elif zipfile.is_zipfile(io.BytesIO(content)):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            yield from _members((name, archive.read(name)) for name in archive.namelist())
    elif content[257:262] == b"ustar":
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            yield from _members(
                (each.name, file.read()) for each in archive if each.isfile() and (file := archive.extractfile(each)))


def _members(members: Iterable[Named]) -> Iterator[Named]:
    for name, content in members:
        yield name, content
        yield from ((f"{name}: {inside}", more) for inside, more in _opened(content))


def _image(environment: Path) -> Iterator[Named]:
    """Yield the files of the image that an engine loads, none where no engine answers."""
    with tempfile.TemporaryDirectory() as scratch:
        archive = Path(scratch) / "image.tar"
        try:
            image.save(environment, archive)
        except Unavailable:
            return
        yield from _opened(archive.read_bytes())
