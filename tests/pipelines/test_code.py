"""The code digest of a stage: it covers what the stage's work imports, and nothing else of the product."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.running import code
from pipelines.running.code import PACKAGES, closure
from pipelines.stages import STAGES

ROOT = Path(__file__).parents[2]
WORLD = next(stage for stage in STAGES if stage.name == "world")
DIGESTS = "from pipelines.stages import STAGES; print(*(f'{stage.name}={stage.code}' for stage in STAGES))"


def stages_that_change(product: Path, changed: str) -> set[str]:
    """Return the stages whose digest a comment in one file changes."""
    before = {stage.name: stage.code for stage in STAGES}
    (product / changed).write_text((product / changed).read_text("utf-8") + "\n# a comment\n", "utf-8")
    return {name for name, digest in digests(product).items() if digest != before[name]}


def digests(product: Path) -> dict[str, str]:
    done = subprocess.run([sys.executable, "-c", DIGESTS], cwd=product, capture_output=True, text=True, check=True,
                          env={"PYTHONPATH": str(product), "XDG_CACHE_HOME": str(product / "cache"), "PATH": ""})
    return dict(each.split("=") for each in done.stdout.split())


@pytest.fixture
def product(tmp_path: Path) -> Path:
    """Return a copy of the product's sources."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_a_page_of_the_browser_recomputes_nothing(product: Path) -> None:
    assert stages_that_change(product, "pipelines/browser/pages.py") == set()


def test_an_induced_rule_recomputes_worlds_and_not_sessions(product: Path) -> None:
    changed = stages_that_change(product, "env_builder/behaviour/writes.py")
    assert {"world"} <= changed and not {"extract", "sessions", "outcomes", "datasets"} & changed


def test_what_entry_points_name_and_what_is_copied_counts() -> None:
    extract, environments = (closure(str(stage.work).partition(":")[0]) for stage in STAGES
                             if stage.name in ("extract", "environments"))
    assert "extractors/formats/envelope.py" in extract, "a format is loaded by its entry point"
    assert {"env_builder/runtime/__main__.py", "warehouse/schema.sql"} <= set(environments)


def test_the_newest_graphs_of_imports_are_kept_and_a_kept_one_is_not_made_again(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkouts and environments take turns, and each finds its own graph again."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "traceroom").mkdir()
    others = [tmp_path / "traceroom" / f"imports-{number}.json" for number in range(9)]
    for number, other in enumerate(others):
        other.write_text("{}")
        os.utime(other, (number, number))
    graph = code._graph.__wrapped__()
    [own] = set((tmp_path / "traceroom").iterdir()) - set(others)
    assert [other.exists() for other in others] == [False, False, *[True] * 7]
    os.utime(own, (100, 100))
    assert code._graph.__wrapped__() == graph and own.stat().st_mtime == 100
