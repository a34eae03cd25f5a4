"""Zip archives of bombs: one huge file, many that are too large together, one inside another, more names than any log has."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest
import zstandard

from extractors.containers import MOST_BYTES
from tests.attacks.logs import bomb_problems, read_log
from tests.attacks.report import Report


def archive(files: dict[str, bytes | int]) -> bytes:
    """Return an archive of files; a number stands for so many zero bytes."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as packing:
        for name, content in files.items():
            with packing.open(name, "w") as member:
                n = content if isinstance(content, int) else 0
                member.write(content if isinstance(content, bytes) else b"")
                for _ in range(n >> 20):
                    member.write(b"\0" * (1 << 20))
    return buffer.getvalue()


def with_zstd_member(content: bytes) -> bytes:
    """Return an archive whose one stored member says that it is packed with zstd."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as packing:
        packing.writestr("a.jsonl", content)
    data = bytearray(buffer.getvalue())
    for signature, at in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        place = data.index(signature) + at
        data[place:place + 2] = (93).to_bytes(2, "little")
    return bytes(data)


def attack(folder: Path, share: float) -> Report:
    """Read each bomb."""
    too_much = MOST_BYTES + (1 << 20)
    one = archive({"a.jsonl": too_much})
    bombs = {"one file": one, "many files": archive({f"{n}.jsonl": MOST_BYTES // 4 + (1 << 20) for n in range(4)}),
             "zstd inside": with_zstd_member(zstandard.compress(b"\0" * too_much)), "a million names": b""}
    names = io.BytesIO()
    with zipfile.ZipFile(names, "w") as packing:
        for number in range(100_001):
            packing.writestr(str(number), b"")
    bombs["a million names"] = names.getvalue()
    problems = []
    for name, bomb in bombs.items() if share >= 0.1 else list(bombs.items())[:3]:
        problems += bomb_problems(name, read_log(bomb, folder / "log.zip"), 450)
    nested = read_log(archive({"inner.zip": one}), folder / "nested.zip")
    problems += bomb_problems("one inside another", nested, 240)
    return Report(len(bombs) + 1, tuple(problems))


@pytest.mark.slow
def test_archives_that_unpack_to_too_much_are_refused(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
