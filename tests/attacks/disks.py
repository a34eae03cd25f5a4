"""Disks that become full or read-only while something is written to them: file systems that only root may mount."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path


def may_mount() -> bool:
    """Return whether this user may mount file systems."""
    return os.geteuid() == 0 and subprocess.run(
        ["unshare", "--mount", "true"], check=False, capture_output=True).returncode == 0


@contextlib.contextmanager
def small_disk(folder: Path, n_bytes: int) -> Iterator[Path]:
    """Mount an empty disk of so many bytes at a new folder."""
    folder.mkdir()
    _carry_out("mount", "-t", "tmpfs", "-o", f"size={n_bytes}", "tmpfs", folder)
    try:
        yield folder
    finally:
        _carry_out("umount", "-l", folder)


def fill(disk: Path, n_bytes_free: int) -> Path:
    """Write a file that takes all of a disk but so many bytes; return it."""
    filler, stat = disk / "filler", os.statvfs(disk)
    with filler.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, max(1, stat.f_bavail * stat.f_frsize - n_bytes_free))
    return filler


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Let nobody create, change or remove what is in a folder; files that are open stay open."""
    _carry_out("mount", "--bind", folder, folder)
    try:
        _carry_out("mount", "-o", "remount,bind,ro", folder)
        yield
    finally:
        _carry_out("umount", "-l", folder)


def _carry_out(*words: str | Path) -> None:
    done = subprocess.run(list(map(str, words)), check=False, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{words[0]}: {done.stderr.strip()}; only root may mount file systems")
