"""Files that survive a power failure: whole or absent, appended whole, names in a folder too.

A draft has a hidden name, which no run reads; it is flushed to the disk and then renamed. A process that is killed leaves at
most a draft, which the next one replaces.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path

_CANNOT_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EBADF)
"""What a file system answers that cannot flush a folder."""


def sync(path: Path) -> None:
    """Flush a file, or the names in a folder, to the disk; a folder where its file system can. Raises OSError."""
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC or not path.is_dir():
            raise
    finally:
        os.close(file)


def write_all(file: int, content: bytes) -> None:
    """Write all bytes to an open file, which may take them in parts. Raises OSError."""
    view = memoryview(content)
    while view:
        view = view[os.write(file, view):]


def write_durably(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a file that is on the disk, whole, when this returns; one of that name is replaced. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name.lstrip('.')}.draft")
    with draft.open("wb") as file:
        for chunk in chunks:
            file.write(chunk)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
    sync(path.parent)


def append_durably(path: Path, content: bytes) -> None:
    """Append to a file, which is made where it is missing; it is on the disk when this returns. Raises OSError."""
    is_new = not path.exists()
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    try:
        write_all(file, content)
        os.fsync(file)
    finally:
        os.close(file)
    if is_new:
        sync(path.parent)
