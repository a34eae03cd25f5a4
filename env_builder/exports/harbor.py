"""Environments for Harbor (task schema 1.4): a directory for each task, whole by itself, and a dataset.toml over them.

In: a kit. Out, for each task:

    instruction.md, task.toml      what to do; limits, no network, the separate verifier, the journal as artifact
    environment/                   the agent's container: the room, which the room's own user alone may read; `/tools/tools.py`
    tests/                         the verifier's container: room and rubric; it gets the journal alone
    solution/                      the known solution, which Harbor copies for its oracle alone
    trajectory.json                where the agent has spoken before the task begins: the conversation so far (ATIF)

Files that are the same in all tasks are links to one file on disk.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from env_builder.exports import harbor_code
from env_builder.exports.exporter import Exported, RoomExporter
from env_builder.exports.harbor_code import CodeTasks
from env_builder.exports.kit import ABOUT, ADAPTERS, PLAY, Kit, about, files_of, readme
from env_builder.image import DEFAULT_BASE
from env_builder.layers import AGENT_SIDE, AGENT_USER, ROOM_USER, files_digest
from env_builder.runtime.canonical import canonical, digest
from env_builder.runtime.files import rows_of
from warehouse.errors import InputError
from warehouse.records import Decision, empty

ORGANISATION = "traceroom"
HASHED = ("task.toml", "instruction.md", "README.md", "trajectory.json")
FOLDERS = ("environment", "tests", "solution")
Row = dict[str, Any]


class Shared:
    """Files that many tasks have alike: written once, linked afterwards."""

    def __init__(self) -> None:
        self._first: dict[bytes | Path, Path] = {}

    def put(self, path: Path, source: bytes | Path) -> None:
        """Return a file with these bytes, or with those of another file."""
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
        path.chmod(0o644)


def _write(out: Path, kit: Kit) -> Exported:
    code = CodeTasks(kit, kit.workspace) if kit.workspace else None
    if code is not None and code.refusal is not None:
        raise InputError(f"tasks of {kit.name} cannot be graded in Harbor's containers: {code.refusal}", str(kit.room),
                         "export it as swebench, or for verifiers, skyrl or another trainer that runs them in sandboxes")
    rubrics = {row["task_id"]: row for row in rows_of(kit.grader / "rubrics.jsonl")}
    solutions = {row["task_id"]: row["steps"] for row in rows_of(kit.grader / "solutions.jsonl")}
    shared, named = Shared(), {}
    for task in kit.tasks:
        name = f"{kit.name}-{task['task_id'][:16]}"
        graded = rubrics[task["task_id"]], solutions[task["task_id"]]
        if code is not None:
            _code_task(out / name, kit, code, task, *graded, shared)
        else:
            _task(out / name, kit, task, *graded, shared)
        named[f"{ORGANISATION}/{name}"] = task_digest(out / name)
    (out / "dataset.toml").write_text(dataset(kit, named), "utf-8", newline="\n")
    (out / "README.md").write_text(readme(kit, "Harbor", RUN), "utf-8", newline="\n")
    return Exported(sorted([out / "README.md", out / "dataset.toml", *(path for path in out.iterdir() if path.is_dir())]),
                    empty(Decision))


def _task(folder: Path, kit: Kit, task: Row, rubric: Row, steps: list[Row], shared: Shared) -> None:
    """Write the directory of one task."""
    opening = list(task["opening"])  # where the agent has taken part in it, it goes before the instruction
    roles = [message["role"] for message in opening]
    begins = next((place for place, role in enumerate(roles) if role == "user"), len(roles))
    last = max((place for place, role in enumerate(roles) if role == "assistant"), default=-1)
    cut = last + 1 if last > begins else 0
    now = [*(message["content"] for message in opening[cut:]), *([] if "user" in roles[cut:] else [task["goal"]])]
    names = {"base": DEFAULT_BASE, "home": HOME, "room": ROOM_USER, "agent": AGENT_USER, "socket": SOCKET}
    texts = {
        "task.toml": task_toml(kit, folder.name, task),
        "instruction.md": INSTRUCTION.format(words="\n\n".join(now)),
        "environment/task/tasks.jsonl": canonical(task) + "\n", "tests/task/tasks.jsonl": canonical(task) + "\n",
        "tests/task/rubrics.jsonl": canonical(rubric) + "\n",
        "solution/steps.json": json.dumps(steps, ensure_ascii=False) + "\n"}
    if cut:
        sources = {"assistant": "agent", "user": "user"}
        texts["trajectory.json"] = json.dumps({
            "schema_version": "ATIF-v1.8", "session_id": task["task_id"][:32], "agent": {"name": kit.name, "version": "1"},
            "steps": [{"step_id": place, "source": sources.get(message["role"], "system"), "message": message["content"]}
                      for place, message in enumerate(opening[:cut], 1)]}, ensure_ascii=False, indent=1) + "\n"
    for name, text in texts.items():
        shared.put(folder / name, text.encode())
    alike: dict[str, bytes | Path] = {
        "environment/Dockerfile": AGENT.format(**names).encode(), "environment/tools.py": AGENT_SIDE,
        "environment/harbor_room.py": ADAPTERS / "harbor_room.py", "tests/Dockerfile": VERIFIER.format(**names).encode(),
        "tests/test.sh": TEST.encode(), "tests/harbor_grade.py": ADAPTERS / "harbor_grade.py",
        "solution/solve.sh": SOLVE.encode(), "solution/harbor_solve.py": ADAPTERS / "harbor_solve.py"}
    for split in ("environment", "tests"):
        alike |= {f"{split}/{PLAY}": ADAPTERS / PLAY, f"{split}/{ABOUT}": about(kit)}
        alike |= {f"{split}/room/{path.relative_to(kit.room).as_posix()}": path for path in files_of(kit.room)
                  if path.name not in ("tasks.jsonl", "Dockerfile")}  # each task has its own alone; this image is another
    _finish(folder, alike, shared)


def _code_task(
    folder: Path, kit: Kit, code: CodeTasks, task: Row, rubric: Row, steps: list[Row], shared: Shared,
) -> None:
    """Write the directory of a task in a repository."""
    words = "\n\n".join(message["content"] for message in task["opening"])
    files = {"task.toml": code_toml(kit, folder.name, task).encode(), "instruction.md": code.instruction(words).encode(),
             **code.files(task, rubric, steps)}
    _finish(folder, files, shared)


def _finish(folder: Path, files: Mapping[str, bytes | Path], shared: Shared) -> None:
    """Write the files of a task, with the rights that containers need."""
    for name, source in files.items():
        shared.put(folder / name, source)
    for name in ("tests/test.sh", "solution/solve.sh"):
        (folder / name).chmod(0o755)
    for path in (folder, *folder.rglob("*")):  # containers play it as other users than the one who exports
        if path.is_dir():
            path.chmod(0o755)


def task_digest(folder: Path) -> str:
    """Harbor's digest of a task: sha256 over the sorted `path\\0sha256\\n` of its files."""
    files = [folder / name for name in HASHED if (folder / name).is_file()]
    files += [path for name in FOLDERS for path in files_of(folder / name)]
    return "sha256:" + files_digest({path.relative_to(folder).as_posix(): digest(path.read_bytes()) for path in files})


EXPORTER = RoomExporter("harbor", _write)


SCHEMA, DATASET_SCHEMA = "1.4", "1.0"
HOME, SOCKET, JOURNAL = "/opt/traceroom", "/run/room/tools.sock", "/journal/journal.json"
SECONDS_PER_STEP = 30
INSTRUCTION = """\
{words}

---

Your tools are those of the service, not of this machine:

- `python3 /tools/tools.py list` names them, `python3 /tools/tools.py call NAME '{{"argument": "value"}}'` calls one
- `python3 /tools/tools.py say "TEXT"` says something to the person who asked, and prints the answer
- any MCP client has the same tools over stdio: `python3 /tools/tools.py mcp`

What counts is what you change by these tools and what you tell the person; files here count for nothing.
"""
RUN = """\
    harbor lint */
    harbor run -p . -a oracle        # 1 in every task
    harbor run -p . -a nop           # 0 in every task

Agent and verifier have containers of their own, without a network. Their base is pinned by digest; where no registry is
reached, build with another: `--build-arg BASE=NAME` (any image with `python3` 3.11 or newer and a shell).
"""
AGENT = """\
ARG BASE={base}
FROM ${{BASE}}
RUN mkdir -p {home} /journal /run/room /work /tools \\
 && chown {room}:{room} {home} /journal /run/room && chmod 700 {home} /journal && chmod 755 /run/room \\
 && chown {agent}:{agent} /work \\
 && find / -xdev -type f -perm -4000 -exec chmod u-s {{}} +
COPY tools.py /tools/tools.py
COPY --chown={room}:{room} room {home}/room
COPY --chown={room}:{room} kit.json play.py harbor_room.py {home}/
COPY --chown={room}:{room} task/tasks.jsonl {home}/room/tasks.jsonl
ENV TOOLS_SOCKET={socket}
WORKDIR /work
"""
VERIFIER = """\
ARG BASE={base}
FROM ${{BASE}}
COPY room {home}/room
COPY kit.json play.py harbor_grade.py {home}/
COPY task/tasks.jsonl {home}/room/tasks.jsonl
COPY task/rubrics.jsonl {home}/grader/rubrics.jsonl
COPY test.sh /tests/test.sh
"""
TEST = f"""\
#!/bin/sh
exec python3 -I -S -B {HOME}/harbor_grade.py {JOURNAL} /logs/verifier
"""
SOLVE = """\
#!/bin/sh
exec python3 -I -S -B /solution/harbor_solve.py
"""


def task_toml(kit: Kit, name: str, task: Mapping[str, Any]) -> str:
    """Return the task's configuration."""
    return "\n".join([
        *_about(kit, name, task, JOURNAL, "journal.json", ["tools", "conversation"]),
        "", "[verifier.environment]", 'network_mode = "no-network"', "cpus = 1", "memory_mb = 1024",
        "", "[environment]", 'network_mode = "no-network"', "cpus = 1", "memory_mb = 1024", 'workdir = "/work"',
        "", "[environment.env]", f"TOOLS_SOCKET = {_value(SOCKET)}",
        "", "[environment.healthcheck]", f"command = {_value(f'python3 -I -S -B {HOME}/harbor_room.py start')}",
        "interval_sec = 1.0", "timeout_sec = 150.0", "start_period_sec = 0.0", "retries = 3",
        "", "[[environment.mcp_servers]]", 'name = "room"', 'transport = "stdio"', 'command = "python3"',
        'args = ["/tools/tools.py", "mcp"]', ""])


def code_toml(kit: Kit, name: str, task: Mapping[str, Any]) -> str:
    """Return the configuration of a task in a repository."""
    return "\n".join([
        *_about(kit, name, task, harbor_code.CHANGES, "changes.json", ["code", "repository"]), *harbor_code.toml_lines(),
        "", "[verifier.environment]", 'network_mode = "no-network"', "cpus = 1", "memory_mb = 2048",
        "", "[environment]", 'network_mode = "no-network"', "cpus = 1", "memory_mb = 2048", 'workdir = "/repo"', ""])


def _about(
    kit: Kit, name: str, task: Mapping[str, Any], artifact: str, destination: str, keywords: list[str],
) -> list[str]:
    """Return what every task says: its artifact, its origin, its agent and its verifier."""
    seconds = float(min(task["limits"]["seconds"], SECONDS_PER_STEP * task["limits"]["steps"]))
    ours = {"digest": kit.digest, "environment": kit.name, "task_id": task["task_id"], "family": task["family"],
            "split": task["split"], "content_digest": kit.figures["content_digest"],
            "rewards_digest": kit.figures["rewards_digest"]}
    return [
        f"schema_version = {_value(SCHEMA)}",
        "", "[[artifacts]]", f"source = {_value(artifact)}", f"destination = {_value(destination)}",
        "", "[task]", f"name = {_value(f'{ORGANISATION}/{name}')}", f"description = {_value(str(task['goal'])[:500])}",
        f"keywords = {json.dumps(keywords)}",
        "", "[metadata.traceroom]", *(f"{key} = {_value(value)}" for key, value in ours.items()),
        "", "[agent]", f"timeout_sec = {seconds}", f"user = {AGENT_USER}",
        "", "[verifier]", "timeout_sec = 600.0", 'environment_mode = "separate"']


def dataset(kit: Kit, tasks: Mapping[str, str]) -> str:
    """Return the dataset's manifest; `tasks`: digest by name."""
    about = f"The service {kit.name}, as it was found in logs: {len(tasks)} tasks."
    lines = [
        f"schema_version = {_value(DATASET_SCHEMA)}", "", "[dataset]", f"name = {_value(f'{ORGANISATION}/{kit.name}')}",
        'version = "0.1.0"', f"description = {_value(about)}", 'keywords = ["tools", "conversation"]',
        "", "[metadata.traceroom]", f"digest = {_value(kit.digest)}"]
    for name, of_task in sorted(tasks.items()):
        lines += ["", "[[tasks]]", f"name = {_value(name)}", f"digest = {_value(of_task)}"]
    return "\n".join([*lines, ""])


def _value(value: Any) -> str:
    """Return a text or number as TOML writes it: JSON's text, with DEL escaped too."""
    return json.dumps(value, ensure_ascii=True).replace("\x7f", "\\u007f")
