"""How a repository's tests are run: Python, packages with hashes, the command, what is laid over each tree.

A recipe is a value with a digest. Its site is a folder of packages that is the same, byte for byte, wherever it is made; the
project itself is not installed: the folders of its modules are on PYTHONPATH.
"""

from __future__ import annotations

import compileall
import hashlib
import json
import os
import py_compile
import shutil
import sys
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from env_builder.runtime.workspace.sandbox import SITE, WORKSPACE, ChangedFile

from .packages import Interpreter, install, interpreters

CONFIGURATION = ".traceroom.ini"
"""The test runner's configuration, in the workspace while tests run."""
RESULTS = ".traceroom.xml"
"""Where the test runner writes its results as JUnit XML, in the workspace."""
PYTEST = ("python3", "-m", "pytest", "-c", CONFIGURATION, "--rootdir", WORKSPACE, "-o", "addopts=", "-p", "no:cacheprovider",
          "--continue-on-collection-errors", "--tb=short", f"--junitxml={RESULTS}")
"""A file that cannot be loaded, for what it tests is not there yet, does not keep the others from running."""
_REGULAR, _PROGRAM = 0o100644, 0o100755


@dataclass(frozen=True, slots=True)
class RepositoryRecipe:
    """How tests are run."""

    command: tuple[str, ...] = PYTEST
    """In the workspace; it writes JUnit XML to `results`."""
    results: str = RESULTS
    """A file or folder of JUnit XML, below the workspace."""
    minor: int | None = None
    """Of Python 3; None: no Python of ours is needed."""
    requirements: tuple[str, ...] = ()
    """`name==version --hash=…`."""
    env: tuple[tuple[str, str], ...] = ()
    files: tuple[tuple[str, str], ...] = ()
    """Path and text of what only a build writes, and of the test runner's configuration: laid over each tree."""
    site_files: tuple[tuple[str, str], ...] = ()
    """The same in the site: the project's own commands and its description."""
    as_root: bool = False
    setup: tuple[str, ...] = ()
    """A command that runs before the tests, each time; of other languages."""

    @property
    def digest(self) -> str:
        """Digest of all of it."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    @property
    def site_digest(self) -> str:
        """Digest of what its site is made from."""
        return hashlib.sha256(json.dumps([self.minor, self.requirements, self.site_files]).encode()).hexdigest()

    def to_json(self) -> str:
        """Return it as JSON."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> RepositoryRecipe:
        """Read what `to_json` wrote."""
        row: dict[str, Any] = json.loads(text)
        values: dict[str, Any] = {name: tuple(tuple(each) if isinstance(each, list) else each for each in value)
                                  if isinstance(value, list) else value for name, value in row.items()}
        return cls(**values)

    @property
    def workspace_row(self) -> dict[str, Any]:
        """Row of a workspace's recipe.json; `changes` are to be laid over its trees, and `{junit}` is where results go."""
        test = [word.replace(f"={RESULTS}", "={junit}") for word in self.command]
        python = f"3.{sys.version_info.minor if self.minor is None else self.minor}"
        row: dict[str, Any] = {"python": python, "test": test, "env": dict(self.env), "as_root": self.as_root}
        own = {} if any("={junit}" in word for word in test) else {"results": self.results}
        return row | own | ({"setup": list(self.setup)} if self.setup else {})

    @property
    def changes(self) -> dict[str, ChangedFile]:
        """What is laid over each tree."""
        return {path: ChangedFile(text.encode(), _REGULAR) for path, text in self.files}

    def with_packages(self, requirements: tuple[str, ...]) -> RepositoryRecipe:
        """Return it with other packages."""
        return replace(self, requirements=requirements)


class Sites:
    """Folders of packages, each made once, in a cache that may be deleted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def interpreter(self, recipe: RepositoryRecipe) -> Interpreter:
        """Return the Python of a recipe. LookupError where it is not installed here."""
        for each in interpreters():
            if each.minor == recipe.minor:
                return each
        raise LookupError(f"Python 3.{recipe.minor} is not installed here; install it")

    def site(self, recipe: RepositoryRecipe) -> Path:
        """Return the folder of a recipe's packages, without compiled files. Raises Unresolvable, NoInstaller."""
        folder = self.folder / recipe.site_digest[:32] / "site"
        if not folder.is_dir():
            with self._draft(folder) as draft:
                install(recipe.requirements, self.interpreter(recipe), Path(draft) / "site")
                for path, text in recipe.site_files:
                    target = Path(draft) / "site" / path
                    target.parent.mkdir(parents=True, exist_ok=True)
                    target.write_text(text, "utf-8")
                    target.chmod(0o755 if path.startswith("bin/") else 0o644)
                _readable(Path(draft) / "site")
                _move(Path(draft) / "site", folder)
        return folder

    def compiled(self, recipe: RepositoryRecipe) -> Path:
        """Return the same with compiled files beside the sources: tests begin faster."""
        folder = self.folder / recipe.site_digest[:32] / "compiled"
        if not folder.is_dir():
            site, python = self.site(recipe), self.interpreter(recipe)
            with self._draft(folder) as draft:
                made = Path(draft) / "compiled"
                shutil.copytree(site, made, copy_function=os.link)
                _compile(made, python)
                _readable(made)
                _move(made, folder)
        return folder

    def _draft(self, folder: Path) -> tempfile.TemporaryDirectory[str]:
        folder.parent.mkdir(parents=True, exist_ok=True)
        return tempfile.TemporaryDirectory(prefix=".draft-", dir=folder.parent)


def site_tree(folder: Path) -> dict[str, ChangedFile]:
    """Return the files of a site as a tree."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink())
    return {path.relative_to(folder).as_posix(): ChangedFile(
        path.read_bytes(), _PROGRAM if path.stat().st_mode & 0o100 else _REGULAR) for path in files}


def _compile(folder: Path, python: Interpreter) -> None:
    """Compile for the running version; another one compiles by itself."""
    if python == interpreters()[0]:
        compileall.compile_dir(folder, quiet=2, stripdir=str(folder), prependdir=SITE,
                               invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)


def _readable(folder: Path) -> None:
    """Let everybody read a folder, whatever this process makes by default: tests run as another user."""
    folder.chmod(0o755)
    for path in folder.rglob("*"):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)


def _move(made: Path, folder: Path) -> None:
    """Put a folder into its place; another process may have been faster."""
    made.chmod(0o755)
    try:
        made.rename(folder)
    except OSError:
        if not folder.is_dir():
            raise
