"""Environments for Harbor (task schema 1.4): a directory for each task, whole by itself, and a dataset.toml over them.

In: a kit. Out, for each task:

    instruction.md, task.toml      what to do; limits, no network, the separate verifier, the journal as artifact
    environment/                   the agent's container: the room, which the room's own user alone may read; `/tools/tools.py`
    tests/                         the verifier's container: room and rubric; it gets the journal alone
    solution/                      the known solution, which Harbor copies for its oracle alone
    trajectory.json                where the agent has spoken before the task begins: the conversation so far (ATIF)

Files that are the same in all tasks are links to one file on disk, so that a thousand tasks take the room of one.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from env_builder.exports.exporter import Exported, RoomExporter
from env_builder.exports.harbor_pages import INSTRUCTION, RUN, SOLVE, TEST, dataset, dockerfiles, task_toml
from env_builder.exports.kit import ABOUT, ADAPTERS, PLAY, Kit, about, files_of
from env_builder.exports.pages import readme
from env_builder.layers import AGENT_SIDE
from env_builder.runtime.canonical import canonical, digest
from env_builder.runtime.files import rows_of
from warehouse.records import Verdict, empty

ORGANISATION = "traceroom"
HASHED = ("task.toml", "instruction.md", "README.md", "trajectory.json")
FOLDERS = ("environment", "tests", "solution")
Row = dict[str, Any]


class Shared:
    """Files that many tasks have alike: written once, linked afterwards."""

    def __init__(self) -> None:
        self._first: dict[bytes | Path, Path] = {}

    def put(self, path: Path, source: bytes | Path) -> None:
        """A file with these bytes, or with those of another file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        first = self._first.setdefault(source, path)
        if first is not path:
            with contextlib.suppress(OSError):  # a disk that knows no links, or no more of them
                os.link(first, path)
                return
        if isinstance(source, bytes):
            path.write_bytes(source)
        else:
            shutil.copyfile(source, path)


def _write(out: Path, kit: Kit) -> Exported:
    rubrics = {row["task_id"]: row for row in rows_of(kit.grader / "rubrics.jsonl")}
    solutions = {row["task_id"]: row["steps"] for row in rows_of(kit.grader / "solutions.jsonl")}
    shared, named = Shared(), {}
    for task in kit.tasks:
        name = f"{kit.name}-{task['task_id'][:16]}"
        _task(out / name, kit, task, rubrics[task["task_id"]], solutions[task["task_id"]], shared)
        named[f"{ORGANISATION}/{name}"] = task_digest(out / name)
    (out / "dataset.toml").write_text(dataset(kit, ORGANISATION, named), "utf-8", newline="\n")
    (out / "README.md").write_text(readme(kit, "Harbor", RUN), "utf-8", newline="\n")
    return Exported(sorted([out / "README.md", out / "dataset.toml", *(path for path in out.iterdir() if path.is_dir())]),
                    empty(Verdict))


def _task(folder: Path, kit: Kit, task: Row, rubric: Row, steps: list[Row], shared: Shared) -> None:
    """Write the directory of one task."""
    earlier, now = _parted(task)
    agents, verifiers = dockerfiles()
    texts = {
        "task.toml": task_toml(kit, ORGANISATION, folder.name, task),
        "instruction.md": INSTRUCTION.format(words="\n\n".join(now)),
        "environment/task/tasks.jsonl": canonical(task) + "\n", "tests/task/tasks.jsonl": canonical(task) + "\n",
        "tests/task/rubrics.jsonl": canonical(rubric) + "\n",
        "solution/steps.json": json.dumps(steps, ensure_ascii=False) + "\n"}
    if earlier:
        texts["trajectory.json"] = json.dumps(_trajectory(kit, task, earlier), ensure_ascii=False, indent=1) + "\n"
    for name, text in texts.items():
        shared.put(folder / name, text.encode())
    told = about(kit)
    alike: dict[str, bytes | Path] = {
        "environment/Dockerfile": agents.encode(), "environment/tools.py": AGENT_SIDE, "environment/harbor_room.py":
        ADAPTERS / "harbor_room.py", "tests/Dockerfile": verifiers.encode(), "tests/test.sh": TEST.encode(),
        "tests/harbor_grade.py": ADAPTERS / "harbor_grade.py", "solution/solve.sh": SOLVE.encode(),
        "solution/harbor_solve.py": ADAPTERS / "harbor_solve.py"}
    for side in ("environment", "tests"):
        alike |= {f"{side}/{PLAY}": ADAPTERS / PLAY, f"{side}/{ABOUT}": told}
        alike |= {f"{side}/room/{path.relative_to(kit.room).as_posix()}": path for path in _room(kit)}
    for name, source in alike.items():
        shared.put(folder / name, source)
    for name in ("tests/test.sh", "solution/solve.sh"):
        (folder / name).chmod(0o755)


def _room(kit: Kit) -> Iterable[Path]:
    """The room's files but its tasks (each directory has its own alone) and what builds another image."""
    return [path for path in files_of(kit.room) if path.name not in ("tasks.jsonl", "Dockerfile")]


def _parted(task: Row) -> tuple[list[Row], list[str]]:
    """The conversation before the instruction, where the agent has taken part in it; and what the instruction says."""
    opening = list(task["opening"])
    roles = [message["role"] for message in opening]
    begins = next((place for place, role in enumerate(roles) if role == "user"), len(roles))
    last = max((place for place, role in enumerate(roles) if role == "assistant"), default=-1)
    cut = last + 1 if last > begins else 0
    now = [message["content"] for message in opening[cut:]]
    return opening[:cut], now if any(role == "user" for role in roles[cut:]) else [*now, task["goal"]]


def _trajectory(kit: Kit, task: Row, messages: list[Row]) -> Row:
    """The conversation so far, as ATIF has it."""
    sources = {"assistant": "agent", "user": "user"}
    return {
        "schema_version": "ATIF-v1.8", "session_id": task["task_id"][:32], "agent": {"name": kit.name, "version": "1"},
        "steps": [{"step_id": place, "source": sources.get(message["role"], "system"), "message": message["content"]}
                  for place, message in enumerate(messages, 1)]}


def task_digest(folder: Path) -> str:
    """Harbor's digest of a task: sha256 over the sorted `path\\0sha256\\n` of its files."""
    files = [folder / name for name in HASHED if (folder / name).is_file()]
    files += [path for name in FOLDERS for path in files_of(folder / name)]
    named = sorted((path.relative_to(folder).as_posix(), digest(path.read_bytes())) for path in files)
    return "sha256:" + digest("".join(f"{name}\0{found}\n" for name, found in named))


EXPORTER = RoomExporter("harbor", _write)
