"""The code digest of a stage: it covers what the stage's work imports, and nothing else of the product."""

from __future__ import annotations

import json
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


LOADED = """
import json, sys
from pathlib import Path
from pipelines.running.code import closure
from pipelines.running.run import run
from pipelines.running.stage import carry_out
from pipelines.settings import Settings
from pipelines.stages import STAGES

settings, there = Settings(logs=(sys.argv[1],), out=sys.argv[2], image=False), set(sys.modules)
for stage in STAGES:
    carry_out(stage, settings)
    new = {getattr(sys.modules[name], "__file__", None) or "" for name in {*sys.modules} - there}
    there |= {*sys.modules}
    own = {Path(each).relative_to(sys.argv[3]).as_posix() for each in new if each.startswith(sys.argv[3])}
    own = {each for each in own if not each.startswith(("pipelines/running/", ".venv/", "tests/"))}
    print(json.dumps([stage.name, sorted(own - {*closure(stage.work.partition(":")[0])})]))
"""
LOG = """{"session_id": "s1", "at": "2026-03-01T10:00:00Z", "role": "user", "content": "Close ticket 7."}
{"session_id": "s1", "at": "2026-03-01T10:00:05Z", "role": "assistant", "content": "It is closed."}
"""


def stages_that_change(product: Path, changed: str) -> set[str]:
    """Return the stages whose digest a comment in one file changes."""
    before = {stage.name: stage.code for stage in STAGES}
    with (product / changed).open("a", encoding="utf-8") as file:
        file.write("\n# a comment\n")
    return {name for name, digest in digests(product).items() if digest != before[name]}


def digests(product: Path, *before: Path) -> dict[str, str]:
    """Return each stage's digest as a fresh process sees it; `before`: folders that come first where it looks for packages."""
    done = subprocess.run([sys.executable, "-c", DIGESTS], cwd=product, capture_output=True, text=True, check=True,
                          env={"PYTHONPATH": os.pathsep.join(map(str, [product, *before])), "PATH": "",
                               "XDG_CACHE_HOME": str(product / "cache")})
    return dict(each.split("=") for each in done.stdout.split())


@pytest.fixture
def product(tmp_path: Path) -> Path:
    """Return a copy of the product's sources."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path


def test_a_page_of_the_browser_recomputes_nothing(product: Path) -> None:
    assert stages_that_change(product, "pipelines/browser/pages.py") == set()


@pytest.mark.slow
def test_an_induced_rule_recomputes_worlds_and_not_sessions(product: Path) -> None:
    changed = stages_that_change(product, "env_builder/behaviour/writes.py")
    assert {"world"} <= changed and not {"extract", "sessions", "outcomes", "datasets"} & changed


@pytest.mark.slow
def test_files_that_are_read_and_not_imported_count_where_they_are_read(product: Path) -> None:
    every = {stage.name for stage in STAGES}
    for changed, again, not_again in (
            ("env_builder/company/descriptors/slack-mcp-server.jsonl", {"company_rooms"}, {"extract", "sessions", "world"}),
            ("env_builder/exports/adapters/trl_room.py", {"datasets"}, {"extract", "world", "tasks", "environments"}),
            ("env_builder/runtime/office/slack.py", {"environments", "company_rooms", "world"}, set[str]()),
            ("warehouse/comments.sql", every, set[str]()),
            ("pipelines/browser/templates/tasks.html.jinja", set[str](), every)):
        found = stages_that_change(product, changed)
        shutil.copy(ROOT / changed, product / changed)
        assert again <= found and not not_again & found, changed


@pytest.mark.slow
def test_another_version_of_a_library_counts_where_it_is_used(product: Path, tmp_path: Path) -> None:
    """Dulwich reads repositories; selectolax parses pages."""
    before = {stage.name: stage.code for stage in STAGES}
    other = tmp_path / "other" / "selectolax-999.0.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: selectolax\nVersion: 999.0\n")
    found = {name for name, digest in digests(product, other.parent).items() if digest != before[name]}
    assert "site_rooms" in found and not {"sessions", "world"} & found


def test_whatever_a_stage_loads_is_in_its_closure(tmp_path: Path) -> None:
    """Also what functions import when they run, in a whole run over a small log."""
    (tmp_path / "log.jsonl").write_text(LOG)
    done = subprocess.run([sys.executable, "-c", LOADED, str(tmp_path / "log.jsonl"), str(tmp_path / "out"), f"{ROOT}/"],
                          cwd=ROOT, capture_output=True, text=True, check=True)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert [name for name, _ in rows] == [stage.name for stage in STAGES]
    assert {name: missing for name, missing in rows if missing} == {}


@pytest.mark.slow
def test_after_a_change_only_what_changed_is_parsed(product: Path) -> None:
    digests(product)
    kept = product / "cache" / "traceroom" / "modules.json"
    rows = json.loads(kept.read_text("utf-8"))
    rows["modules"]["warehouse/errors.py"][1] = [["extractors.routes"], [], []]   # said of this content: it is not parsed
    kept.write_text(json.dumps(rows), "utf-8")
    graph_of = "from pipelines.running import code; print(code._code_map().graph['warehouse/errors.py'])"
    (product / "pipelines/progress.py").write_text("import extractors\n")
    for changed, expected in (("pipelines/progress.py", True), ("warehouse/errors.py", False)):
        with (product / changed).open("a", encoding="utf-8") as file:
            file.write("\n# a comment\n")
        done = subprocess.run([sys.executable, "-c", graph_of], cwd=product, capture_output=True, text=True, check=True,
                              env={"PYTHONPATH": str(product), "XDG_CACHE_HOME": str(product / "cache"), "PATH": ""})
        assert ("extractors/routes.py" in done.stdout) is expected


def test_what_entry_points_name_and_what_is_copied_counts() -> None:
    extract, environments = (closure(str(stage.work).partition(":")[0]) for stage in STAGES
                             if stage.name in ("extract", "environments"))
    assert "extractors/formats/envelope.py" in extract, "a format is loaded by its entry point"
    assert {"env_builder/runtime/__main__.py", "warehouse/schema.sql"} <= set(environments)


@pytest.mark.slow
def test_the_newest_graphs_of_imports_are_kept_and_a_kept_one_is_not_made_again(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Checkouts and environments take turns, and each finds its own graph again."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "traceroom").mkdir()
    others = [tmp_path / "traceroom" / f"imports-{number}.json" for number in range(9)]
    for number, other in enumerate(others):
        other.write_text("{}")
        os.utime(other, (number, number))
    graph = code._code_map.__wrapped__()
    [own] = set((tmp_path / "traceroom").glob("imports-*.json")) - set(others)
    assert [other.exists() for other in others] == [False, False, *[True] * 7]
    os.utime(own, (100, 100))
    assert code._code_map.__wrapped__() == graph and own.stat().st_mtime == 100
