"""Run the tests of a tree, and say what came of each.

In: a tree and a recipe. Out: the outcome of each test by its id, `tests/test_x.py::Class::test`. Every run is in a sandbox of
its own; a tree with a recipe is run as often as asked for, and no more.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from env_builder.runtime.workspace.junit import OUTCOMES, test_cases
from env_builder.runtime.workspace.sandbox import Changes, CommandLimits, CommandResult, Sandbox
from env_builder.runtime.workspace.trees import Tree, lay_out

from .recipe import RepositoryRecipe, Sites

_LIMITS = CommandLimits(seconds=300.0, memory_mb=4096, files_mb=128)
_FEWEST_SECONDS, _TIMES_AS_LONG = 30.0, 10.0
"""A run is ended after this time, or so many times the longest that ended by itself."""
_MOST_MESSAGES = 200


class TrialRun(NamedTuple):
    """What came of one run of a tree's tests."""

    outcomes: dict[str, str]
    """Id of a test -> one of `OUTCOMES`, in the order in which they ran."""
    seconds: dict[str, float]
    code: int
    """Of the command."""
    messages: str
    """What failed tests and the command said."""
    timed_out: bool = False

    @property
    def passed(self) -> frozenset[str]:
        """The tests that passed."""
        return frozenset(test for test, outcome in self.outcomes.items() if outcome == "passed")


class Trials:
    """Runs tests, each tree with each recipe and number of the repetition once."""

    def __init__(self, sites: Sites, way: str, scratch: Path, n_workers: int | None = None) -> None:
        self.sites, self._way, self._scratch = sites, way, scratch
        self._pool = ThreadPoolExecutor(n_workers or os.cpu_count() or 1)
        self._made: dict[tuple[str, str, int], TrialRun] = {}
        self.n_runs = 0
        self._longest: float | None = None

    def of(self, tree: Tree, recipe: RepositoryRecipe, n: int = 1) -> list[TrialRun]:
        """Return `n` runs of a tree."""
        return self.of_all([tree], recipe, n)[0]

    def of_all(self, trees: Sequence[Tree], recipe: RepositoryRecipe, n: int = 1) -> list[list[TrialRun]]:
        """Return `n` runs of each tree, run side by side."""
        names = [digest_of(tree) for tree in trees]
        missing = {(name, at): tree for name, tree in zip(names, trees, strict=True) for at in range(n)
                   if (name, recipe.digest, at) not in self._made}
        if missing and recipe.minor is not None:
            self.sites.compiled(recipe)
        with tempfile.TemporaryDirectory(prefix="trees-", dir=self._scratch) as scratch:
            Path(scratch).chmod(0o755)
            folders = {name: lay_out(tree, Path(scratch) / name[:32]) for (name, _), tree in missing.items()
                       if not (Path(scratch) / name[:32]).is_dir()}
            jobs = {(name, at): self._pool.submit(self._run, folders[name], tree, recipe)
                    for (name, at), tree in missing.items()}
            for (name, at), job in jobs.items():
                self._made[name, recipe.digest, at] = job.result()
        self.n_runs += len(missing)
        return [[self._made[name, recipe.digest, at] for at in range(n)] for name in names]

    def _run(self, folder: Path, tree: Tree, recipe: RepositoryRecipe) -> TrialRun:
        sandbox, env = Sandbox(self._way, as_root=recipe.as_root), dict(recipe.env)
        if recipe.minor is not None:
            python = self.sites.interpreter(recipe)
            sandbox = sandbox._replace(site=self.sites.compiled(recipe), prefix=python.prefix)
        changes: Changes = recipe.changes
        if recipe.setup:
            changes = sandbox.run(folder, recipe.changes, recipe.setup, env, _LIMITS).changes
        limits = _LIMITS if self._longest is None else _LIMITS._replace(
            seconds=min(_LIMITS.seconds, max(_FEWEST_SECONDS, _TIMES_AS_LONG * self._longest)))
        ran = sandbox.run(folder, changes, recipe.command, env, limits)
        if not ran.timed_out:
            self._longest = max(self._longest or 0.0, ran.seconds)
        return _trial(ran, recipe, frozenset(tree) | frozenset(path for path, _ in recipe.files))


def digest_of(tree: Tree) -> str:
    """Return the digest of a tree."""
    rows = [[path, file.mode, hashlib.sha256(file.content).hexdigest()] for path, file in sorted(tree.items())]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def _trial(ran: CommandResult, recipe: RepositoryRecipe, paths: frozenset[str]) -> TrialRun:
    outcomes: dict[str, str] = {}
    seconds: dict[str, float] = {}
    messages = [ran.output]
    for path, file in sorted(ran.changes.items()):
        if file is None or not (path == recipe.results or (path.startswith(recipe.results + "/") and path.endswith(".xml"))):
            continue
        for case in test_cases(file.content, paths) or ():
            outcomes[case.test] = max(outcomes.get(case.test, "passed"), case.outcome, key=OUTCOMES.index)
            seconds[case.test] = seconds.get(case.test, 0.0) + case.seconds
            if case.message and len(messages) < _MOST_MESSAGES:
                messages.append(case.message)
    return TrialRun(outcomes, seconds, ran.code, "\n".join(messages), ran.timed_out)
