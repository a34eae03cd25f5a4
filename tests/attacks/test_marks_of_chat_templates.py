"""Texts that hold a chat template's own marks: in datasets they stay content of whoever said them, and make no turn and no
role."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

from tests.attacks.hostile_run import GROUP, MARK, hostile_run
from tests.attacks.report import Report

ROLES = frozenset({"system", "user", "assistant", "tool", "developer"})


def attack(folder: Path, share: float) -> Report:
    """Read each line and row of the datasets of a hostile run."""
    problems, n, n_hostile = [], 0, 0
    folders = hostile_run() / "datasets"
    for path in sorted(folders.rglob("*.jsonl")):
        for line in filter(None, path.read_text("utf-8").split("\n")):
            n += 1
            row = json.loads(line)
            messages = row.get("messages") or row.get("prompt") or []
            n_hostile += MARK in line
            problems += [f"{path.name}: a message of {each.get('role')!r}" for each in messages
                if each.get("role") not in ROLES]
            problems += [f"{path.name}: instructions hold {MARK}" for each in messages if each.get("role") in ("system",
                "developer") and MARK in str(each.get("content"))]
            problems += [f"{path.name}: a field {name!r}" for each in messages for name in each if MARK in name]
    for path in sorted(folders.rglob("*.parquet")):
        table = pl.read_parquet(path)
        n += table.height
        problems += [f"{path.name}: a column {name!r}" for name in table.columns if MARK in name]
    problems += [] if n_hostile else [f"none of {n} rows holds what was said"]
    return Report(n, tuple(problems))


@pytest.mark.slow
@pytest.mark.xdist_group(GROUP)
def test_a_mark_of_a_template_is_content(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
