"""Streams of gzip and zstd that unpack to a thousand times their size: memory stays flat, and the rest is refused by name."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import pytest
import zstandard

from tests.attacks.logs import MB, bomb_problems, conversation, read_log
from tests.attacks.report import Report, counted

UNPACKED_MB = 1200


def packed(kind: str, unit: bytes, n_bytes: int) -> bytes:
    """Return `unit` over and over, packed."""
    buffer, n = io.BytesIO(), n_bytes // len(unit) + 1
    block = unit * max(1, MB // len(unit))
    stream = (gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=1) if kind == "gz"
              else zstandard.ZstdCompressor(level=1).stream_writer(buffer, closefd=False))
    for _ in range(n * len(unit) // len(block) + 1):
        stream.write(block)
    stream.close()
    return buffer.getvalue()


def attack(folder: Path, share: float) -> Report:
    """Pack one endless line, and zeros without end, behind an honest line."""
    problems, n_tried = [], 0
    for kind in ("gz", "zst"):
        for name, unit in {"one line": b"a" * 4096, "zeros": b"\0" * 4096}.items():
            n_tried += 1
            honest = gzip.compress(conversation(1)) if kind == "gz" else zstandard.compress(conversation(1))
            log = read_log(honest + packed(kind, unit, counted(UNPACKED_MB, share, 100) * MB), folder / f"log.jsonl.{kind}")
            problems += bomb_problems(f"{name}, {kind}", log, 400)
            problems += [] if "hello" in log.texts else [f"{name}, {kind}: the honest line is lost: {log.reasons}"]
    return Report(n_tried, tuple(problems))


@pytest.mark.slow
def test_a_stream_that_unpacks_without_end_is_cut_off(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.1).problems == ()
