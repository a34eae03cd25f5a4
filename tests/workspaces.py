"""A repository of two modules with a task in it, for tests of workspaces: what an agent is given, and what the grader knows."""

from __future__ import annotations

import importlib.metadata
import json
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from env_builder import backends
from env_builder.backends import AppSource
from env_builder.runtime.grading import grade
from env_builder.runtime.records import Episode, Grade
from env_builder.runtime.workspace.junit import outcomes
from env_builder.runtime.workspace.paths import is_test, sorted_change
from env_builder.runtime.workspace.recipes import Recipe
from env_builder.runtime.workspace.sandbox import ChangedFile, Sandbox, SandboxUnavailable, best_way
from env_builder.runtime.workspace.trees import Began, Tree, changed, folders, packed
from env_builder.runtime.workspace.verifying import ANSWERS, Verification, Verifier, n_lines
from env_builder.shell import WorkspaceContent, WorkspaceStart
from env_builder.shell.questions import BlindQuestions, answers_in
from env_builder.shell.questions import KnownTests as QuestionedTests
from tests.apps import START, task
from tests.conftest import lacking

TASK = "t" * 64
PACKAGES = ("pytest", "pluggy", "iniconfig", "packaging", "pygments")
LEXERS = {f"pygments/lexers/{name}.py" for name in ("__init__", "_mapping", "diff", "python")}
UNITS = '''\
from __future__ import annotations

FACTORS = {"m": 1}


def length(text: str) -> int:
    """Return metres."""
    number, _, unit = text.partition(" ")
    return int(number) * FACTORS[unit]
'''
FIXED = '''\
from __future__ import annotations

FACTORS = {"m": 1, "km": 1000}


def length(text: str) -> int:
    """Return metres."""
    number, _, unit = text.partition(" ")
    if unit not in FACTORS:
        raise ValueError(f"no unit: {unit}")
    return int(number) * FACTORS[unit]
'''
WORDS = '''\
def plural(word: str) -> str:
    return word + ("es" if word.endswith("s") else "s")
'''
TEST_UNITS = '''\
import pytest

from measures.units import length


def test_metres():
    assert length("2 m") == 2


@pytest.mark.parametrize(("text", "expected"), [("5 km", 5000), ("12 km", 12000)])
def test_kilometres(text, expected):
    assert length(text) == expected


def test_another_unit_is_refused():
    with pytest.raises(ValueError):
        length("3 parsecs")
'''
TEST_WORDS = '''\
from measures.words import plural


def test_words_have_plurals():
    assert plural("lamp") == "lamps" and plural("glass") == "glasses"
'''


def file(text: str | bytes, mode: int = 0o100644) -> ChangedFile:
    """Return a file with this content."""
    return ChangedFile(text if isinstance(text, bytes) else text.encode(), mode)


def tree(**texts: str) -> dict[str, ChangedFile]:
    """Return the repository with some files else: `units`, `words`, `test_units`, `test_words`."""
    return {"measures/__init__.py": file(""), "measures/units.py": file(texts.get("units", UNITS)),
            "measures/words.py": file(texts.get("words", WORDS)), "README.md": file("Lengths and words.\n"),
            "tests/test_words.py": file(texts.get("test_words", TEST_WORDS)),
            "tests/test_units.py": file(texts.get("test_units", TEST_UNITS))}


def isolated() -> str:
    """Return the way commands are isolated here; skips the test where they cannot be, or fails it if nothing may be lacking."""
    try:
        return best_way()
    except SandboxUnavailable as error:
        lacking(str(error))


def site() -> dict[str, ChangedFile]:
    """Return the packages that pytest needs, as they are installed for these tests."""
    files = {}
    for package in PACKAGES:
        installed = importlib.metadata.distribution(package)
        for path in installed.files or ():
            name = path.as_posix()
            if (path.suffix == ".py" and not name.startswith("pygments/lexers/")) or name in LEXERS:
                files[name] = file(Path(str(installed.locate_file(path))).read_bytes())
    return files


def recipe(way: str, **changed_fields: Any) -> dict[str, Any]:
    """Return a row of recipe.json with pytest."""
    version = "{}.{}".format(*sys.version_info)
    test = ["python3", "-m", "pytest", "-q", "-c", "/traceroom/pytest.ini", "--rootdir=/repo", "-p", "traceroom_pytest", "-p",
            "no:cacheprovider", "--continue-on-collection-errors", "--junitxml={junit}"]
    return {"python": version, "test": test, "env": {"PYTHONPATH": "/repo"}, "way": way, **changed_fields}


def rubric() -> dict[str, Any]:
    """Return the rubric of a task of code: gates, partial pay and penalties of training."""
    def check(part: str, role: str, weight: float = 1.0, **more: Any) -> dict[str, Any]:
        return {"check_id": f"{role} {part}", "kind": "verified", "role": role, "weight": weight, "description": part,
                "parameters": {"part": part}, "provenance": {}, **more}

    gates = [check(part, "gate") for part in ("paths", "fail_to_pass", "pass_to_pass", "answers", "signs")]
    return {"format": "traceroom-rubric/1", "rubric_id": "r", "task_id": TASK, "partial": 0.5, "checks": [
        *gates, check("compiles", "shaping", 0.1), check("known_tests", "shaping", 0.9),
        check("paths", "penalty", 1.0, modes=["train"]), check("size", "penalty", 0.1, modes=["train"])]}


class Project(NamedTuple):
    """A task in a repository, and what the grader knows of it."""

    folder: Path
    began: Tree
    known: dict[str, Any]
    """The row of verify.jsonl."""
    recipe: Recipe

    def verification(self, changes: Mapping[str, ChangedFile | None], seed: int = 0) -> Verification:
        """Return what the verifier makes of a change."""
        began = Began(str(self.folder), self.began, self.began)
        return Verifier.of(self.folder / "rewards", "repository", self.recipe).verify(TASK, began, changes, seed)

    def grade(self, changes: Mapping[str, ChangedFile | None], mode: str = "eval", seed: int = 0) -> Grade:
        """Return the grade of a change."""
        verification = self.verification(changes, seed)
        episode = Episode((), {"documents": {}, "write_calls": []}, (), frozenset(), lambda name: (None, None), (),
                          lambda drawn: verification)
        return grade(rubric(), episode, mode)

    def reward(self, changes: Mapping[str, ChangedFile | None], mode: str = "eval") -> float | None:
        """Return the reward of a change."""
        return self.grade(changes, mode).reward


def solution(text: str = FIXED) -> dict[str, ChangedFile | None]:
    """Return the known solution, or another text of the module that it changes."""
    return {"measures/units.py": file(text)}


def project(folder: Path, began: Tree, fix: Mapping[str, ChangedFile | None], way: str, **recipe_fields: Any) -> Project:
    """Write a task: its known tests are those of `began`, and what they say before and after is found by running them."""
    own, rewards = folder / "environment", folder / "rewards"
    for each in (own, rewards / "apps" / "repository"):
        each.mkdir(parents=True)
    (own / "recipe.json").write_text(json.dumps(recipe(way, **recipe_fields)))
    (own / "site.pack").write_bytes(packed({"site": site()}))
    made = Recipe(own)
    with cached_packages(folder):
        assert made.site is not None
    tests = {path: each for path, each in began.items() if is_test(path)}
    source = {path: each for path, each in began.items() if not is_test(path)}
    after_source = changed(source, sorted_change(began, fix).source)
    before, after = (ran(made, {**source_then, **tests}) for source_then in (source, after_source))
    passing = {test for test, outcome in after.items() if outcome == "passed"}
    turned = sorted(test for test in passing if before.get(test) != "passed")
    others = sorted(passing - set(turned))
    questions = BlindQuestions.of(QuestionedTests(tests, turned, others), {"measures"}, source, after_source,
                             lambda files, other: answers_in(reported(made, {**other, **files})))
    known = {"task_id": TASK, "tests": "tests", "fail_to_pass": turned, "pass_to_pass": others,
             "known_lines": n_lines(began, fix), "questions": "questions", "answers": questions.answers,
             "forgeable": questions.forgeable,
             "libraries": ["pytest"]}
    (rewards / "apps" / "repository" / "known.pack").write_bytes(packed({"tests": tests, "questions": questions.files}))
    (rewards / "apps" / "repository" / "verify.jsonl").write_text(json.dumps(known) + "\n")
    return Project(folder, began, known, made)


@contextmanager
def cached_packages(folder: Path) -> Iterator[None]:
    """Lay packages out in a folder that all tests of this run share, and none is made in the folder of whoever runs them."""
    shared = next((each for each in folder.parents if each.name.startswith("pytest-") and each.name[7:].isdigit()), folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(shared / "packages"))
        yield


def ran(made: Recipe, whole: Tree) -> dict[str, str]:
    """Return what the tests of a tree say."""
    report = _run(made, whole, "/repo/.out", {})
    return (outcomes(report.content, whole) if report is not None else None) or {}


def reported(made: Recipe, whole: Tree) -> ChangedFile | None:
    """Return what the questions of a tree report."""
    return _run(made, whole, "/repo/.xml", {ANSWERS: "/repo/.out"})


def _run(made: Recipe, whole: Tree, junit: str, env: Mapping[str, str]) -> ChangedFile | None:
    folder = folders.folder("empty", dict)
    return made.sandbox.run(folder, whole, made.command(junit), {**made.environment, **env}).changes.get(".out")


def content(way: str, began: Tree, with_site: bool = False, **recipe_fields: Any) -> WorkspaceContent:
    """Return what a workspace is made of."""
    starts = [WorkspaceStart("s1", "start", "start", START)]
    return WorkspaceContent(recipe(way, **recipe_fields), {"start": began}, starts, site() if with_site else {})


def environment(folder: Path, made: WorkspaceContent) -> Path:
    """Write an environment with one workspace, and return its directory."""
    where = folder / "environments" / "code"
    apps = [AppSource("repository", "shell", made)]
    backends.assemble("code", apps, [task()], [rubric()], where, folder / "rewards" / "code")
    return where


def needs_namespaces() -> None:
    """Skip the test where commands cannot be isolated in namespaces, or fail it if nothing may be lacking."""
    if isolated() != "namespaces":
        lacking("this machine has no namespaces")


def sandbox(as_root: bool = False) -> Sandbox:
    """Return a sandbox of the way that this machine has."""
    needs_namespaces()
    return Sandbox("namespaces", as_root=as_root)
