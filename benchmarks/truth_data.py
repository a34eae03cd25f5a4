"""The data sets of the benchmark of truth: what each is, its inputs by way, the run that builds it, and the scorers.

A build sees a copy of the logs and of what a way adds, never the folder `truth`. Truth is read here for scoring alone, by one
exception: reviews are answered from `success` of truth/sessions.jsonl, since a reviewer knows what a scorer knows.
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
WAYS = ("logs", "feedback", "reviews")
DECLARED = ("tools", "tools.json", "traceroom.toml")
"""What describes the logs, beside them: read in every way."""
PASSES = 0.5
"""Reward above which an episode is paid."""


class DataSet(NamedTuple):
    """A folder with logs and their truth."""

    path: Path
    kind: str
    """zoo, retail, cases (an application's requests), trials (airline), or plain."""

    @property
    def ways(self) -> tuple[str, ...]:
        """Return the ways in which its figures are reported."""
        return WAYS if self.kind in ("zoo", "retail") else WAYS[:1]


class Job(NamedTuple):
    """One build of one set, and what measures it."""

    data: DataSet
    way: str
    scorers: Path
    gate: float | None = None
    """`[gates] min_precision` of the build; None: the default."""

    def staged(self, scratch: Path, way: str | None = None) -> Path:
        """Return a folder with what the build may read, in its own way by default."""
        folder = stage(self.data.path, way or self.way, scratch / "in")
        if self.gate is not None:
            with (folder / DECLARED[-1]).open("a", encoding="utf-8") as config:
                config.write(f"\n[gates]\nmin_precision = {self.gate}\n")
        return folder


class Built(NamedTuple):
    """What `traceroom run` wrote, and how long each of its stages took."""

    out: Path
    seconds: dict[str, float]


class MissingCommand(Exception):
    """The product has no such command (yet)."""


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the objects of a file of JSON lines; none if there is no such file."""
    if path.exists():
        with path.open(encoding="utf-8") as lines:
            yield from map(json.loads, lines)


def data_sets(folders: list[Path], only: list[str] | None = None) -> list[DataSet]:
    """Return the sets in these folders: a folder with logs, or the sets inside of it."""
    found = []
    for folder in folders:
        own = [folder] if (folder / "logs").is_dir() else sorted(each.parent for each in folder.glob("*/logs"))
        found += [DataSet(each.resolve(), kind_of(each)) for each in own if not only or each.name in only]
    return found


def kind_of(folder: Path) -> str:
    """Return the kind of a set, by the content of its truth."""
    truth = folder / "truth"
    if (truth / "cases.jsonl").exists():
        return "cases"
    first = next(rows(truth / "sessions.jsonl"), {})
    if (truth / "policies.jsonl").exists():
        return "zoo" if "outcome" in first else "retail"
    return "trials" if "trial" in first else "plain"


def truths(data: Path) -> dict[str, bool]:
    """Session -> whether it truly went well."""
    return {row["session_id"]: bool(row["success"]) if "success" in row else row["reward"] > PASSES
            for row in rows(data / "truth" / "sessions.jsonl")}


def true_writes(data: Path) -> set[str]:
    """Return the tools that change something, by the truth of the set, else by that of a set beside it with the same tools."""
    for path in (data / "truth" / "tools.jsonl", *sorted(data.parent.glob("*/truth/tools.jsonl"))):
        effects = {row["tool"]: row["effect"] for row in rows(path) if not row.get("setup")}
        called = tools_of(data)
        if effects and (path.is_relative_to(data) or len(called & effects.keys()) > len(called) / 2):
            return {tool for tool, effect in effects.items() if effect in ("write", "both")}
    return set()


def tools_of(data: Path) -> set[str]:
    """Return the names of the declared tools."""
    declared = [data / "tools.json", *sorted((data / "tools").glob("*.json"))]
    tools = [tool for path in declared if path.exists() for tool in json.loads(path.read_text("utf-8"))]
    return {tool.get("function", tool).get("name", "") for tool in tools if isinstance(tool, dict)}


def scorers_beside(data: Path) -> Path:
    """Return the folder `acceptance` of the nearest ancestor that has one."""
    for folder in data.resolve().parents:
        if (folder / "acceptance" / "verdicts.py").exists():
            return folder / "acceptance"
    raise SystemExit(f"no folder acceptance/ above {data}; name one with --scorers")


def scorer(folder: Path, name: str) -> ModuleType:
    """Import a scorer by its path, anew: what one measurement does to it touches no other."""
    spec = importlib.util.spec_from_file_location(f"scorer_{name}", folder / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def score(module: ModuleType, *arguments: str) -> dict[str, Any]:
    """Call a scorer's `main` and return the object of its last line."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        module.main(*arguments)
    return json.loads(printed.getvalue().splitlines()[-1])


def stage(data: Path, way: str, folder: Path) -> Path:
    """Copy what this way may read into an empty folder, and return it."""
    staged = folder / data.name
    staged.mkdir(parents=True)
    for name in ("logs", *DECLARED, *(("feedback",) if way == "feedback" else ())):
        source = data / name
        if source.is_dir():
            shutil.copytree(source, staged / name)
        elif source.exists():
            shutil.copy(source, staged / name)
    return staged


def build(staged: Path, out: Path) -> Built:
    """Run `traceroom run` on a staged folder, as a user does."""
    inputs = [staged / name for name in ("logs", "feedback", *DECLARED[:2]) if (staged / name).exists()]
    config = ["--config", str(staged / DECLARED[-1])] if (staged / DECLARED[-1]).exists() else []
    done = traceroom("run", *map(str, inputs), "--out", str(out), "--no-image", "--json", "--privacy", "off", *config)
    stages = json.loads(done)["stages"]
    return Built(out, {each["stage"]: each["seconds"] for each in stages})


def traceroom(*arguments: str) -> str:
    """Run a command of the product and return what it prints. Raises MissingCommand, SystemExit."""
    done = subprocess.run([sys.executable, "-P", "-m", "pipelines", *arguments], capture_output=True, text=True, cwd=ROOT,
                          env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False)
    if "No such command" in done.stderr:
        raise MissingCommand(f"traceroom has no command {arguments[0]}")
    if done.returncode:
        raise SystemExit(f"traceroom {arguments[0]} failed: {done.stderr.strip().splitlines()[-1:]}")
    return done.stdout


class Clock:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._began = time.perf_counter()

    def seconds(self) -> float:
        """Return the seconds so far."""
        return round(time.perf_counter() - self._began, 1)
