"""Files that survive a power failure: whole or absent, appended whole."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.durable_files import append_durably, sync, write_all, write_durably


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.jsonl"
    write_durably(path, [b"one\n", b"two\n"])
    assert path.read_bytes() == b"one\ntwo\n"

    def breaking() -> Iterator[bytes]:
        yield b"half"
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        write_durably(path, breaking())
    assert path.read_bytes() == b"one\ntwo\n"
    assert [each.name for each in path.parent.iterdir() if not each.name.startswith(".")] == ["a.jsonl"]
    write_durably(path, [b"three"])
    assert [each.name for each in path.parent.iterdir()] == ["a.jsonl"] and path.read_bytes() == b"three"


def test_lines_are_appended(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    for line in (b"one\n", b"two\n"):
        append_durably(path, line)
    assert path.read_bytes() == b"one\ntwo\n"
    with pytest.raises(FileNotFoundError):
        append_durably(tmp_path / "none" / "a.jsonl", b"")


def test_all_is_written_to_a_file_that_takes_parts() -> None:
    reader, writer = os.pipe()
    content = bytes(range(256)) * 4
    try:
        write_all(writer, content)
        assert os.read(reader, len(content)) == content
    finally:
        os.close(reader)
        os.close(writer)


@pytest.mark.parametrize(("number", "is_raised"), [(errno.EINVAL, False), (errno.EIO, True)])
def test_a_folder_that_cannot_be_flushed_is_left_and_a_broken_disk_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, is_raised: bool
) -> None:
    def refused(file: int) -> None:
        raise OSError(number, os.strerror(number))

    (tmp_path / "a").write_bytes(b"x")
    monkeypatch.setattr(os, "fsync", refused)
    if is_raised:
        with pytest.raises(OSError, match="error"):
            sync(tmp_path)
    else:
        sync(tmp_path)
    with pytest.raises(OSError, match=r"rror|nvalid"):
        sync(tmp_path / "a")
