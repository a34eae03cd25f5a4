"""Which files came from a person: by their values, and by the ids of what is theirs."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import polars as pl

from pipelines.erasing.identifiers import Identifiers

_STRING = re.compile(rb'"([^"\\]{2,200})"')
_CODE = (".py", ".pyc", ".css")


class Trace:
    """What tells that something came from a person."""

    def __init__(self, person: Identifiers, lineage: Iterable[str]) -> None:
        self.person = person
        self._ids = {each.encode() for each in lineage if len(each) > 1 and not each.isdigit()}

    def in_file(self, path: Path, name: str = "") -> bool:
        """Does a file descend from them? `name`: what it is called, where it lies under another name."""
        return any(self.in_bytes(each) for each in contents(path, name or path.name))

    def in_bytes(self, content: bytes) -> bool:
        """The same of what is in a file."""
        return self.person.within_bytes(content) or not self._ids.isdisjoint(_STRING.findall(content))


def contents(path: Path, name: str = "") -> Iterator[bytes]:
    """The bytes of a file as they can be searched: Parquet unpacked, all else as it lies there; code is nobody's."""
    suffix = Path(name or path.name).suffix
    if suffix in _CODE:
        return
    if suffix == ".parquet":
        for rows in pl.scan_parquet(path).collect_batches():
            yield rows.write_ndjson().encode()
    yield path.read_bytes()
