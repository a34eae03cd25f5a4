"""What earlier versions wrote into OUT, others may read no longer; what is not ours stays as it is."""

from __future__ import annotations

import stat
from pathlib import Path

from pipelines.settings import Settings
from warehouse.permissions import withdraw_access


def test_a_run_takes_what_earlier_versions_wrote_from_others(tmp_path: Path) -> None:
    ours = ("warehouse.duckdb", "rewards/hall/solutions.jsonl", "datasets/hall/sft.parquet")
    for name in (*ours, "notes.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
        path.chmod(0o644)
    assert Settings(logs=("logs",), out=str(tmp_path)).withdraw_access() >= len(ours)
    assert [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ours] == [0o600] * len(ours)
    assert stat.S_IMODE((tmp_path / "notes.txt").stat().st_mode) == 0o644


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
