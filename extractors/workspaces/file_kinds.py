"""What each file of a repository is for, by its path alone.

Tests: files named as tests, folders of tests (`testing`, `spec`, `specs` only at the top or directly below a root of sources:
within a package they are code of the library). Configuration: what configures runners, builds and CI, hidden files, and
settings at the top; JSON, YAML and TOML within a folder are data of the source. Texts: documents. All else is source.

The verifier of a repository's environment has the same law (env_builder/runtime/workspace/paths.py), which extractors may not
import; a test compares the two. Does not see what a file says.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Literal

_TEST_FOLDERS = frozenset(("test", "tests", "__tests__"))
_TEST_FOLDERS_ABOVE = frozenset(("testing", "spec", "specs"))
_ROOTS = frozenset(("src", "lib", "python"))
_TEXTS = frozenset((".md", ".rst", ".txt", ".adoc"))
_DOCUMENTS = frozenset(("docs", "doc"))
_SCRIPTS = frozenset((".js", ".mjs", ".cjs", ".ts", ".mts", ".cts", ".jsx", ".tsx"))
_SETTINGS = frozenset((".toml", ".cfg", ".ini", ".yml", ".yaml", ".json", ".xml"))
_RUNNER = frozenset((
    "pytest.toml", "tox.ini", "tox.toml", "noxfile.py", "setup.py", "pytest.ini", "setup.cfg", "pyproject.toml",
    "azure-pipelines.yml", "package.json", "tsconfig.json", "go.mod", "go.work", "Makefile", "makefile", "GNUmakefile"))
_RUNNER_STEMS = ("jest.config", "vitest.config", "vite.config", "babel.config", "karma.conf")


def kind_of(path: str) -> Literal["tests", "configuration", "texts", "source"]:
    """Return what a file of a repository is for."""
    parts = PurePosixPath(path)
    suffix, is_top = parts.suffix.lower(), len(parts.parts) == 1
    if _is_test(parts):
        return "tests"
    if parts.name in _RUNNER or parts.name.startswith((".", *_RUNNER_STEMS)) or parts.parts[0].startswith(".") or (
            suffix == ".lock" or (is_top and suffix in _SETTINGS)):
        return "configuration"
    is_text = suffix in _TEXTS or (not suffix and (is_top or parts.name.isupper()))
    return "texts" if is_text or parts.parts[0] in _DOCUMENTS else "source"


def _is_test(parts: PurePosixPath) -> bool:
    folders = [part.lower() for part in parts.parts[:-1]]
    top = folders[1:] if folders[:1] and folders[0] in _ROOTS else folders
    stem = parts.stem.lower()
    is_named = stem.startswith("test_") or stem.endswith(("_test", ".test", ".spec", "_spec")) or stem in ("conftest", "tests")
    if parts.suffix.lower() in _SCRIPTS:   # as the runner of Node.js looks for them
        is_named = is_named or stem == "test" or stem.startswith("test-") or stem.endswith("-test")
    is_code = bool(parts.suffix) and parts.suffix.lower() not in _TEXTS
    return (is_code and (is_named or (stem == "test" and not folders))) or bool(
        _TEST_FOLDERS.intersection(folders) or _TEST_FOLDERS_ABOVE.intersection(top[:1]))
