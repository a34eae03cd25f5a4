"""Trees of a repository, and the parts of a task of code: start, known tests, fix.

What a task's row in `mart.code_tasks` names is made here again from the repository: the same row gives the same trees.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple

from env_builder.runtime.workspace.paths import is_test, kind_of_file
from env_builder.runtime.workspace.sandbox import ChangedFile
from env_builder.runtime.workspace.trees import Tree, changed
from env_builder.shell.merging import merged
from env_builder.shell.tasks import Candidate
from extractors.workspaces.repository import Commit, Repository, TreeFile

_REGULAR, _SUBMODULE = 0o100644, 0o160000


class TaskStart(NamedTuple):
    """Where a task begins, and which change solves it."""

    commit_id: str
    dirty: Mapping[str, str | None]
    """Files that are not as the commit has them; None: not known."""
    winner: str


class CodeTrees:
    """Trees of one repository, each content once."""

    def __init__(self, repository: Repository) -> None:
        self.repository = repository
        self._contents: dict[str, bytes] = {}

    def tree(self, commit: Commit) -> dict[str, ChangedFile]:
        """Return the files of a commit, without submodules and what the repository lacks."""
        files = ((path, self._file(after)) for path, (_, after) in self.repository.changes(None, commit.tree_id).items())
        return {path: file for path, file in files if file is not None}

    def start(self, at: TaskStart) -> dict[str, ChangedFile]:
        """Return the files of a task's start."""
        tree = self.tree(self.repository.commits[at.commit_id])
        laid = {path: ChangedFile(text.encode(), tree[path].mode if path in tree else _REGULAR)
                for path, text in at.dirty.items() if text is not None}
        return changed(tree, laid)

    def candidate(self, at: TaskStart) -> Candidate | None:
        """Return the parts of a task; None where the winner's source cannot be applied to its start."""
        start, winner = self.start(at), self.repository.commits[at.winner]
        solved = self.tree(winner)
        parts = self.parts(winner)
        fix = merged(parts["source"], start)
        if fix is None:
            return None
        tests = {path: solved.get(path) for path in sorted(start.keys() | solved.keys())
                 if is_test(path) and start.get(path) != solved.get(path)}
        rest = {**parts["configuration"], **parts["texts"]}
        return Candidate(start, tests, {path: file for path, file in fix.items() if start.get(path) != file},
                         merged(rest, start) or {})

    def undone(self, at: TaskStart) -> Candidate:
        """Return the parts of a task that puts files back as their commit has them: those that its start has otherwise."""
        tree, start = self.tree(self.repository.commits[at.commit_id]), self.start(at)
        back = {path: tree.get(path) for path in sorted(at.dirty) if start.get(path) != tree.get(path)}
        tests = {path: file for path, file in back.items() if is_test(path)}
        return Candidate(start, tests, {path: file for path, file in back.items() if path not in tests}, {})

    def parts(self, winner: Commit) -> dict[str, dict[str, tuple[ChangedFile | None, ChangedFile | None]]]:
        """Return what a commit changed, by kind of file: path -> the file before and after."""
        parent = self.repository.commits.get(winner.parents[0]) if winner.parents else None
        parts: dict[str, dict[str, Any]] = {"source": {}, "tests": {}, "configuration": {}, "texts": {}}
        for path, files in self.repository.changes(parent.tree_id if parent else None, winner.tree_id).items():
            parts[kind_of_file(path)][path] = tuple(self._file(file) for file in files)
        return parts

    def parent_start(self, at: TaskStart, edited: Collection[str]) -> TaskStart | None:
        """Return the winner's parent as the start, if the files that a session edited are the same there as at its own."""
        winner = self.repository.commits[at.winner]
        parent = self.repository.commits.get(winner.parents[0]) if winner.parents else None
        if parent is None:
            return None
        own = self.start(at)
        there = self.tree(parent)
        paths = {path for path in own.keys() | there.keys() for each in edited if each == path or each.endswith(f"/{path}")}
        return TaskStart(parent.commit_id, {}, at.winner) if all(own.get(path) == there.get(path) for path in paths) else None

    def _file(self, file: TreeFile | None) -> ChangedFile | None:
        if file is None or file.mode == _SUBMODULE:
            return None
        if file.blob_id not in self._contents:
            content = self.repository.content(file.blob_id)
            if content is None:
                return None
            self._contents[file.blob_id] = content
        return ChangedFile(self._contents[file.blob_id], file.mode)


def test_names(tree: Tree) -> str:
    """Return the text of all test files of a tree, to look names up in."""
    return "\n".join(file.content.decode("utf-8", "replace") for path, file in sorted(tree.items()) if is_test(path))


test_names.__test__ = False  # type: ignore[attr-defined]
