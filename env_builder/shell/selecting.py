"""Make an environment of some tasks of a repository's environment.

In: the two folders that a run publishes, and the ids of tasks. Out: two folders with these tasks, their trees, known tests and
solutions alone: nothing of another task's is in them. Each task stands for itself, so that nothing else changes.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

from env_builder import bundle
from env_builder.backends import AppSource, assemble
from env_builder.runtime.canonical import canonical
from env_builder.runtime.files import rows_of
from env_builder.runtime.workspace.host import FILE as HOST
from env_builder.runtime.workspace.host import visible
from env_builder.runtime.workspace.recipes import PACK, RECIPE
from env_builder.runtime.workspace.trees import packed, unpacked
from env_builder.runtime.workspace.verifying import TESTS, VERIFY
from env_builder.shell import WorkspaceContent, WorkspaceStart


def select(environment: Path, rewards: Path, task_ids: Collection[str], to: tuple[Path, Path]) -> bundle.Digests:
    """Write the environment and the rewards of these tasks into two folders."""
    manifest = json.loads((environment / "manifest.json").read_text("utf-8"))
    tasks = [row for row in rows_of(environment / "tasks.jsonl") if row["task_id"] in task_ids]
    sessions = {session for row in tasks for session in row["session_ids"]}
    rubrics, solutions = ([row for row in rows_of(rewards / name) if row["task_id"] in task_ids]
                          for name in ("rubrics.jsonl", "solutions.jsonl"))
    sources, grader_files = [], {}
    for app in manifest["apps"]:
        folder, grader = environment / app["path"], rewards / app["path"]
        starts = [WorkspaceStart(**row) for row in rows_of(folder / "starts.jsonl") if row["session_id"] in sessions]
        names = {name for start in starts for name in (start.tree, start.committed)}
        trees = {name: tree for name, tree in unpacked((folder / "trees.pack").read_bytes()).items() if name in names}
        site = unpacked((folder / PACK).read_bytes())["site"] if (folder / PACK).is_file() else {}
        host = visible(rows_of(folder / HOST) if (folder / HOST).is_file() else (), [start.instant for start in starts])
        content = WorkspaceContent(json.loads((folder / RECIPE).read_text("utf-8")), trees, starts, site, host)
        options = {name: value for name, value in app.items() if name not in ("name", "kind", "path", "requires")}
        sources.append(AppSource(app["name"], app["kind"], content, options))
        verify = [row for row in rows_of(grader / VERIFY) if row["task_id"] in task_ids]
        kept = {row[part] for row in verify for part in ("tests", "questions")}
        pack = {name: tree for name, tree in unpacked((grader / TESTS).read_bytes()).items() if name in kept}
        grader_files[f"{app['path']}/{TESTS}"] = packed(pack)
        grader_files[f"{app['path']}/{VERIFY}"] = "".join(canonical(row) + "\n" for row in verify).encode()
    return assemble(manifest["name"], sources, tasks, rubrics, *to, solutions, rows_of(environment / "perturbations.jsonl"),
                    grader_files, manifest["privacy"])
