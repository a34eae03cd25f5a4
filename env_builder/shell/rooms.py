"""Make an environment of a repository's tasks: trees, recipe, known tests, questions, rubrics.

In: a recipe with its site, and for each task where it begins, the known tests, the fix and which tests tell. Out: an
environment of one app of the kind `shell` with its rewards. A task stays only if the verifier pays the known fix and does not
pay an unchanged tree; what sessions had left is verified as well (`Verdict`).

Sees: what tests and questions tell. Does not see: whether a goal's words suffice to solve it.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from env_builder import bundle
from env_builder.backends import AppSource, assemble
from env_builder.runtime.canonical import canonical
from env_builder.runtime.workspace.host import visible
from env_builder.runtime.workspace.paths import is_test, sorted_change
from env_builder.runtime.workspace.recipes import Recipe
from env_builder.runtime.workspace.sandbox import Changes, CommandLimits
from env_builder.runtime.workspace.trees import Began, Tree, changed, folders, packed
from env_builder.runtime.workspace.verifying import (
    ANSWERS,
    N_ORDERS,
    TESTS,
    VERIFY,
    KnownTask,
    Verifier,
    known_of,
    n_lines,
    surroundings,
)
from env_builder.shell import WorkspaceContent, WorkspaceStart
from env_builder.shell.questions import BlindQuestions, KnownTests, answers_in
from env_builder.shell.recipe import RepositoryRecipe, site_tree
from env_builder.shell.tasks import Candidate
from env_builder.shell.trials import digest_of

APP = "code"
"""Name of the app."""
_STEPS, _SECONDS = 60, 3600.0
_QUESTION_LIMITS = CommandLimits(seconds=300.0)
Row = dict[str, Any]


class RepositoryTask(NamedTuple):
    """A task before it is verified."""

    task_id: str
    session_id: str
    """Under which it begins: of a derived task its own id."""
    instant: str | None
    goal: str
    script: Sequence[str]
    split: str
    winner: str
    candidate: Candidate
    fail_to_pass: tuple[str, ...]
    pass_to_pass: tuple[str, ...]
    sessions: Mapping[str, Changes]
    """What sessions about it had left: session -> what differs from the start."""
    derived_from: str | None = None
    """commit, hunk; None: a session was about it."""


class Verdict(NamedTuple):
    """What the verifier says of what a session had left."""

    task_id: str
    session_id: str
    resolved: bool | None
    detail: str


class VerifiedTask(NamedTuple):
    """A task with what the grader knows of it, and whether it holds."""

    task: RepositoryTask
    row: Row
    """Its row of verify.jsonl."""
    tests: Tree
    questions: BlindQuestions
    reason: str
    """verified; known_solution_not_paid, unchanged_paid: it is no task."""
    detail: str
    verdicts: tuple[Verdict, ...] = ()

    @property
    def holds(self) -> bool:
        return self.reason == "verified"


class CodeRoom:
    """The environment of one repository."""

    def __init__(
        self, name: str, recipe: RepositoryRecipe, site: Path | None, draft: Path, host: Sequence[Row] = (),
    ) -> None:
        """`site`: the recipe's folder of packages, where it has one; `draft`: a folder for what is written meanwhile; `host`:
        pull requests and issues over time, as rows of host.jsonl."""
        self.name, self._recipe, self._draft = name, recipe, draft
        self._host = host
        self._site = site_tree(site) if site is not None else {}

    @cached_property
    def recipe(self) -> Recipe:
        """The recipe as an environment has it."""
        folder = self._draft / "recipe"
        folder.mkdir(parents=True, exist_ok=True)
        bundle.write_json(folder / "recipe.json", self._row)
        if self._site:
            (folder / "site.pack").write_bytes(packed({"site": self._site}))
        return Recipe(folder)

    @property
    def libraries(self) -> tuple[str, ...]:
        """Names of modules that the site has."""
        return tuple(sorted({path.partition("/")[0].removesuffix(".py") for path in self._site} - {"bin"}))

    @property
    def _row(self) -> Row:
        row = self._recipe.workspace_row
        test = list(row["test"])
        if "pytest" in test:
            test[test.index("pytest") + 1:test.index("pytest") + 1] = ["-p", "traceroom_pytest"]
        return {**row, "test": test}

    def verified(self, tasks: Sequence[RepositoryTask]) -> list[VerifiedTask]:
        """Make questions of each task's known tests, and verify it."""
        assert self.recipe.site is not None or not self._site   # laid out once, before several ask for it
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            return list(pool.map(self._verified, tasks))

    def write(
        self, tasks: Sequence[VerifiedTask], environment: Path, rewards: Path, perturbations: Sequence[Row] = (),
        privacy: str = "off",
    ) -> bundle.Digests:
        """Write the environment of the tasks that hold. `perturbations`: how long tools took in production, and how often they
        failed by themselves; `privacy`: as the manifest states it."""
        holding = sorted((each for each in tasks if each.holds), key=lambda each: each.task.task_id)
        trees = {each.task.task_id: self._start(each.task) for each in holding}
        starts = [WorkspaceStart(each.task.session_id, each.task.task_id, each.task.task_id, each.task.instant)
                  for each in holding]
        tests = {name: tree for each in holding for name, tree in self._known_trees(each).items()}
        lines = "".join(canonical(each.row) + "\n" for each in holding)
        return assemble(
            self.name, [AppSource(APP, "shell", WorkspaceContent(
                self._row, trees, starts, self._site, visible(self._host, [start.instant for start in starts])))],
            [_task_row(each.task) for each in holding], [_rubric(each) for each in holding], environment, rewards,
            [{"task_id": each.task.task_id, "steps": _solution(each.task)} for each in holding], perturbations,
            {f"apps/{APP}/{TESTS}": packed(tests), f"apps/{APP}/{VERIFY}": lines.encode()}, privacy)

    def _start(self, task: RepositoryTask) -> dict[str, Any]:
        return changed(task.candidate.start, self._recipe.changes)

    def _verified(self, task: RepositoryTask) -> VerifiedTask:
        candidate = task.candidate
        began = Began(f"{self.name} {digest_of(self._start(task))}", self._start(task), self._start(task))
        fix = sorted_change(began.tree, candidate.fix, surroundings(self.recipe))
        tests = {path: file for path, file in candidate.before.items() if is_test(path) or path in candidate.tests}
        questions = self._questions(task, tests)
        row = {
            "task_id": task.task_id, "tests": f"{task.task_id} tests", "fail_to_pass": list(task.fail_to_pass),
            "pass_to_pass": list(task.pass_to_pass), "known_lines": n_lines(began.tree, fix.source),
            "questions": f"{task.task_id} questions" if questions.answers else None, "answers": questions.answers,
            "forgeable": questions.forgeable, "libraries": list(self.libraries)}
        verified = VerifiedTask(task, row, tests, questions, "verified", "")
        verifier = _MemoryVerifier(self.recipe, self._known_trees(verified), known_of(row))
        row["undisturbed"] = not all(
            verifier.verify(task.task_id, began, candidate.fix, seed).passes_tests for seed in range(N_ORDERS))
        if row["undisturbed"]:
            verifier = _MemoryVerifier(self.recipe, self._known_trees(verified), known_of(row))
        row["signs"] = list(verifier.verify(task.task_id, began, candidate.fix).signs)
        reason, detail = self._holds(task, began, verifier)
        verdicts = [self._verdict(task, session_id, remains, began, verifier) for session_id, remains in sorted(
            task.sessions.items())] if reason == "verified" else []
        return verified._replace(reason=reason, detail=detail, verdicts=tuple(verdicts))

    @staticmethod
    def _holds(task: RepositoryTask, began: Began, verifier: Verifier) -> tuple[str, str]:
        solved = verifier.verify(task.task_id, began, task.candidate.fix)
        if solved.refused:
            path, why = solved.refused[0]
            return "known_solution_not_paid", f"The known solution may not change {path}: {why}."
        if solved.resolved is not True:
            tests = [test for test in (*task.fail_to_pass, *task.pass_to_pass) if solved.outcomes.get(test) != "passed"]
            return "known_solution_not_paid", f"With the known solution {len(tests)} known tests fail here: {tests[:2]}."
        if verifier.verify(task.task_id, began, {}).resolved is not False:
            return "unchanged_paid", "The tests pass without any change."
        kind = ", resting on its tests alone" if verifier.knowledge(task.task_id).forgeable else ""
        return "verified", f"The known solution is paid, an unchanged tree is not{kind}."

    def _verdict(
        self, task: RepositoryTask, session_id: str, remains: Changes, began: Began, verifier: Verifier,
    ) -> Verdict:
        """Verify what a session had left: its source alone, as people change tests too."""
        source = {path: file for path, file in sorted_change(began.tree, remains, surroundings(self.recipe)).source.items()
                  if not is_test(path)}
        verification = verifier.verify(task.task_id, began, source)
        n_failing = sum(verification.outcomes.get(test) != "passed" for test in (*task.fail_to_pass, *task.pass_to_pass))
        detail = f"{n_failing} known tests fail" if n_failing else f"{sum(verification.answers.values())} answers agree"
        return Verdict(task.task_id, session_id, verification.resolved, detail)

    def _questions(self, task: RepositoryTask, tests: Tree) -> BlindQuestions:
        """Make questions of the known tests."""
        start = self._start(task)
        before = {path: file for path, file in start.items() if not is_test(path) and path not in tests}
        after = {path: file for path, file in changed(before, task.candidate.fix).items() if not is_test(path)}

        def run(files: Tree, tree: Tree) -> Mapping[str, list[str]]:
            laid = folders.folder(digest_of(tree), lambda: tree)
            env = {**self.recipe.environment, ANSWERS: "/repo/.answers"}
            ran = self.recipe.run(laid, files, self.recipe.command("/repo/.results.xml"), env, _QUESTION_LIMITS)
            return answers_in(ran.changes.get(".answers"))

        return BlindQuestions.of(KnownTests(tests, task.fail_to_pass, task.pass_to_pass), _sources(start), before, after, run)

    @staticmethod
    def _known_trees(verified: VerifiedTask) -> dict[str, Tree]:
        task_id = verified.task.task_id
        trees: dict[str, Tree] = {f"{task_id} tests": verified.tests}
        if verified.questions.answers:
            trees[f"{task_id} questions"] = verified.questions.files
        return trees


class _MemoryVerifier(Verifier):
    """A verifier of one task that is not written yet."""

    def __init__(self, recipe: Recipe, trees: Mapping[str, Tree], knowledge: KnownTask) -> None:
        self._hold(recipe, {name: dict(tree) for name, tree in trees.items()}, {knowledge.task_id: knowledge})


def _sources(tree: Tree) -> set[str]:
    """Return names of modules of the source."""
    names = set()
    for path in tree:
        parts = path.split("/")
        inner = parts[1:] if parts[0] in ("src", "lib", "python") and len(parts) > 1 else parts
        if path.endswith(".py") and not is_test(path):
            names.add(inner[0].removesuffix(".py"))
    return names


def _task_row(task: RepositoryTask) -> Row:
    return {
        "task_id": task.task_id, "session_ids": [task.session_id], "split": task.split, "family": "fix", "goal": task.goal,
        "starts_at": task.instant, "opening": [{"role": "user", "content": task.goal}],
        "user": {"turns": list(task.script)}, "slots": {}, "segment_of": None,
        "derived_from": task.derived_from, "limits": {"steps": _STEPS, "seconds": _SECONDS}}


def _rubric(verified: VerifiedTask) -> Row:
    """Return the rubric: the gates, and for training what an unresolved change is worth and a large one costs."""
    def check(name: str, part: str, role: str, description: str, weight: float = 1.0, **more: Any) -> Row:
        return {"check_id": name, "kind": "verified", "role": role, "weight": weight, "description": description,
                "parameters": {"part": part}, **more}

    sessions = sorted(verdict.session_id for verdict in verified.verdicts if verdict.resolved)
    return {
        "format": "traceroom-rubric/1", "rubric_id": f"{verified.task.task_id}-tests", "task_id": verified.task.task_id,
        "partial": 0.5, "checks": [
            check("paths", "paths", "gate", "Tests, their configuration and what loads itself are as they were."),
            check("fail_to_pass", "fail_to_pass", "gate", "The tests that told of the fault pass.",
                  provenance={"supporting": sessions}),
            check("pass_to_pass", "pass_to_pass", "gate", "The tests that passed before still pass."),
            check("answers", "answers", "gate", "It computes what the known solution computes, also on other inputs."),
            check("signs", "signs", "gate", "Where only tests tell, it does not reach for its judge."),
            check("compiles", "compiles", "shaping", "The tests can be loaded.", 0.1),
            check("known_tests", "known_tests", "shaping", "So many of the known tests pass.", 0.9),
            check("size", "size", "penalty", "It is not much larger than the known solution.", 0.1, modes=["train"]),
            check("refused", "paths", "penalty", "Nothing was touched that may not be.", 1.0, modes=["train"]),
        ]}


def _solution(task: RepositoryTask) -> list[Row]:
    """Return the known solution as calls of the workspace's tools."""
    steps: list[Row] = []
    gone = [path for path, file in sorted(task.candidate.fix.items()) if file is None]
    for path, file in sorted(task.candidate.fix.items()):
        if file is not None:
            content = file.content.decode("utf-8", "replace")
            steps.append({"tool": "write", "arguments": {"path": path, "content": content}})
    if gone:
        steps.append({"tool": "shell", "arguments": {"command": shlex.join(("rm", "--", *gone))}})
    return steps


def winners_split(winners: Iterable[str]) -> dict[str, str]:
    """Return the split of each winner: all tasks of one change are on one side, eight of ten in train."""
    sides = ("train",) * 8 + ("validation", "held_out")
    return {winner: sides[int(winner[:8], 16) % len(sides)] for winner in winners}
