"""Links that somebody planted in OUT between two runs: to folders and files of others; the next run changes none of these."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.attacks.hostile_run import run_over
from tests.attacks.logs import conversation, files_below
from tests.attacks.report import Report

PLACES = ("environments", "datasets", "rewards", "unverified", "warehouse.published.duckdb", "warehouse.duckdb",
    "warehouse.duckdb.lock", "answers", "corrections",
          "cache", "left.json")


def attack(folder: Path, share: float) -> Report:
    """Run, replace a part of the results by a link to a victim's, and run on more logs."""
    logs, first = folder / "logs", folder / "first"
    logs.mkdir()
    (logs / "a.jsonl").write_bytes(b"".join(conversation(number) for number in range(4)))
    done = run_over(logs, first)
    assert done.returncode in (0, 1), done.stderr
    (logs / "b.jsonl").write_bytes(b"".join(conversation(number) for number in range(4, 8)))
    problems, places = [], PLACES if share >= 0.1 else PLACES[4:6]
    for place in places:
        out, victim = folder / f"out-{place}", folder / f"victim-{place}"
        shutil.copytree(first, out)
        victim.mkdir()
        (victim / "kept").write_text("untouched")
        target = out / place
        if target.is_dir():
            shutil.rmtree(target)
        elif target.exists():
            target.unlink()
        target.symlink_to(victim if "." not in place and place in ("environments", "datasets", "rewards", "unverified",
            "corrections") else victim / "kept")
        done = run_over(logs, out)
        problems += [f"{place}: {done.stderr[-300:]}"] if "mistake in Traceroom" in done.stderr else []
        problems += [f"{place}: the victim's file is changed"] if (victim / "kept").read_text("utf-8",
            "replace") != "untouched" else []
        problems += [f"{place}: {files_below(victim)}" for _ in [0] if files_below(victim) != {str(victim / "kept")}]
    return Report(len(places), tuple(problems))


@pytest.mark.slow
def test_a_link_in_the_results_changes_nothing_elsewhere(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
