#!/usr/bin/env python3
"""What is made of sessions of coding agents and their repositories.

    benchmarks/coding.py DATA [--privacy on|off]

DATA holds a folder for each repository, with logs/, repo.bundle and truth/. Each is run through `traceroom run LOGS
--repository BUNDLE` into an empty folder; truth/ is read afterwards, to score. Figures:

    starts_right          sessions whose start is the true commit, or has the same files; of all sessions that truth knows
    starts_right_time     the same of the baseline that takes the latest commit of the main branch at that time
    starts_wrong_unsaid   sessions with a start that is another; those without one have a reason
    starts_none           sessions without a start

Tables go to stderr; the last line on stdout is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from datetime import datetime
from pathlib import Path
from typing import Any

import duckdb

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from extractors.workspaces.repository import Repository  # noqa: E402


def main() -> int:
    """Measure every repository of the data set and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--privacy", choices=("on", "off"), default="on")
    options = parser.parse_args()
    folders = sorted(path.parent for path in options.data.glob("*/repo.bundle"))
    if not folders:
        parser.error(f"{options.data} has no folder with repo.bundle; name a data set")
    counts = [_counts(folder, options.privacy) for folder in folders]
    n_sessions = sum(each["n_sessions"] for each in counts)
    figures = {name: round(sum(each[name] for each in counts) / n_sessions, 4)
               for name in ("starts_right", "starts_right_time", "starts_wrong_unsaid", "starts_none")}
    print(json.dumps({"benchmark": "coding", "privacy": options.privacy, "n_sessions": n_sessions, "figures": figures}))
    return 0


def _counts(folder: Path, privacy: str) -> dict[str, int]:
    """Return how many sessions of a repository begin where they did."""
    with tempfile.TemporaryDirectory() as out:
        command = [sys.executable, "-P", "-m", "pipelines", "run", str(folder / "logs"), "--repository",
                   str(folder / "repo.bundle"), "--privacy", privacy, "--no-image", "--out", out]
        subprocess.run(command, check=True, cwd=ROOT, capture_output=True)
        with duckdb.connect(str(Path(out) / "warehouse.published.duckdb"), read_only=True) as warehouse:
            starts = dict(warehouse.sql("select session_id, commit_id from mart.starts order by all").fetchall())
    truth = [json.loads(line) for line in (folder / "truth" / "sessions.jsonl").read_text("utf-8").splitlines()]
    with Repository.open(folder / "repo.bundle") as repository:
        counts = dict.fromkeys(("n_sessions", "starts_right", "starts_right_time", "starts_wrong_unsaid", "starts_none"), 0)
        for session in truth:
            start, by_time = starts.get(session["session_id"]), _latest(session, repository)
            counts["n_sessions"] += 1
            counts["starts_right"] += (is_right := start is not None and _is_same(start, session["base_commit"], repository))
            counts["starts_right_time"] += by_time is not None and _is_same(by_time, session["base_commit"], repository)
            counts["starts_none"] += start is None
            counts["starts_wrong_unsaid"] += start is not None and not is_right
    print(folder.name, counts, file=sys.stderr)
    return counts


def _is_same(commit_id: str, other: str, repository: Repository) -> bool:
    trees = {each: repository.commits[each].tree_id for each in (commit_id, other) if each in repository.commits}
    return commit_id == other or (len(trees) == 2 and len(set(trees.values())) == 1)


def _latest(session: dict[str, Any], repository: Repository) -> str | None:
    """Return the latest commit of the main branch when a session began."""
    tip, began = repository.branch("main"), datetime.fromisoformat(session["started_at"])
    return next((commit.commit_id for commit in repository.history(tip or "") if commit.at <= began), None)


if __name__ == "__main__":
    raise SystemExit(main())
