"""What a change may touch: which of its files count as the solution, which are dropped, and which make it refused.

In: a tree, and what was changed on top of it. Out: the part that counts, and (path, reason) of what is refused. Refused:
changed or removed tests, what configures the runner (`conftest.py`, `pytest.ini`, `pyproject.toml`, CI, …), links, compiled
code, what Python loads by itself (`sitecustomize`, `.pth`, metadata of packages), and modules named like a library. New tests
are dropped: the known ones are what counts. Nothing else is dropped.

Sees: paths, kinds of files, modes. Does not see what a file says. Standard library only.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from pathlib import PurePosixPath
from typing import NamedTuple

from .sandbox import LINK, ChangedFile, Changes

_TEST_FOLDERS = frozenset(("test", "tests", "testing", "__tests__", "spec", "specs"))
_RUNNER = frozenset((
    "conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "tox.toml", "noxfile.py", "setup.py",
    "setup.cfg", "pyproject.toml", ".coveragerc", ".gitattributes", ".gitmodules", ".gitlab-ci.yml", "azure-pipelines.yml",
    "package.json", "tsconfig.json", ".mocharc.json", ".npmrc", "go.mod", "go.work", "Makefile", "makefile", "GNUmakefile"))
_RUNNER_STEMS = ("jest.config", "vitest.config", "vite.config", "babel.config", "karma.conf", ".mocharc", ".babelrc")
_CI = frozenset((".github", ".circleci", ".buildkite", ".gitlab"))
_LOADED = frozenset(("sitecustomize.py", "usercustomize.py"))
_COMPILED = frozenset((".pyc", ".pyo", ".so", ".pyd", ".dll", ".dylib", ".pth", ".egg-link", ".node"))
_METADATA = (".dist-info", ".egg-info", ".egg", "__pycache__", "node_modules", "site-packages")


class SortedChange(NamedTuple):
    """A change, sorted by what may count of it."""

    source: dict[str, ChangedFile | None]
    """What counts."""
    new_tests: tuple[str, ...]
    """Dropped."""
    refused: tuple[tuple[str, str], ...]
    """(path, why)."""


def is_test(path: str) -> bool:
    """Whether a file is part of the tests: of their code or their data."""
    parts = PurePosixPath(path)
    stem = parts.stem.lower()
    named = stem.startswith("test_") or stem.endswith(("_test", ".test", ".spec", "_spec")) or stem in ("conftest", "tests")
    return (named and parts.suffix not in ("", ".md", ".rst", ".txt")) or bool(
        _TEST_FOLDERS & {part.lower() for part in parts.parts[:-1]})


def configures(path: str) -> bool:
    """Whether a file configures how tests are run or packages are built."""
    parts = PurePosixPath(path)
    return parts.name in _RUNNER or parts.name.startswith((".traceroom", *_RUNNER_STEMS)) or parts.parts[0] in _CI


def sorted_change(
    tree: Mapping[str, ChangedFile], changes: Changes, libraries: Collection[str] = (), runner: Collection[str] = (),
) -> SortedChange:
    """Sort a change. `libraries`: names of modules that the tests import from elsewhere; `runner`: files that run the tests."""
    source: dict[str, ChangedFile | None] = {}
    new_tests, refused = [], []
    for path, file in sorted(_by_file(tree, changes).items()):
        why = "it runs the tests" if path in runner else _refusal(path, file, tree, libraries)
        if why is not None:
            refused.append((path, why))
        elif is_test(path):
            new_tests.append(path)
        else:
            source[path] = file
    return SortedChange(source, tuple(new_tests), tuple(refused))


def _by_file(tree: Mapping[str, ChangedFile], changes: Changes) -> dict[str, ChangedFile | None]:
    """Return a change with each file of a removed folder by itself."""
    single: dict[str, ChangedFile | None] = {}
    for path, file in changes.items():
        if file is None and path not in tree:
            single |= {each: None for each in tree if each.startswith(path + "/") and each not in changes}
        else:
            single[path] = file
    return single


def _refusal(path: str, file: ChangedFile | None, tree: Mapping[str, ChangedFile], libraries: Collection[str]) -> str | None:
    parts = PurePosixPath(path)
    before = tree.get(path)
    if file is not None and file.mode == LINK:
        return "it is a link"
    if file is not None and any("/".join(parts.parts[:n]) in tree for n in range(1, len(parts.parts))):
        return "a file lies where its folder is"
    if configures(path):
        return "it configures how tests are run"
    if parts.suffix in _COMPILED or parts.name in _LOADED or any(part.endswith(_METADATA) for part in parts.parts):
        return "it is loaded by itself or compiled, and nobody can read it"
    if before is not None and is_test(path):
        return "it is a test that was there" if file is not None else "a test that was there is gone"
    if file is not None and before is None and _is_library(parts, tree, libraries):
        return "it is named like a library"
    return None


def _is_library(parts: PurePosixPath, tree: Mapping[str, ChangedFile], libraries: Collection[str]) -> bool:
    """Whether a new module stands where it would be taken for a library's."""
    inner = parts.parts[1:] if parts.parts[0] in ("src", "lib", "python") and len(parts.parts) > 1 else parts.parts
    name = inner[0].partition(".")[0]
    above = "/".join((*parts.parts[:len(parts.parts) - len(inner)], name))
    is_own = any(each == f"{above}.py" or each.startswith(above + "/") for each in tree)
    is_python = parts.suffix in (".py", ".pyi") or len(inner) > 1
    return is_python and not is_own and (name in sys.stdlib_module_names or name in libraries)
