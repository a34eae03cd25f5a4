"""Tasks of a repository as rows of SWE-bench, with SWE-rebench's recipe: a JSON line a task, a file a split.

In: a kit of an environment that has an app of the kind `shell`, with what the run knows of its tasks (`Kit.origins`). Out:
`<split>.jsonl`. `patch` and `test_patch` apply to the tree that the task begins with: `base_commit`, with `start_files` laid
over it (what was not committed when the session began; usually empty). The known solution is a change of texts: the modes of
files that it writes anew are ordinary.

Rejected, with a decision: tasks without known tests, those whose solution writes a file that is no text, and those whose commit
the run does not know.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any, NamedTuple

from env_builder.exports import kit as kits
from env_builder.exports.exporter import Exported, RoomExporter
from env_builder.exports.kit import Kit, Row
from env_builder.exports.patches import git_patch
from env_builder.runtime.files import rows_of
from env_builder.runtime.workspace.paths import is_test
from env_builder.runtime.workspace.sandbox import ChangedFile, Changes
from env_builder.runtime.workspace.trees import Tree, changed, unpacked
from env_builder.runtime.workspace.verifying import TESTS, VERIFY, known_of
from env_builder.shell.recipe import RepositoryRecipe
from warehouse.errors import InputError
from warehouse.records import Decision, frame

_REGULAR = 0o100644
_LOST = "\ufffd"
"""Stands for bytes that are no text."""
RUN = """\
    python -m swebench.harness.run_evaluation …        # as a dataset of SWE-bench: each row has base_commit and both patches

Lay `start_files` (JSON object: path -> text) over `base_commit` before either patch; it is empty where all was committed.
`install_config` has Python, packages with versions, and the command of the tests, as SWE-rebench has it.
"""


class _AppTrees(NamedTuple):
    """What an app of the kind `shell` and its grader hold."""

    starts: dict[str, dict[str, ChangedFile]]
    """Session -> the tree that it begins with."""
    grader: dict[str, dict[str, ChangedFile]]
    verify: dict[str, Row]


def _write(out: Path, kit: Kit) -> Exported:
    name = kit.workspace
    if name is None:
        raise InputError(f"{kit.name} has no repository", str(kit.room), "export an environment code-NAME of a repository")
    trees = _app_trees(kit, name)
    solutions = {row["task_id"]: row["steps"] for row in rows_of(kit.grader / "solutions.jsonl")}
    paths, decisions = [], []
    for split, tasks in kits.tasks_by_split(kit):
        rows = []
        for task in tasks:
            row = _row(task, kit, trees, solutions[task["task_id"]])
            if isinstance(row, Decision):
                decisions.append(row)
            else:
                rows.append(row)
        paths += kits.put_lines(out, f"{split}.jsonl", rows)
    return Exported(sorted([*paths, *kits.put_page(kit, out, "SWE-bench", RUN)]), frame(Decision, decisions))


def _app_trees(kit: Kit, name: str) -> _AppTrees:
    folder, grader = kit.room / "apps" / name, kit.grader / "apps" / name
    trees = unpacked((folder / "trees.pack").read_bytes())
    starts = {row["session_id"]: trees[row["tree"]] for row in rows_of(folder / "starts.jsonl")}
    if not (grader / TESTS).is_file():
        return _AppTrees(starts, {}, {})
    return _AppTrees(starts, unpacked((grader / TESTS).read_bytes()), {row["task_id"]: row for row in rows_of(grader / VERIFY)})


def _row(task: Row, kit: Kit, trees: _AppTrees, solution: list[Row]) -> Row | Decision:
    """Return the row of a task, or why it has none."""
    task_id = task["task_id"]
    if task_id not in trees.verify:
        return _rejected(task_id, "no_known_tests", "No known tests tell whether it is solved.")
    origin = kit.origins.get(task_id)
    if origin is None:
        return _rejected(task_id, "no_commit", "The run's warehouse does not say at which commit it begins; run again.")
    start = trees.starts[task["session_ids"][0]]
    fix = solved_by(start, solution)
    if fix is None:
        return _rejected(task_id, "solution_not_text", "Its solution writes a file that is no text.")
    verified, recipe = known_of(trees.verify[task_id]), RepositoryRecipe.from_json(origin["recipe"])
    tests = trees.grader[verified.tests]
    dirty = {path: text for path, text in json.loads(origin["dirty"]).items() if text is not None}
    return {
        "instance_id": f"{origin['repository']}__{task_id}", "repo": origin["repository"], "base_commit": origin["base_commit"],
        "patch": git_patch(start, fix), "test_patch": git_patch(start, _tests_changed(start, tests)),
        "problem_statement": task["goal"], "hints_text": "\n".join(_said_later(task)), "created_at": task["starts_at"] or "",
        "version": origin["recipe_id"][:12], "FAIL_TO_PASS": json.dumps(list(verified.fail_to_pass)),
        "PASS_TO_PASS": json.dumps(list(verified.pass_to_pass)), "environment_setup_commit": origin["base_commit"],
        "install_config": _install_config(recipe), "start_files": json.dumps(dirty, sort_keys=True, ensure_ascii=False)}


def _rejected(task_id: str, reason: str, detail: str) -> Decision:
    return Decision(stage="export", subject=task_id, kept=False, reason=reason, detail=detail)


def solved_by(start: Tree, steps: list[Row]) -> dict[str, ChangedFile | None] | None:
    """Return what the known steps change in a tree; None where a file that they write is no text."""
    fix: dict[str, ChangedFile | None] = {}
    for step in steps:
        arguments = step["arguments"]
        if step["tool"] == "write":
            path, text = arguments["path"], arguments["content"]
            before = start.get(path)
            if _LOST in text and (before is None or _LOST.encode() not in before.content):
                return None
            fix[path] = ChangedFile(text.encode(), before.mode if before is not None else _REGULAR)
        elif step["tool"] == "shell":
            words = shlex.split(arguments["command"])
            fix |= dict.fromkeys(words[words.index("--") + 1:])
    return fix


def _tests_changed(start: Tree, tests: Tree) -> Changes:
    """Return what the known tests change: each of them, and tests of the start that are gone."""
    gone = {path: None for path in start if is_test(path) and path not in tests}
    after = changed(start, {**gone, **tests})
    return {path: after.get(path) for path in (*gone, *tests)}


def _said_later(task: Row) -> list[str]:
    turns = (task.get("user") or {}).get("turns") or []
    return [turn if isinstance(turn, str) else str(turn.get("content") or turn.get("text") or "") for turn in turns]


def _install_config(recipe: RepositoryRecipe) -> Row:
    """Return how the tests are run, under SWE-rebench's names."""
    row: dict[str, Any] = recipe.workspace_row
    return {
        "python": row["python"], "packages": "requirements.txt",
        "pip_packages": [line.split(" ")[0] for line in recipe.requirements], "install": "",
        "pre_install": [shlex.join(recipe.setup)] if recipe.setup else [], "env_vars": dict(recipe.env),
        "test_cmd": shlex.join(recipe.command), "log_parser": "junit", "results": recipe.results,
        "files": dict(recipe.files)}


EXPORTER = RoomExporter("swebench", _write)
