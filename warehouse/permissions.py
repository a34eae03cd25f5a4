"""Files that their user alone may read: what a run writes holds people's words, and how tasks are rewarded.

The rule is the process's mask, so that it covers files that libraries create, copies, and temporary files. Files of earlier
versions lose the access that others had.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

OTHERS = 0o077
"""Bits of everybody but a file's user."""


@contextlib.contextmanager
def private() -> Iterator[None]:
    """Let this process, and those that it starts meanwhile, create files that its user alone may read."""
    before = os.umask(OTHERS)
    try:
        yield
    finally:
        os.umask(before)


def withdraw_access(paths: Iterable[Path]) -> int:
    """Take these files and folders, with all inside, from everybody but their user; return how many had been open. Links are
    not followed, and what belongs to another user stays as it is."""
    n_open = 0
    for path in paths:
        with contextlib.suppress(FileNotFoundError, PermissionError):
            mode = path.lstat().st_mode
            if stat.S_ISDIR(mode):
                n_open += withdraw_access(path.iterdir())
            if mode & OTHERS and not stat.S_ISLNK(mode):
                path.chmod(stat.S_IMODE(mode) & ~OTHERS)
                n_open += 1
    return n_open
