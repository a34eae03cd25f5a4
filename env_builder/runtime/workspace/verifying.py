"""Whether a change solves a task: the known tests, and answers compared outside, in a sandbox of their own.

In: the tree that a task begins with, what differs from it at the end (taken by the host, never by the agent), and what the
grader knows: `known.pack` and `verify.jsonl` of the rewards' folder. Out: a `Verification`. Layers, each only where the ones
before it held:

1. Paths (paths.py): tests that were there, the runner's configuration, links and what loads itself make a change refused.
2. The known tests run on the clean tree with the part of the change that counts, in a sandbox without a network, in an order
   that the seed chooses, under a configuration of ours. Results are JUnit XML under a name that is drawn each time. No report:
   all failed.
3. Questions: the known tests without the answers, also with other inputs. The code under test only computes; this process,
   which never loads it, compares with what the known solution computed. What changes verdicts from within (a patched runner,
   objects that are equal to all, results that are written down) has no say here.

Does not see: a solution that is right on every known and drawn input and wrong on others. Tests of which no question could be
made (`forgeable`) rest on layer 2 alone, where code under test can forge its report: signs of that leave the episode
unscored. Standard library only.
"""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cached_property, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from ..files import rows_of
from .junit import OUTCOMES, outcomes
from .paths import Surroundings, is_test, sorted_change
from .recipes import Recipe
from .sandbox import FOLDER, WITHIN, WORKSPACE, ChangedFile, Changes, CommandLimits, CommandResult
from .signs import signs_in
from .trees import Began, Tree, folders, unpacked

VERIFY, TESTS = "verify.jsonl", "known.pack"
ORDER = "TRACEROOM_ORDER"
"""Environment variable: the seed of the order of tests."""
ANSWERS = "TRACEROOM_ANSWERS"
"""Environment variable: the file of answers."""
VARIANT = "__variant"
"""Stands in the name of a question with other inputs, behind the test's own name."""
N_ORDERS = 3
"""Orders of tests that a seed chooses from: the known solution was run in each of them."""
_REMEMBERED = 256
_LEAST_S, _A_TEST_S = 60.0, 0.25
"""Seconds that a run may take: at least, and in addition for each known test."""


class KnownTask(NamedTuple):
    """What the grader knows of a task."""

    task_id: str
    tests: str
    """Name of the tree of known tests."""
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    known_lines: int
    """Lines that the known solution takes out or puts in."""
    questions: str | None
    """Name of the tree of questions."""
    answers: Mapping[str, str]
    """Question -> digest of what the known solution computes."""
    forgeable: bool
    """No question could be made of a test that the solution turns."""
    libraries: tuple[str, ...]
    signs: tuple[str, ...] = ()
    """Signs that the known solution has itself."""
    undisturbed: bool = False
    """Some of the tests pass only in their own order and in a process that is started for them."""


class Verification:
    """What is known of one change; each part is worked out when it is first asked for."""

    def __init__(self, verifier: Verifier, knowledge: KnownTask, began: Began, changes: Changes, seed: int) -> None:
        self._verifier, self.knowledge, self._began, self._seed = verifier, knowledge, began.tree, seed
        self._name = began.name
        self.sorted = sorted_change(began.tree, changes, verifier.around(knowledge))

    @property
    def refused(self) -> tuple[tuple[str, str], ...]:
        """(path, why) of what may not be touched."""
        return self.sorted.refused

    @cached_property
    def outcomes(self) -> Mapping[str, str]:
        """Outcome of each test that ran; empty where the change is refused or touches nothing that counts."""
        if self.refused:
            return {}
        name = f".{secrets.token_hex(16)}.xml"
        order = {} if self.knowledge.undisturbed else {ORDER: str(self._seed % N_ORDERS)}
        ran = self._run(self.knowledge.tests, name, order)
        paths = {**self._began, **self._verifier.trees[self.knowledge.tests]}
        merged: dict[str, str] = {}
        for report in self._verifier.recipe.reports(ran.changes, name):
            for test, outcome in (outcomes(report, paths) or {}).items():
                merged[test] = max(merged.get(test, outcome), outcome, key=OUTCOMES.index)
        return merged

    @cached_property
    def answers(self) -> Mapping[str, bool]:
        """Question -> whether it was answered as the known solution answers it; empty where the known tests fail."""
        if not self.knowledge.answers or not self.passes_tests:
            return {}
        assert self.knowledge.questions is not None
        name = f".{secrets.token_hex(16)}"
        ran = self._run(self.knowledge.questions, f"{name}.xml", {ANSWERS: f"/repo/{name}"})
        given = digests(ran.changes.get(name))
        return {question: given.get(question) == answer for question, answer in self.knowledge.answers.items()}

    def share(self, tests: Iterable[str]) -> float:
        """Return the share of tests that passed."""
        every = list(tests)
        return sum(self.outcomes.get(test) == "passed" for test in every) / len(every) if every else 1.0

    @property
    def passes_tests(self) -> bool:
        """Whether all known tests pass."""
        every = (*self.knowledge.fail_to_pass, *self.knowledge.pass_to_pass)
        return bool(every) and self.share(every) == 1.0

    @property
    def compiles(self) -> bool:
        """Whether the suite could be loaded: some test that is to pass before and after did, or without such any ran."""
        every = self.knowledge.pass_to_pass or (*self.outcomes,)
        return any(self.outcomes.get(test) in ("passed", "failed") for test in every)

    @property
    def resolved(self) -> bool | None:
        """Whether the change solves the task; None: only forged reports would tell it from one that does."""
        if self.refused or not self.passes_tests or not all(self.answers.values()):
            return False
        return None if self.is_forgeable and self.signs else True

    @property
    def is_forgeable(self) -> bool:
        """Whether some test that is to be turned has no question: there the code under test can forge its report."""
        answered = {question.partition("[")[0].partition(VARIANT)[0] for question in self.knowledge.answers}
        return self.knowledge.forgeable or any(
            test.partition("[")[0] not in answered for test in self.knowledge.fail_to_pass)

    @property
    def n_lines(self) -> int:
        """Lines that the change takes out or puts in."""
        return n_lines(self._began, self.sorted.source)

    @property
    def signs(self) -> tuple[str, ...]:
        """Names by which source reaches for its judge, in lines that the change puts in."""
        present: set[str] = set()
        for path, file in self.sorted.source.items():
            put_in = Counter(_lines(file)) - Counter(_lines(self._began.get(path)))
            present.update(sign for line in put_in for sign in signs_in(path, line))
        return tuple(sorted(present.difference(self.knowledge.signs)))

    def _run(self, tests: str, name: str, env: Mapping[str, str]) -> CommandResult:
        """Run tests on the clean tree with what counts of the change."""
        trees = self._verifier.trees
        laid: dict[str, ChangedFile | None] = {path: None for path in self._began if is_test(path) and path not in trees[tests]}
        laid |= {path: file for path, file in self.sorted.source.items() if file is None or file.mode != FOLDER}
        laid |= trees[tests]
        recipe = self._verifier.recipe
        laid = {path: None if recipe.is_result(path) else file for path, file in laid.items()}
        n_tests = len(self.knowledge.fail_to_pass) + len(self.knowledge.pass_to_pass)
        limits = CommandLimits(seconds=_LEAST_S + _A_TEST_S * n_tests)
        run = recipe.run_apart if self.knowledge.undisturbed else recipe.run_tests
        return run(folders.folder(self._name, lambda: self._began), laid, f"/repo/{name}", env, limits)


class Verifier:
    """The grader's side of a workspace: known tests and answers of all its tasks."""

    def __init__(self, folder: Path, recipe: Recipe) -> None:
        """`folder`: `apps/<name>` of the rewards' folder. OSError where nothing is known there."""
        knowledge = {row["task_id"]: known_of(row) for row in rows_of(folder / VERIFY)}
        self._hold(recipe, unpacked((folder / TESTS).read_bytes()), knowledge)

    def _hold(self, recipe: Recipe, trees: dict[str, dict[str, ChangedFile]], knowledge: dict[str, KnownTask]) -> None:
        self.recipe, self.trees, self._knowledge = recipe, trees, knowledge
        self._around = surroundings(recipe)
        self._kept: dict[str, Verification] = {}

    def around(self, knowledge: KnownTask) -> Surroundings:
        """Return what lies around the tree of a task."""
        return self._around._replace(libraries={*self._around.libraries, *knowledge.libraries})

    def knowledge(self, task_id: str) -> KnownTask:
        """Return what the grader knows of a task."""
        return self._knowledge[task_id]

    @staticmethod
    @lru_cache(maxsize=16)
    def of(grader: Path, app: str, recipe: Recipe) -> Verifier:
        """Return the verifier of an app, one for all its episodes."""
        return Verifier(grader / "apps" / app, recipe)

    def verify(self, task_id: str, began: Began, changes: Changes, seed: int = 0) -> Verification:
        """Return what is known of a change. KeyError: nothing is known of the task."""
        key = sha256(repr((task_id, began.name, seed, sorted(changes.items()))).encode()).hexdigest()
        if key not in self._kept:
            while len(self._kept) >= _REMEMBERED:
                del self._kept[next(iter(self._kept))]
            self._kept[key] = Verification(self, self._knowledge[task_id], began, changes, seed)
        return self._kept[key]


def surroundings(recipe: Recipe) -> Surroundings:
    """Return what lies around a tree when its tests run."""
    libraries = _names_in(WITHIN) | (_names_in(recipe.site) if recipe.site is not None else set())
    roots = (each.removeprefix(f"{WORKSPACE}/").strip("/") for each in recipe.environment.get("PYTHONPATH", "").split(":")
             if each.startswith(f"{WORKSPACE}/"))
    return Surroundings(libraries, tuple(roots), recipe.runner)


def _names_in(folder: Path) -> set[str]:
    return {path.name.partition(".")[0] for path in folder.iterdir() if path.suffix in (".py", ".so")
            or (path / "__init__.py").is_file()}


def known_of(row: Mapping[str, Any]) -> KnownTask:
    """Return a row of verify.jsonl."""
    return KnownTask(row["task_id"], row["tests"], tuple(row["fail_to_pass"]), tuple(row["pass_to_pass"]), row["known_lines"],
                 row.get("questions"), row.get("answers") or {}, bool(row.get("forgeable")), tuple(row.get("libraries") or ()),
                 tuple(row.get("signs") or ()), bool(row.get("undisturbed")))


def digests(answers: ChangedFile | None) -> dict[str, str]:
    """Return question -> digest of its answers in order."""
    texts: dict[str, list[str]] = {}
    for line in answers.content.decode("ascii", "replace").splitlines() if answers is not None else ():
        try:
            row = json.loads(line)
        except ValueError:
            row = None
        if isinstance(row, list) and len(row) == 2 and isinstance(row[0], str):
            texts.setdefault(row[0], []).append(line)
        else:
            texts.setdefault("", []).append(line)
    return {question: sha256("\n".join(lines).encode()).hexdigest()[:32] for question, lines in texts.items()}


def n_lines(began: Tree, changes: Changes) -> int:
    """Return how many lines a change takes out or puts in."""
    count = 0
    for path, file in changes.items():
        before, after = Counter(_lines(began.get(path))), Counter(_lines(file))
        count += sum(((before - after) + (after - before)).values())
    return count


def _lines(file: ChangedFile | None) -> list[str]:
    text = file.content.decode("utf-8", "replace") if file is not None else ""
    return [line.strip() for line in text.splitlines() if line.strip()]
