"""Tasks of commits that no session was about, and of bugs put back: what a repository gives besides its sessions.

In: a repository with its recipe, the tasks of its sessions, the events of its code host. Out: rows of `mart.code_tasks`, and a
decision for each candidate that was tried or ruled out.

- `commit`: a commit of the main line (its first parents) that changed source and tests. It begins at its parent.
- `hunk`: the latest commit of the main line, with one hunk of source that such a commit put in turned back, and the tests with
  it as far as they can be. What solves it is the latest commit's own source.

The latest come first, up to a limit (`[[repositories]] derived_commits`, `derived_hunks`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import PurePosixPath
from typing import NamedTuple

from env_builder.runtime.workspace.sandbox import ChangedFile
from env_builder.runtime.workspace.trees import Tree
from env_builder.shell.hunks import SourceHunk, hunks
from env_builder.shell.merging import merged, merged_text
from env_builder.shell.recipe import RepositoryRecipe
from env_builder.shell.tasks import Candidate, Separated, compared, separation
from env_builder.shell.trials import Trials
from extractors.workspaces.changes import HostEvent, MainLine
from extractors.workspaces.commit_goals import CommitText, HostTexts, KnownFix, names_to_use, request_in, speaks_of, test_words
from extractors.workspaces.goal_texts import goal_text
from extractors.workspaces.repository import Commit
from pipelines.building.code_trees import CodeTrees, TaskStart, test_names
from warehouse.records import CodeTask, Decision

_BeforeAfter = tuple[ChangedFile | None, ChangedFile | None]
MOST_FILES = 15
"""Files of source and tests that a commit may change, to be one task."""
MOST_COMMITS = 200
"""Commits that change source and tests among which candidates are looked for, the latest."""
HUNKS_OF_COMMIT = 2
"""Hunks that are tried of one commit, the largest first."""
_TESTS_NAMED = 3
_CHANGE, _ISSUE = "Please make this change:", "Please resolve this issue:"
_BROKEN = "Something that worked is broken."
_MADE, _REPORTED = "When it was made, it was described like this:", "It was reported like this before:"

_IS_TASK = "same_as_task", "It is all that its commit changes, and that commit is a task."
_NOT_THERE = "hunk_not_on_latest", "It cannot be turned back in the latest tree, in which it is not as it was."
_SAME = "same_hunk", "Another hunk makes the same tree."


class DerivedLimits(NamedTuple):
    """How many candidates have their tests run."""

    commits: int
    hunks: int


class DerivedRows(NamedTuple):
    """What came of the candidates."""

    tasks: list[CodeTask]
    decisions: list[Decision]


class _Attempt(NamedTuple):
    """A candidate before its tests are run."""

    task_id: str
    subject: str
    """Of its decision."""
    start: TaskStart
    candidate: Candidate
    text: CommitText
    derived_from: str


class DerivedTasks:
    """Makes tasks of one repository's commits."""

    def __init__(self, trees: CodeTrees, events: Sequence[HostEvent], recipe: RepositoryRecipe, trials: Trials) -> None:
        self._trees, self._recipe, self._trials = trees, recipe, trials
        self._name = trees.repository.name
        self._line = MainLine(trees.repository, events)
        self._texts = HostTexts(self._line, self._line.events)
        self._rows = DerivedRows([], [])

    def rows(self, winners: set[str], limits: DerivedLimits) -> DerivedRows:
        """Return the tasks of commits other than the winners of sessions' tasks, and of hunks of all of them."""
        self._rows = DerivedRows([], [])
        self._try_all("commit", self._commits(winners), limits.commits)
        self._try_all("hunk", self._hunks(winners | {task.winner for task in self._rows.tasks}), limits.hunks)
        return self._rows

    def _try_all(self, kind: str, attempts: Iterator[_Attempt], limit: int) -> None:
        """Run the tests of the first attempts."""
        for n, attempt in enumerate(attempts):
            if n == limit:
                self._reject(f"{self._name} {kind}", "over_limit", f"Those before {attempt.subject} are not tried; to try more "
                             f"than {limit}, set derived_{kind}s under [[repositories]].")
                return
            self._try(attempt)
        if len(self._changes) == MOST_COMMITS:
            self._reject(f"{self._name} {kind}", "over_limit", f"Only the latest {MOST_COMMITS} commits that change source and "
                         "tests are looked at.")

    def _try(self, attempt: _Attempt) -> None:
        result = self._glimpsed(attempt.candidate) or separation(attempt.candidate, self._recipe, self._trials)
        if not result.is_task:
            self._reject(attempt.subject, result.reason, result.detail)
            return
        if attempt.derived_from == "hunk" and len(result.fail_to_pass) > len(result.pass_to_pass):
            self._reject(attempt.subject, "breaks_most", "Without the hunk most tests fail: the code does not run without it. "
                         + result.detail)
            return
        goal = self._goal(attempt, result)
        if not goal:
            self._reject(attempt.subject, "no_request", "Its description, without what gives the fix away, says nothing of it.")
            return
        start, candidate = attempt.start, attempt.candidate
        self._rows.decisions.append(Decision(
            stage="code_tasks", subject=attempt.subject, kept=True, reason=result.reason, detail=result.detail))
        self._rows.tasks.append(CodeTask(
            task_id=attempt.task_id, session_id=None, repository=self._name, recipe_id=self._recipe.digest,
            start_commit=start.commit_id, base_commit=start.commit_id,
            base="latest" if attempt.derived_from == "hunk" else "parent", dirty=json.dumps(dict(start.dirty), sort_keys=True),
            winner=start.winner, goal=goal, script=[], fail_to_pass=list(result.fail_to_pass),
            pass_to_pass=list(result.pass_to_pass), flaky=list(result.flaky), test_files=sorted(candidate.tests),
            fix_files=sorted(candidate.fix), derived_from=attempt.derived_from))

    def _glimpsed(self, candidate: Candidate) -> Separated | None:
        """Return why a candidate is none, where one run of each side shows it; there are many, and most tell nothing."""
        before, after = self._trials.of_all([candidate.before, candidate.after], self._recipe)
        if before[0].timed_out or after[0].timed_out:
            return Separated("too_slow", f"Its tests do not end in time {'after' if after[0].timed_out else 'before'} the fix.")
        if after[0].passed and not compared(before, after)[0]:
            return Separated("no_tests_separate", "In the first run, no known test fails before the fix and passes after it.")
        return None

    def _reject(self, subject: str, reason: str, detail: str) -> None:
        self._rows.decisions.append(Decision(stage="code_tasks", subject=subject, kept=False, reason=reason, detail=detail))

    @cached_property
    def _changes(self) -> list[Commit]:
        """The commits of the main line that changed source and tests of what was there, the latest first."""
        commits, changes = self._trees.repository.commits, list[Commit]()
        commit = commits.get(self._trees.repository.main or "")
        while commit is not None and len(changes) < MOST_COMMITS:
            parent = commits.get(commit.parents[0]) if commit.parents else None
            diff = self._line.diff(commit)
            if parent is not None and diff.of_kind("source") and diff.of_kind("tests"):
                changes.append(commit)
            commit = parent
        return changes

    def _why_none(self, commit: Commit) -> tuple[str, str] | None:
        """Return why a commit cannot be a task whatever its tests tell, as reason and sentence."""
        reverted_by = self._line.reverted_by(commit)
        if reverted_by is not None:
            return "reverted", f"{reverted_by.commit_id[:12]} took it back."
        if self._line.is_revert(commit):
            return "is_revert", "It takes an earlier commit back."
        diff = self._line.diff(commit)
        n_files = len(diff.of_kind("source")) + len(diff.of_kind("tests"))
        if n_files > MOST_FILES:
            return "too_many_files", f"It changes {n_files} files of source and tests, more than {MOST_FILES}."
        return None

    def _commits(self, winners: set[str]) -> Iterator[_Attempt]:
        """Yield other commits, each at its parent."""
        for commit in self._changes:
            if commit.commit_id in winners:
                continue
            why = self._why_none(commit)
            if why is not None:
                self._reject(commit.commit_id, *why)
                continue
            start = TaskStart(commit.parents[0], {}, commit.commit_id)
            candidate = self._trees.candidate(start)
            if candidate is None:   # a file that the repository lacks
                self._reject(commit.commit_id, "fix_not_on_start", "Its source cannot be applied to its parent.")
                continue
            text = self._texts.of(commit)
            if not request_in(text.text, _fix(candidate)):
                self._reject(commit.commit_id, "no_request", f"Its {text.kind.replace('_', ' ')}, without what gives the fix "
                             "away, does not say what to do.")
                continue
            task_id = f"code-commit-{self._name}-{commit.commit_id[:12]}"
            yield _Attempt(task_id, commit.commit_id, start, candidate, text, "commit")

    def _hunks(self, winners: set[str]) -> Iterator[_Attempt]:
        """Yield the latest tree with a hunk turned back. `winners`: commits that are tasks."""
        repository = self._trees.repository
        if repository.main is None:
            return
        latest = repository.commits[repository.main]
        tree, tried = self._trees.tree(latest), set[str]()
        for commit in self._changes:
            if self._why_none(commit) is not None:   # its decision is that of the commit
                continue
            parts = self._trees.parts(commit)
            own = _hunks_of(parts["source"])
            is_task = len(own) == len(parts["source"]) == 1 and commit.commit_id in winners
            for path, hunk in own[:HUNKS_OF_COMMIT]:
                subject = f"{commit.commit_id} {path}:{hunk.line}"
                turned = None if is_task else _turned_back(path, hunk, parts, tree)
                dirty = json.dumps(turned, sort_keys=True)
                if turned is None or dirty in tried:
                    self._reject(subject, *(_IS_TASK if is_task else _NOT_THERE if turned is None else _SAME))
                    continue
                tried.add(dirty)
                start = TaskStart(latest.commit_id, turned, commit.commit_id)
                digest = hashlib.sha256(f"{path}\0".encode() + hunk.without).hexdigest()[:8]
                yield _Attempt(f"code-hunk-{self._name}-{commit.commit_id[:12]}-{digest}", subject, start,
                               self._trees.undone(start), self._texts.of(commit), "hunk")

    def _goal(self, attempt: _Attempt, result: Separated) -> str:
        """Return what to do; empty where nothing says it."""
        visible = test_names(attempt.candidate.start)
        names = {test.rpartition("::")[2].partition("[")[0] for test in result.fail_to_pass}
        fix, winner = _fix(attempt.candidate), self._trees.repository.commits[attempt.start.winner]
        text = request_in(attempt.text.text, fix)
        if attempt.derived_from == "hunk":   # nor what the rest of its commit gives away
            whole = self._trees.candidate(TaskStart(winner.parents[0], {}, winner.commit_id))
            text = request_in(text, _fix(whole)) if whole is not None else text
        text = goal_text(
            text,
            lambda short: self._trees.repository.resolve(short) is not None, attempt.text.numbers,
            {name for name in names if len(name) > 4 and name not in visible})
        is_issue = attempt.text.kind == "issue"
        if not is_issue and not speaks_of(text, (*fix.lines, *fix.paths, *result.fail_to_pass)):
            text = ""
        if attempt.derived_from == "commit":
            parts = [_ISSUE if is_issue else _CHANGE, text, names_to_use(fix, text)]
            return "\n\n".join(filter(None, parts)) if text else ""
        words = sorted({each for test in result.fail_to_pass if len((each := test_words(test)).split()) > 1})
        if not text and not words:
            return ""
        parts = [f"{_BROKEN} {_REPORTED if is_issue else _MADE}", text] if text else [_BROKEN]
        if words:
            more = f"; and {len(words) - _TESTS_NAMED} more" if len(words) > _TESTS_NAMED else ""
            parts.append(f"It shows in: {'; '.join(words[:_TESTS_NAMED])}{more}.")
        return "\n\n".join(filter(None, [*parts, names_to_use(fix, text)]))


def _fix(candidate: Candidate) -> KnownFix:
    """Return what a candidate's fix puts in."""
    lines = [line for path, file in candidate.fix.items() if file is not None
             for line in _lines(file) - _lines(candidate.start.get(path))]
    return KnownFix(tuple(candidate.fix), lines, _text(candidate.start.values()), _text(candidate.tests.values()))


def _text(files: Iterable[ChangedFile | None]) -> str:
    return "\n".join(file.content.decode("utf-8", "replace") for file in files if file is not None)


def _lines(file: ChangedFile | None) -> set[str]:
    return set() if file is None else {line.strip() for line in file.content.decode("utf-8", "replace").splitlines()}


def _hunks_of(source: Mapping[str, _BeforeAfter]) -> list[tuple[str, SourceHunk]]:
    """Return the hunks of files that a commit changed, the largest first."""
    of_files = [(path, hunk) for path, (before, after) in sorted(source.items())
                if before is not None and after is not None for hunk in hunks(before.content, after.content)]
    return sorted(of_files, key=lambda each: -each[1].n_lines)


def _turned_back(
    path: str, hunk: SourceHunk, parts: Mapping[str, Mapping[str, _BeforeAfter]], tree: Tree,
) -> dict[str, str] | None:
    """Return the texts of a later tree without a hunk and its commit's tests; None where it is not there as it was."""
    after, own = parts["source"][path][1], tree.get(path)
    if after is None or own is None:
        return None
    content = merged_text(after.content, hunk.without, own.content)
    if content is None or content == own.content:
        return None
    texts = {path: content}
    for test, (first, then) in parts["tests"].items():
        if then is not None and _is_named_test(test):
            back = merged({test: (then, first or then._replace(content=b""))}, tree)
            file = back[test] if back is not None else None
            texts |= {test: file.content} if file is not None else {}
    try:
        return {name: text.decode() for name, text in texts.items()}
    except UnicodeDecodeError:
        return None


def _is_named_test(path: str) -> bool:
    """Whether a file is called a test: other files of tests may be needed by all."""
    stem = PurePosixPath(path).stem.lower()
    return stem.startswith("test_") or stem.endswith(("_test", ".test", ".spec"))
