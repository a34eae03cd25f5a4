"""What Traceroom writes, its user alone may read: whatever the mask, and also what earlier versions wrote."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from tests.command_line import process
from tests.pipelines.conftest import LAMP_SHOP
from warehouse.permissions import OTHERS, withdraw_access


def readable_by_others(folder: Path) -> list[str]:
    return sorted(str(path) for path in folder.rglob("*") if not path.is_symlink() and path.lstat().st_mode & OTHERS)


def test_nothing_that_a_run_a_release_and_an_export_write_is_readable_by_others(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        out, scratch = tmp_path / "out", tmp_path / "scratch"
        scratch.mkdir()
        registry = ("--registry", str(tmp_path / "registry"))

        def carried_out(*arguments: str | Path) -> str:
            done = process(*map(str, arguments), TMPDIR=str(scratch))
            assert done.returncode in (0, 1), done.stderr
            return done.stdout + done.stderr

        carried_out("run", LAMP_SHOP, "--no-image", "--out", out)
        carried_out("report", "--out", out)
        release = re.search(r"r-[0-9a-f]{16}", carried_out("release", "--out", out, *registry))
        carried_out("pull", release.group() if release else "", *registry, "--to", tmp_path / "pulled")
        carried_out("export", "datasets", out, "--to", tmp_path / "data")
        written = [tmp_path / name for name in ("out", "registry", "pulled", "data") if (tmp_path / name).exists()]
        assert len(written) >= 3 and (out / "rewards").is_dir()
        assert [readable_by_others(folder) for folder in [*written, scratch]] == [[]] * (len(written) + 1)
        assert not any(folder.stat().st_mode & OTHERS for folder in written)
        for path in out.rglob("*"):
            path.chmod(0o755 if path.is_dir() else 0o644)
        strangers = out / "notes.txt"
        strangers.write_text("not ours")
        assert process("run", str(LAMP_SHOP), "--no-image", "--out", str(out), "--limit", "5").returncode in (0, 1)
        assert readable_by_others(out) == [str(strangers)]
    finally:
        os.umask(before)


def test_links_are_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("of somebody else")
    elsewhere.chmod(0o644)
    folder = tmp_path / "folder"
    folder.mkdir(mode=0o755)
    (folder / "link").symlink_to(elsewhere)
    (folder / "runs.sh").touch(mode=0o755)
    assert withdraw_access([folder]) == 2
    assert stat.S_IMODE(elsewhere.stat().st_mode) == 0o644
    assert stat.S_IMODE((folder / "runs.sh").stat().st_mode) == 0o700 == stat.S_IMODE(folder.stat().st_mode)
