"""What an online exporter takes: a built environment with its grader, and what every exported package holds.

In: the two directories that a run publishes, or those that `pipelines/building/cut.py` made of some splits alone. Out: a `Kit`;
`lay` copies it (`room/` and `grader/` verbatim, `kit.json`, adapter modules), and the README, pyproject.toml and rows of
prompts around it are written here too.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from env_builder.runtime.canonical import canonical, digest
from env_builder.runtime.files import rows_of
from warehouse.errors import EnvironmentBroken
from warehouse.records import SPLITS

ADAPTERS = Path(__file__).parent / "adapters"
PLAY = "play.py"
ABOUT = "kit.json"
Row = dict[str, Any]


class Kit(NamedTuple):
    """A built environment, as online exporters take it."""

    name: str
    """Of the environment."""
    room: Path
    """The room's side, as `environments/NAME` is laid out, with its runtime."""
    grader: Path
    """The grader's side, as `rewards/NAME`."""
    digest: str
    """Content digest of what is exported: the same in every consumer's export of the same selection."""
    tasks: list[Row]
    """Rows of tasks.jsonl, by task_id, each with its `split`."""
    tools: list[Row]
    """MCP descriptors."""
    figures: Row
    """What the published environment says of its fidelity and audit."""
    origins: Mapping[str, Row] = MappingProxyType({})
    """Of tasks of a repository: repository, base_commit, dirty (JSON), recipe_id, recipe (JSON), by task_id."""

    @property
    def workspace(self) -> str | None:
        """Name of the app in which commands run (kind `shell`), None where there is none."""
        apps = json.loads((self.room / "manifest.json").read_text("utf-8")).get("apps") or []
        return next((app["name"] for app in apps if app["kind"] == "shell"), None)


def kit_of(room: Path, grader: Path) -> Kit:
    """Return the kit of two directories as they stand; EnvironmentBroken where they are none, or not of each other."""
    try:
        manifest = json.loads((room / "manifest.json").read_text("utf-8"))
        rewards = json.loads((grader / "rewards.json").read_text("utf-8"))
        tasks, tools = list(rows_of(room / "tasks.jsonl")), list(rows_of(room / "tools.jsonl"))
        audit = grader / "audit.json"
        audited = json.loads(audit.read_text("utf-8")) if audit.is_file() else {}
    except (OSError, ValueError) as error:
        raise EnvironmentBroken(str(error), str(room), "build it again with traceroom run") from error
    content, graded = manifest["content_digest"], rewards["rewards_digest"]
    if rewards.get("content_digest", content) != content:
        raise EnvironmentBroken("its rewards are of another room", str(grader), "build it again with traceroom run")
    figures = {
        "content_digest": content, "rewards_digest": graded, "n_tools": len(tools),
        "n_tasks": dict(sorted(Counter(row["split"] for row in tasks).items())), "fidelity": manifest.get("support", {}),
        "coverage": manifest.get("coverage", {}), "audit": audited, "privacy": manifest.get("privacy")}
    return Kit(manifest["name"], room, grader, digest(canonical([content, graded])), tasks, tools, figures)


def lay(kit: Kit, out: Path, modules: Iterable[str | Path] = (PLAY,), documents: Mapping[str, str] | None = None) -> list[Path]:
    """Put a kit into the folder `out`: `room/`, `grader/`, `kit.json`, adapter modules and further texts, by their paths.

    `modules`: names of files of `adapters/`, or paths of other modules; each is copied verbatim. Gives the files, sorted.
    """
    files = {f"{split}/{path.relative_to(folder).as_posix()}": path.read_bytes()
             for split, folder in (("room", kit.room), ("grader", kit.grader)) for path in files_of(folder)}
    files[ABOUT] = about(kit)
    for module in modules:
        path = ADAPTERS / module if isinstance(module, str) else module
        files[path.name] = path.read_bytes()
    files |= {path: text.encode() for path, text in (documents or {}).items()}
    return put(out, files)


def about(kit: Kit) -> bytes:
    """Return the text of `kit.json`: name, digest, figures."""
    facts = {"name": kit.name, "digest": kit.digest, "figures": kit.figures}
    return (json.dumps(facts, sort_keys=True, indent=1, ensure_ascii=False) + "\n").encode()


def files_of(folder: Path) -> list[Path]:
    """Return the files of a directory that belong to it, in order."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)


def put(out: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Write files by their paths below `out`, in order; gives them."""
    for name, data in sorted(files.items()):
        path = out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return [out / name for name in sorted(files)]


def module_name(kit: Kit) -> str:
    """Return the environment's name as a Python package may be called."""
    plain = "".join(sign if sign.isalnum() and sign.isascii() else "_" for sign in kit.name.lower())
    return f"traceroom_{plain}"


PAGE = """\
# {name} for {consumer}

The service `{name}` as it was found in logs: {n_tasks} tasks ({splits}), {n_tools} tools. Made by Traceroom.

- digest `{digest}`: the same in every consumer's export of these tasks; the same episode has the same reward in each
- audit: {audit}
- the room around its tasks: {coverage}

## Run it, in this folder

{run}
## What is in it

`room/` answers (its world, its tools' programs, its tasks, its runtime), `grader/` rewards (rubrics, known solutions, audit):
whoever plays must not read either. `play.py` opens both, `kit.json` has all figures.
"""

PYPROJECT = """\
[project]
name = {name}
version = "0.1.0"
description = {about}
requires-python = ">=3.11"
dependencies = [{needs}]
{scripts}
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[tool.hatch.build.targets.wheel{wheel}
"""


def pyproject(kit: Kit, name: str, needs: str, wheel: str, points: Mapping[str, Mapping[str, str]] | None = None,
              scripts: str = "") -> str:
    """Write a pyproject.toml. `wheel`: its table, from the name on; `points`: entry points by group; `scripts`: a table."""
    about = f"The service {kit.name}, as it was found in logs: {len(kit.tasks)} tasks."
    groups = [
        f"\n[project.entry-points.{json.dumps(group)}]\n" + "".join(
            f"{json.dumps(name)} = {json.dumps(target)}\n" for name, target in sorted(named.items()))
        for group, named in sorted((points or {}).items())]
    return PYPROJECT.format(name=json.dumps(name), about=json.dumps(about), needs=json.dumps(needs), scripts=scripts,
                            wheel=wheel) + "".join(groups)


def readme(kit: Kit, consumer: str, run: str) -> str:
    """Return the page of a kit for one consumer; `run`: commands and what they need."""
    splits = ", ".join(f"{n} {split}" for split, n in kit.figures["n_tasks"].items())
    published, coverage = kit.figures["audit"].get("published", {}), kit.figures["coverage"]
    rates = {f"{kind} accepted": rate for kind, rate in sorted(published.get("false_accept", {}).items())}
    rates |= {"right ones rejected": published["false_reject"]} if "false_reject" in published else {}
    audit = ", ".join(f"{name} {rate['k']} of {rate['n']}" for name, rate in rates.items()) or "see `grader/audit.json`"
    answered = (f"{coverage['answered']:.1%} of {coverage['n_calls']} calls that other sessions made there are answered"
                if coverage.get("n_calls") else "not measured")
    return PAGE.format(name=kit.name, consumer=consumer, n_tasks=len(kit.tasks), splits=splits, n_tools=len(kit.tools),
                       digest=kit.digest, audit=audit, coverage=answered, run=run)


def package_of(kit: Kit) -> str:
    """Name of the package of an environment."""
    return "traceroom_" + re.sub(r"[^a-z0-9]+", "_", kit.name.lower()).strip("_")


def put_page(kit: Kit, out: Path, consumer: str, run: str) -> list[Path]:
    """Write the README of the export; `run`: how it is used, `{package}` for the package's name. Gives the file."""
    return put(out, {"README.md": readme(kit, consumer, run.format(package=package_of(kit))).encode()})


def prompt_of(task: Row) -> list[Row]:
    """Return the conversation before the agent's first move, as `play.py` begins it."""
    messages = [{"role": message["role"], "content": message["content"]} for message in task["opening"]]
    spoken = any(message["role"] == "user" for message in messages)
    return messages if spoken else [*messages, {"role": "user", "content": task["goal"]}]


def tasks_by_split(kit: Kit) -> list[tuple[str, list[Row]]]:
    """Return the kit's tasks by split, in the order of the splits; splits without tasks are left out."""
    return [(split, tasks) for split in SPLITS if (tasks := [task for task in kit.tasks if task["split"] == split])]


def origin_of(kit: Kit, task: Row) -> Row:
    """Return what every row says of where it is from."""
    return {"task_id": task["task_id"], "family": task["family"], "split": task["split"], "environment": kit.name,
            "digest": kit.digest}


def put_lines(out: Path, name: str, rows: Iterable[Row]) -> list[Path]:
    """Write rows as JSON lines; gives the file."""
    lines = "".join(json.dumps(row, ensure_ascii=False, separators=(",", ":"), sort_keys=True) + "\n" for row in rows)
    return put(out, {name: lines.encode()})
