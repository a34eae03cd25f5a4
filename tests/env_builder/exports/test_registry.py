"""Somebody's own exporters are found by their entry points, listed where a name is missed, and called like ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_line import ROOT, environ

POND = '''
from env_builder.exports.exporter import Exported, Exporter, RoomExporter
from env_builder.exports.conversations import form
from env_builder.exports.steps import batches
from warehouse.records import Decision, empty

def rows(source, side, missed):
    for steps in batches(source, (side,)):
        yield from ({"episode": name} for name in steps["episode_id"].unique(maintain_order=True))

def write(out, kit):
    (out / "pond.txt").write_text(kit.digest)
    return Exported([out / "pond.txt"], empty(Decision))

TABLES = form("pond", rows)
ROOM = RoomExporter("pond_room", write)
'''


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """Return an environment in which somebody's package with two exporters is installed."""
    package = tmp_path / "pond-1.0.dist-info"
    package.mkdir()
    (tmp_path / "pond.py").write_text(POND)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: pond\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text("[traceroom.exports]\npond = pond:TABLES\npond_room = pond:ROOM\n")
    return {"PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)])}


def run(installed: dict[str, str], *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-P", "-m", "pipelines", *map(str, arguments)], capture_output=True, text=True,
                          env=environ(**installed), check=False)


def test_somebodys_exporters_are_called_like_ours(
    sample_run: Path, sample_environment: Path, installed: dict[str, str], tmp_path: Path
) -> None:
    done = run(installed, "export", "pond", sample_environment, "--to", tmp_path / "rows", "--split", "train")
    assert done.returncode == 0, done.stderr
    lines = (tmp_path / "rows" / "pond.train.jsonl").read_text("utf-8").splitlines()
    assert lines and all(set(json.loads(line)) == {"episode"} for line in lines)
    card = (tmp_path / "rows" / "README.md").read_text("utf-8")
    assert "config_name: pond" in card and f"| `pond` | another form | {len(lines)} | 0 | 0 |" in card
    whole = ("--split", "train", "--split", "validation", "--split", "held_out")
    done = run(installed, "export", "pond_room", sample_environment, "--to", tmp_path / "room", *whole)
    assert done.returncode == 0 and len((tmp_path / "room" / "pond.txt").read_text()) == 64, done.stderr
    missed = run(installed, "export", "ponds", sample_environment)
    assert missed.returncode == 2 and "pond, pond_room" in missed.stderr


def test_an_entry_point_that_is_no_exporter_is_named(installed: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "pond.py").write_text("TABLES = ROOM = print\n")
    done = run(installed, "export", "pond", tmp_path)
    assert done.returncode == 2 and "traceroom.exports: pond = pond:TABLES" in done.stderr and "Traceback" not in done.stderr
