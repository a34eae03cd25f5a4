"""A task in a repository for Harbor: the agent works in the tree with its own shell, a verifier apart takes what it changed.

In: a kit with an app of the kind `shell`. Out: the files of a task's directory, and what task.toml says of it.

    environment/     the tree in /repo, which belongs to the agent, and its packages in /site; no history, no room, no tools
    tests/           the verifier's container: room, rubric, known tests and answers, for root alone; tests run as another user
    solution/        the known solution, written as an agent would

When the agent is done, its processes are ended, root writes the changed files of /repo into one file (`[[verifier.collect]]`),
and that alone reaches the verifier. Not all kits can be exported so (`refusal`): code that runs as its judge's user could
write the reward.

Does not see: what a person said later (the script), pull requests and issues: Harbor's agent has files alone.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from env_builder.exports.kit import ABOUT, ADAPTERS, PLAY, Kit, about, files_of
from env_builder.image import DEFAULT_BASE
from env_builder.layers import AGENT_USER
from env_builder.runtime.canonical import canonical
from env_builder.runtime.files import rows_of
from env_builder.runtime.workspace.recipes import PACK, Recipe
from env_builder.runtime.workspace.sandbox import WITHIN, Sandbox
from env_builder.runtime.workspace.trees import packed, unpacked

HOME, CHANGES = "/opt/traceroom", "/changes/changes.json"
PYTHON = "3.11"
"""Of the base image."""
Files = dict[str, bytes | Path]
Row = dict[str, Any]


class CodeTasks:
    """The tasks of a repository, as Harbor takes them."""

    def __init__(self, kit: Kit, app: str) -> None:
        """`app`: name of the app in which commands run."""
        self._kit = kit
        self._folder = kit.room / "apps" / app
        self._recipe = Recipe(self._folder)
        self._starts = {row["session_id"]: row["tree"] for row in rows_of(self._folder / "starts.jsonl")}

    @property
    def refusal(self) -> str | None:
        """Why these tasks cannot be graded apart from the code under test, or not in the base image; None: they can."""
        if self._recipe.as_root:
            return "its tests run as root, who could write the reward"
        if not any("pytest" in word for word in self._recipe.test):
            return "its tests run by programs that the base image does not have"
        if self._recipe.python != PYTHON:
            return f"its tests need Python {self._recipe.python}, and the base image has {PYTHON}"
        return None

    @cached_property
    def _trees(self) -> dict[str, Any]:
        return unpacked((self._folder / "trees.pack").read_bytes())

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables of the agent's container."""
        site = Path("/site") if (self._folder / PACK).is_file() else None
        own = Sandbox("docker", site).environment(self._recipe.environment)
        return {name: value for name, value in sorted(own.items()) if name not in ("HOME", "PYTHONHASHSEED")}

    def instruction(self, words: str) -> str:
        """Return the agent's instruction."""
        return INSTRUCTION.format(words=words, command=shlex.join(self._recipe.command()))

    def files(self, task: Row, rubric: Row, steps: list[Row]) -> Files:
        """Return the files of a task's directory, but for task.toml and the instruction."""
        tree = self._trees[self._starts[task["session_ids"][0]]]
        own: Mapping[str, str] = {
            "tests/task/tasks.jsonl": canonical(task) + "\n", "tests/task/rubrics.jsonl": canonical(rubric) + "\n",
            "solution/steps.json": json.dumps(steps, ensure_ascii=False) + "\n",
            "environment/Dockerfile": AGENT.format(
                base=DEFAULT_BASE, home=HOME, agent=AGENT_USER, site=self._lay_site,
                env=" ".join(f"{name}={json.dumps(value)}" for name, value in self.environment.items())),
            "tests/Dockerfile": VERIFIER.format(base=DEFAULT_BASE, home=HOME, site=self._lay_site),
            "tests/test.sh": TEST, "solution/solve.sh": SOLVE}
        made: Files = {name: text.encode() for name, text in own.items()}
        made |= {"environment/start.pack": packed({"start": tree}),
                 "solution/harbor_write.py": ADAPTERS / "harbor_write.py", f"tests/{PLAY}": ADAPTERS / PLAY,
                 "tests/harbor_verify.py": ADAPTERS / "harbor_verify.py",
                 "tests/harbor_grade.py": ADAPTERS / "harbor_grade.py", f"tests/{ABOUT}": about(self._kit)}
        for side in ("environment", "tests"):
            made[f"{side}/harbor_repository.py"] = ADAPTERS / "harbor_repository.py"
            made |= {f"{side}/within/{path.name}": path for path in sorted(WITHIN.iterdir()) if path.is_file()}
        site = self._folder / PACK
        if site.is_file():
            made |= {"environment/site.pack": site, "tests/site.pack": site}
        for side, folder in (("room", self._kit.room), ("grader", self._kit.grader)):
            made |= {f"tests/{side}/{path.relative_to(folder).as_posix()}": path for path in files_of(folder)
                     if path.name not in ("tasks.jsonl", "rubrics.jsonl", "solutions.jsonl", "Dockerfile")}
        return made

    @property
    def _lay_site(self) -> str:
        if not (self._folder / PACK).is_file():
            return ""
        return (f"COPY site.pack {HOME}/site.pack\n"
                f"RUN python3 -I -S -B {HOME}/harbor_repository.py lay {HOME}/site.pack site /site 0 \\\n"
                " && python3 -I -m compileall -q --invalidation-mode unchecked-hash /site\n")


def toml_lines() -> list[str]:
    """Return the tables of task.toml by which the changes are taken."""
    return ["", "[[verifier.collect]]", f'command = "python3 -I -S -B {HOME}/harbor_repository.py collect"', 'user = "root"',
            "timeout_sec = 300.0"]


INSTRUCTION = """\
{words}

---

The repository is in `/repo`, with its packages installed. Its tests run by

    cd /repo && {command}

What counts are the files in `/repo` when you are done: those of the source. Tests that were there, and what configures
them, must stay as they are.
"""
AGENT = """\
ARG BASE={base}
FROM ${{BASE}}
RUN mkdir -p {home} /changes && chmod 700 {home} && chmod 755 /changes \\
 && find / -xdev -type f -perm -4000 -exec chmod u-s {{}} + \\
 && find / -xdev -type f -perm -2000 -exec chmod g-s {{}} +
COPY harbor_repository.py {home}/harbor_repository.py
COPY within /traceroom
{site}COPY start.pack {home}/start.pack
RUN python3 -I -S -B {home}/harbor_repository.py lay {home}/start.pack start /repo {agent}
ENV {env}
WORKDIR /repo
"""
VERIFIER = """\
ARG BASE={base}
FROM ${{BASE}}
RUN mkdir -p {home}/scratch /repo && chmod 700 {home} \\
 && find / -xdev -type f -perm -4000 -exec chmod u-s {{}} + \\
 && find / -xdev -type f -perm -2000 -exec chmod g-s {{}} +
COPY harbor_repository.py {home}/harbor_repository.py
COPY within /traceroom
{site}COPY room {home}/room
COPY grader {home}/grader
COPY kit.json play.py harbor_grade.py harbor_verify.py {home}/
COPY task/tasks.jsonl {home}/room/tasks.jsonl
COPY task/rubrics.jsonl {home}/grader/rubrics.jsonl
COPY test.sh /tests/test.sh
"""
TEST = f"""\
#!/bin/sh
exec python3 -I -S -B {HOME}/harbor_verify.py {CHANGES} /logs/verifier
"""
SOLVE = """\
#!/bin/sh
exec python3 -I -S -B /solution/harbor_write.py
"""
