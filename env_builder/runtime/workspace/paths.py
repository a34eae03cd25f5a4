"""What a change may touch: which of its files count as the solution, which are dropped, and which make it refused.

In: a tree, and what was changed on top of it. Out: the part that counts, and (path, reason) of what is refused. Refused:
changed or removed tests, what configures the runner (`conftest.py`, `pytest.ini`, `pyproject.toml`, CI, …), links, compiled
code, what Python loads by itself (`sitecustomize`, `.pth`, metadata of packages), and modules named like a library. New tests
are dropped: the known ones are what counts. Nothing else is dropped.

What files are for (`kind_of_file`) is one law for builder and verifier; extractors/workspaces/file_kinds.py, which may not
import this, has the same, and a test compares them.

Sees: paths, kinds of files, modes. Does not see what a file says. Standard library only.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from pathlib import PurePosixPath
from typing import Literal, NamedTuple

from .sandbox import FOLDER, LINK, ChangedFile, Changes

_TEST_FOLDERS = frozenset(("test", "tests", "__tests__"))
_TEST_FOLDERS_ABOVE = frozenset(("testing", "spec", "specs"))
"""Folders of tests at the top or directly below a root of sources; within a package they are code of the library."""
_ROOTS = frozenset(("src", "lib", "python"))
_TEXTS = frozenset((".md", ".rst", ".txt", ".adoc"))
_DOCUMENTS = frozenset(("docs", "doc"))
_SCRIPTS = frozenset((".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx"))
_SETTINGS = frozenset((".toml", ".cfg", ".ini", ".yml", ".yaml", ".json", ".xml"))
"""Configuration at the top; within a folder they are data of the source."""
_RUNNER = frozenset((
    "conftest.py", "pytest.ini", ".pytest.ini", "pytest.toml", ".pytest.toml", "tox.ini", "tox.toml", "noxfile.py", "setup.py",
    "setup.cfg", "pyproject.toml", ".coveragerc", ".gitattributes", ".gitmodules", ".gitlab-ci.yml", "azure-pipelines.yml",
    "package.json", "tsconfig.json", ".mocharc.json", ".npmrc", "go.mod", "go.work", "Makefile", "makefile", "GNUmakefile"))
_RUNNER_STEMS = ("jest.config", "vitest.config", "vite.config", "babel.config", "karma.conf", ".mocharc", ".babelrc")
_OURS = ".traceroom"
"""How files begin that a recipe lays over a tree."""
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
    folders = [part.lower() for part in parts.parts[:-1]]
    top = folders[1:] if folders[:1] and folders[0] in _ROOTS else folders
    stem = parts.stem.lower()
    is_named = stem.startswith("test_") or stem.endswith(("_test", ".test", ".spec", "_spec")) or stem in ("conftest", "tests")
    if parts.suffix.lower() in _SCRIPTS:   # as the runner of Node.js looks for them
        is_named = is_named or stem == "test" or stem.startswith("test-") or stem.endswith("-test")
    is_code = bool(parts.suffix) and parts.suffix.lower() not in _TEXTS
    return (is_code and (is_named or (stem == "test" and not folders))) or bool(
        _TEST_FOLDERS.intersection(folders) or _TEST_FOLDERS_ABOVE.intersection(top[:1]))


def configures(path: str) -> bool:
    """Whether a file configures how tests are run or packages are built."""
    parts = PurePosixPath(path)
    return parts.name in _RUNNER or parts.name.startswith((*_RUNNER_STEMS, _OURS)) or parts.parts[0] in _CI


def kind_of_file(path: str) -> Literal["tests", "configuration", "texts", "source"]:
    """Return what a file of a repository is for."""
    parts = PurePosixPath(path)
    suffix, is_top = parts.suffix.lower(), len(parts.parts) == 1
    if is_test(path):
        return "tests"
    if configures(path) or parts.name.startswith(".") or parts.parts[0].startswith(".") or suffix == ".lock" or (
            is_top and suffix in _SETTINGS):
        return "configuration"
    is_text = suffix in _TEXTS or (not suffix and (is_top or parts.name.isupper()))
    return "texts" if is_text or parts.parts[0] in _DOCUMENTS else "source"


class Surroundings(NamedTuple):
    """What lies around a tree when its tests run."""

    libraries: Collection[str] = ()
    """Names of modules that tests or their runner import from elsewhere."""
    roots: Collection[str] = ()
    """Folders of the tree, as far as they are known, in which modules are looked for."""
    runner: Collection[str] = ()
    """Files of the tree that run the tests."""


def sorted_change(
    tree: Mapping[str, ChangedFile], changes: Changes, around: Surroundings | None = None,
) -> SortedChange:
    """Sort a change of a tree."""
    around = around or Surroundings()
    searched = {"", *_ROOTS, *around.roots}
    source: dict[str, ChangedFile | None] = {}
    new_tests, refused = [], []
    for path, file in sorted(_by_file(tree, changes).items()):
        why = "it runs the tests" if path in around.runner else _refusal(path, file, tree)
        if why is None and _is_library(path, file, tree, around.libraries, searched):
            why = "it is named like a library"
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
        if file is not None and file.mode == FOLDER:
            continue   # an empty folder is nothing that counts
        if file is None and path not in tree:
            single |= {each: None for each in tree if each.startswith(path + "/") and each not in changes}
        else:
            single[path] = file
    return single


def _refusal(path: str, file: ChangedFile | None, tree: Mapping[str, ChangedFile]) -> str | None:
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
    return None


def _is_library(
    path: str, file: ChangedFile | None, tree: Mapping[str, ChangedFile], libraries: Collection[str], roots: Collection[str],
) -> bool:
    """Whether a new module stands where it would be taken for a library's."""
    if file is None or path in tree:
        return False
    for root in roots:
        if root and not path.startswith(root + "/"):
            continue
        inner = path.removeprefix(root + "/") if root else path
        first, _, below = inner.partition("/")
        name = first.partition(".")[0]
        above = f"{root}/{name}" if root else name
        is_own = any(each == f"{above}.py" or each.startswith(above + "/") for each in tree)
        is_python = bool(below) or first.endswith((".py", ".pyi"))
        if is_python and not is_own and (name in sys.stdlib_module_names or name in libraries):
            return True
    return False
