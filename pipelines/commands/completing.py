"""Values that the shell offers for arguments and options: environments, tasks, perturbations, policies, releases' names.

Reads only what lies where the command would look; whatever cannot be read offers nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import typer

from env_builder.runtime.perturbations import SWITCHES

LONGEST = 60
"""Characters of a goal that are shown beside its task."""
POLICIES = {"openai:": "openai:MODEL@URL, a model", "oracle": "the known solution", "replay": "the recorded sessions",
            "script:": "script:FILE, Python or JSON lines of moves"}
Offers = Iterator[tuple[str, str]]


def complete_environment(incomplete: str) -> Offers:
    """Offer the environments of runs in this folder, and below the folder that is typed."""
    typed = Path(incomplete)
    folders = {Path(), typed if incomplete.endswith("/") else typed.parent, *typed.parents}
    manifests = {path for folder in folders for pattern in ("environments/*/manifest.json", "*/environments/*/manifest.json")
                 for path in folder.glob(pattern)}
    for path in sorted(manifests):
        if str(path.parent).startswith(incomplete):
            yield str(path.parent), ""


def complete_task(ctx: typer.Context, incomplete: str) -> Offers:
    """Offer the tasks of the environment that is named before."""
    environment = ctx.params.get("environment")
    if environment is None or not (path := Path(environment) / "tasks.jsonl").is_file():
        return
    for line in path.read_text("utf-8").splitlines():
        row = json.loads(line)
        if row["task_id"].startswith(incomplete):
            yield row["task_id"], str(row.get("goal") or "")[:LONGEST]


def complete_perturbation(incomplete: str) -> Offers:
    """Offer the perturbations."""
    yield from ((name, "") for name in SWITCHES if name.startswith(incomplete))


def complete_policy(incomplete: str) -> Offers:
    """Offer the kinds of policies."""
    yield from ((name, text) for name, text in POLICIES.items() if name.startswith(incomplete))


def complete_adapter(incomplete: str) -> Offers:
    """Offer the frameworks that have an adapter."""
    from pipelines.rollouts.agents.adapters import ADAPTERS

    yield from ((name, "") for name in (*ADAPTERS, "auto") if name.startswith(incomplete))
