"""Each way to touch what judges a change is refused with its reason, and honest changes count."""

from __future__ import annotations

import pytest

from env_builder.runtime.workspace.paths import Surroundings, sorted_change
from env_builder.runtime.workspace.sandbox import FOLDER, LINK, ChangedFile
from tests.workspaces import file

TREE = {path: file("1") for path in (
    "README.md", "pyproject.toml", "conftest.py", "src/lamp/__init__.py", "src/lamp/wick.py", "src/lamp/data.json",
    "tests/test_wick.py", "tests/helpers.py", "tests/data/golden.json", "docs/index.md", "scripts/run.py", "lib2/old.py")}
NEW = file("2")


@pytest.mark.parametrize(("path", "change", "reason"), [
    ("tests/test_wick.py", NEW, "it is a test that was there"),
    ("tests/test_wick.py", None, "a test that was there is gone"),
    ("tests/data/golden.json", NEW, "it is a test that was there"),
    ("tests/helpers.py", None, "a test that was there is gone"),
    ("conftest.py", NEW, "it configures how tests are run"),
    ("src/lamp/conftest.py", NEW, "it configures how tests are run"),
    ("tests/conftest.py", NEW, "it configures how tests are run"),
    ("pyproject.toml", NEW, "it configures how tests are run"),
    ("pyproject.toml", None, "it configures how tests are run"),
    ("pytest.ini", NEW, "it configures how tests are run"),
    (".traceroom.ini", NEW, "it configures how tests are run"),
    (".github/workflows/ci.yml", NEW, "it configures how tests are run"),
    ("jest.config.mjs", NEW, "it configures how tests are run"),
    ("src/lamp/wick.py", file("../x", LINK), "it is a link"),
    ("anything", file("/", LINK), "it is a link"),
    ("README.md/wick.py", NEW, "a file lies where its folder is"),
    ("src/lamp/wick.so", NEW, "it is loaded by itself or compiled, and nobody can read it"),
    ("src/lamp/__pycache__/wick.cpython-311.pyc", NEW, "it is loaded by itself or compiled, and nobody can read it"),
    ("evil.pth", NEW, "it is loaded by itself or compiled, and nobody can read it"),
    ("src/sitecustomize.py", NEW, "it is loaded by itself or compiled, and nobody can read it"),
    ("lamp-9.dist-info/entry_points.txt", NEW, "it is loaded by itself or compiled, and nobody can read it"),
    ("src/lamp.egg-info/PKG-INFO", NEW, "it is loaded by itself or compiled, and nobody can read it"),
    ("pytest/__init__.py", NEW, "it is named like a library"), ("src/pytest.py", NEW, "it is named like a library"),
    ("json.py", NEW, "it is named like a library"), ("src/random/__init__.py", NEW, "it is named like a library"),
    ("lib2/pluggy.py", NEW, "it is named like a library")])
def test_what_may_not_be_touched_is_refused_with_its_reason(path: str, change: ChangedFile | None, reason: str) -> None:
    honest = {"src/lamp/wick.py": NEW} if path != "src/lamp/wick.py" else {}
    result = sorted_change(TREE, {**honest, path: change}, Surroundings({"pytest", "pluggy"}, ("lib2",)))
    assert result.refused == ((path, reason),)
    assert path not in result.source


def test_a_folder_that_is_gone_is_each_of_its_files() -> None:
    result = sorted_change(TREE, {"tests": None, "src/lamp": None})
    assert {path for path, _ in result.refused} == {"tests/test_wick.py", "tests/helpers.py", "tests/data/golden.json"}
    assert result.source == {"src/lamp/__init__.py": None, "src/lamp/wick.py": None, "src/lamp/data.json": None}


def test_honest_changes_count() -> None:
    changes = {
        "src/lamp/wick.py": NEW, "src/lamp/oil.py": NEW, "src/lamp/json.py": NEW, "src/lamp/data.json": None, "README.md": NEW,
        "docs/guide.md": NEW, "scripts/logging_of_runs.py": NEW, "src/burner/__init__.py": NEW, "CHANGES.rst": NEW,
        "src/lamp/wick": file("program", 0o100755), "src/lamp/pytest_like.py": NEW}
    result = sorted_change(TREE, changes, Surroundings({"pytest"}))
    assert result == (changes, (), ())


def test_new_tests_are_dropped_and_refuse_nothing() -> None:
    result = sorted_change(TREE, {"tests/test_oil.py": NEW, "tests/data/new.json": NEW, "src/lamp/oil_test.py": NEW})
    assert result == ({}, ("src/lamp/oil_test.py", "tests/data/new.json", "tests/test_oil.py"), ())


def test_empty_folders_are_nothing() -> None:
    empty = ChangedFile(b"", FOLDER)
    changes = {".github": empty, "tests": empty, "x.egg-info": empty, "pytest": empty}
    assert sorted_change(TREE, changes, Surroundings({"pytest"})) == ({}, (), ())
