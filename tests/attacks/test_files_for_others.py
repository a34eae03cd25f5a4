"""Files that other users of the machine could read, after every command that writes: none, whatever the mask."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.attacks.report import Report
from tests.command_line import process
from tests.pipelines.conftest import LAMP_SHOP
from warehouse.permissions import OTHERS


def attack(folder: Path, share: float) -> Report:
    """Run, report, release, pull and export under a mask that lets others read, and look at every file."""
    before = os.umask(0o022)
    try:
        out, scratch = folder / "out", folder / "scratch"
        scratch.mkdir()
        registry = ("--registry", str(folder / "registry"))

        def carried_out(*arguments: str | Path) -> str:
            done = process(*map(str, arguments), TMPDIR=str(scratch))
            assert done.returncode in (0, 1), done.stderr
            return done.stdout + done.stderr

        carried_out("run", LAMP_SHOP, "--no-image", "--out", out)
        carried_out("report", "--out", out)
        release = re.search(r"r-[0-9a-f]{16}", carried_out("release", "--out", out, *registry))
        carried_out("pull", release.group() if release else "", *registry, "--to", folder / "pulled")
        carried_out("export", "datasets", out, "--to", folder / "data")
    finally:
        os.umask(before)
    written = [folder / name for name in ("out", "registry", "pulled", "data")]
    assert all(each.is_dir() for each in written)
    paths = [path for each in (*written, scratch) for path in each.rglob("*") if not path.is_symlink()]
    open_paths = sorted(str(path.relative_to(folder)) for path in [*written, *paths] if path.lstat().st_mode & OTHERS)
    return Report(len(paths), tuple(open_paths), {"readable_by_others": float(len(open_paths))})


@pytest.mark.slow
def test_others_can_read_nothing_that_a_command_writes(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
