"""What stands around an exported package: its README (what it is, what it is worth, how it is run) and its pyproject.toml."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from env_builder.exports.kit import Kit, module_name

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
dependencies = {dependencies}

[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[tool.hatch.build.targets.wheel]
packages = [{package}]
"""


def pyproject(kit: Kit, dependencies: Sequence[str], points: Mapping[str, Mapping[str, str]] | None = None) -> str:
    """The pyproject.toml of a package of the kit; `points`: entry points by their group."""
    package = module_name(kit)
    about = f"The service {kit.name}, as it was found in logs: {len(kit.tasks)} tasks."
    groups = [
        f"\n[project.entry-points.{json.dumps(group)}]\n" + "".join(
            f"{json.dumps(name)} = {json.dumps(target)}\n" for name, target in sorted(named.items()))
        for group, named in sorted((points or {}).items())]
    return PYPROJECT.format(
        name=json.dumps(package.replace("_", "-")), about=json.dumps(about), dependencies=json.dumps(list(dependencies)),
        package=json.dumps(package)) + "".join(groups)


def readme(kit: Kit, consumer: str, run: str) -> str:
    """The page of a kit for one consumer; `run`: commands and what they need."""
    splits = ", ".join(f"{n} {split}" for split, n in kit.figures["n_tasks"].items())
    return PAGE.format(
        name=kit.name, consumer=consumer, n_tasks=len(kit.tasks), splits=splits, n_tools=len(kit.tools), digest=kit.digest,
        audit=_audit(kit), coverage=_coverage(kit), run=run)


def _audit(kit: Kit) -> str:
    published = kit.figures["audit"].get("published", {})
    rates = {f"{kind} accepted": rate for kind, rate in sorted(published.get("false_accept", {}).items())}
    rates |= {"good ones rejected": published["false_reject"]} if "false_reject" in published else {}
    return ", ".join(f"{name} {rate['k']} of {rate['n']}" for name, rate in rates.items()) or "see `grader/audit.json`"


def _coverage(kit: Kit) -> str:
    coverage = kit.figures["coverage"]
    if not coverage.get("n_calls"):
        return "not measured"
    return f"{coverage['answered']:.1%} of {coverage['n_calls']} calls that other sessions made there are answered"
