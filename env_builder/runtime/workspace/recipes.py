"""What a repository needs to run, as an environment holds it: interpreter, packages, commands.

In: recipe.json {"python", "test", "setup", "results", "lint", "env", "as_root", "way", "image"} (all but the first two may be
absent) and site.pack of an app's folder. Out: a sandbox with these packages. The packages are laid out once on a machine, in a
folder of the user's own, under the digest of the pack. Standard library only.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from .sandbox import (
    FOLDER,
    LINK,
    SITE,
    WORKSPACE,
    Changes,
    CommandLimits,
    CommandResult,
    Sandbox,
    SandboxUnavailable,
    best_way,
)
from .trees import lay_out, unpacked
from .warm import Loaded, warm_sandboxes

RECIPE, PACK = "recipe.json", "site.pack"
JUNIT = "{junit}"
"""Stands in a test command for the file that results are written to."""


class Recipe:
    """How the commands of a workspace run."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        row: dict[str, Any] = json.loads((folder / RECIPE).read_text("utf-8"))
        self.python: str = row["python"]
        """Version of the interpreter: 3.11."""
        self.test: tuple[str, ...] = tuple(row["test"])
        """Command of the tests; `JUNIT` stands for the file of results."""
        self.setup: tuple[str, ...] = tuple(row.get("setup") or ())
        """Command that runs before the tests, each time."""
        self.results: str | None = row.get("results")
        """File or folder of the workspace that results are written to, where the command does not take it."""
        self.lint: tuple[str, ...] = tuple(row.get("lint") or ())
        self.env: Mapping[str, str] = row.get("env") or {}
        self.as_root: bool = bool(row.get("as_root"))
        self.way: str | None = row.get("way")
        self.image: str | None = row.get("image")

    @cached_property
    def site(self) -> Path | None:
        """The folder of packages, None where none are needed."""
        pack = self._folder / PACK
        if not pack.is_file():
            return None
        content = pack.read_bytes()
        folder = cache_folder() / sha256(content).hexdigest()
        if not folder.is_dir():
            draft = folder.with_suffix(f".{os.getpid()}")
            lay_out(unpacked(content).get("site", {}), draft, is_given=False)
            compiling = [self.interpreter, "-I", "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash", str(draft)]
            subprocess.run(compiling, check=False, capture_output=True)
            try:
                draft.rename(folder)
            except OSError:   # another process was faster
                shutil.rmtree(draft, ignore_errors=True)
        return folder

    @cached_property
    def interpreter(self) -> str:
        """The interpreter of this machine that has the recipe's version. SandboxUnavailable: none is there."""
        if self.python == "{}.{}".format(*sys.version_info):
            return str(Path(sys.base_prefix, "bin", f"python{self.python}"))
        path = shutil.which(f"python{self.python}")
        if path is None:
            raise SandboxUnavailable(f"the workspace needs Python {self.python}, which this machine does not have")
        return path

    @cached_property
    def sandbox(self) -> Sandbox:
        """Where the commands run: in what the recipe asks for, else in the best that this machine has."""
        prefix = Path(self.interpreter).resolve().parent.parent
        return Sandbox(self.way or best_way(), self.site, self.as_root, self.image, prefix)

    def run(
        self, tree: Path, changes: Changes, command: Sequence[str], env: Mapping[str, str] | None = None,
        limits: CommandLimits | None = None,
    ) -> CommandResult:
        """Run a command over a tree and changes, with the recipe's packages and without this machine's."""
        return self.sandbox.run(tree, changes, command, self.environment if env is None else env, limits)

    def run_tests(
        self, tree: Path, changes: Changes, junit: str, env: Mapping[str, str], limits: CommandLimits,
    ) -> CommandResult:
        """Run all tests over a tree of `trees.folders` and changes: if it can be, in a fork that has their runner loaded."""
        module = self._module
        if module is not None and self.sandbox.way == "namespaces":
            loaded = Loaded(self.sandbox, module, tuple(sorted(self.environment.items())))
            with suppress(SandboxUnavailable):
                return warm_sandboxes.run(loaded, tree, changes, self.command(junit)[3:], {**self.environment, **env}, limits)
        return self.run_apart(tree, changes, junit, env, limits)

    def run_apart(
        self, tree: Path, changes: Changes, junit: str, env: Mapping[str, str], limits: CommandLimits,
    ) -> CommandResult:
        """Run all tests over a tree and changes, in a process that is started for them."""
        return self.run(tree, changes, self.command(junit), {**self.environment, **env}, limits)

    @property
    def _module(self) -> str | None:
        """The module of Python that is run as the tests; None where something else is run."""
        is_module = self.test[:2] in (("python3", "-m"), ("python", "-m")) and len(self.test) > 2 and not self.setup
        return self.test[2] if is_module else None

    def command(self, junit: str = "/tmp/junit.xml") -> list[str]:
        """Return the command of all tests."""
        test = [word.replace(JUNIT, junit) for word in self.test]
        return ["/bin/sh", "-c", f"{shlex.join(self.setup)} && {shlex.join(test)}"] if self.setup else test

    def reports(self, changes: Changes, junit: str) -> list[bytes]:
        """Return the files of results among what a run of the tests left; `junit`: the file that it was told."""
        place = junit if any(JUNIT in word for word in self.test) else self.results or junit
        paths = [path for path in sorted(changes) if path == place or (path.startswith(place + "/") and path.endswith(".xml"))]
        return [file.content for path in paths if (file := changes[path]) is not None and file.mode not in (FOLDER, LINK)]

    @property
    def runner(self) -> frozenset[str]:
        """Paths that the commands name: files of the workspace among them run the tests."""
        return frozenset(word.removeprefix("./") for word in (*self.test, *self.setup))

    def is_result(self, path: str) -> bool:
        """Whether a path is where results are written to, so that nothing may lie there before."""
        return self.results is not None and (path == self.results or path.startswith(self.results + "/"))

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables of commands."""
        return {name: value.replace("{site}", SITE).replace("{workspace}", WORKSPACE) for name, value in self.env.items()}


def cache_folder() -> Path:
    """Return the folder of this user in which packages are laid out."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = base / "traceroom-packages"   # "traceroom-sites" could be written by commands
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)
    return folder
