"""Hostile names in every export: cards, Dockerfiles, TOML, YAML and programs stay what they are, and hold no name as code."""

from __future__ import annotations

import ast
import json
import tomllib
from pathlib import Path

import pytest
import yaml

from env_builder.exports import registered
from tests.attacks.hostile_run import GROUP, MARK, hostile_run
from tests.attacks.report import Report
from tests.command_line import called

OF_REPOSITORIES = ("swebench",)
"""Formats that refuse the environment of a service."""


def attack(folder: Path, share: float) -> Report:
    """Export the environment for each consumer, and parse each file as who uses it will."""
    out, problems, n = hostile_run(), [], 0
    room = next((out / "environments").iterdir())
    names = sorted(registered()) if share >= 0.1 else sorted(registered())[::2]
    for name in names:
        done = called("export", name, room, "--to", folder / name)
        is_refused = name in OF_REPOSITORIES and "has no repository" in done.stderr
        problems += [f"{name}: {done.stderr[-200:]}"] if (
            done.returncode > 1 and not is_refused) or "mistake" in done.stderr else []
    for path in [*(path for path in folder.rglob("*") if path.is_file()), *(path for path in out.rglob("*.md")),
        *room.glob("Dockerfile")]:
        n += 1
        problems += _problems(path)
    problems += [] if n > 10 else [f"{n} files"]
    return Report(n, tuple(problems[:20]))


def _problems(path: Path) -> list[str]:
    kind = path.suffix
    if kind not in (".toml", ".json", ".jsonl", ".yaml", ".yml", ".md", ".py", ".sh") and path.name != "Dockerfile":
        return []
    text = path.read_text("utf-8")
    try:
        if kind == ".toml":
            tomllib.loads(text)
        elif kind == ".json":
            json.loads(text)
        elif kind == ".jsonl":
            [json.loads(line) for line in text.split("\n") if line]
        elif kind in (".yaml", ".yml"):
            yaml.safe_load(text)
        elif kind == ".md" and text.startswith("---\n"):
            yaml.safe_load(text.split("---\n")[1])
        elif kind == ".py":
            ast.parse(text)
    except (ValueError, SyntaxError, yaml.YAMLError) as error:
        return [f"{path}: {error}"]
    is_code = kind in (".py", ".sh") or path.name == "Dockerfile"
    problems = [f"{path.name} is code with a name of the log"] if is_code and MARK in text else []
    shown = text.lower().replace("\\<", "").replace("`", "")
    tags = [tag for tag in ("<script", "<img", "<svg", "<iframe", "<style") if kind == ".md" and tag in shown]
    return problems + [f"{path}: {tag} in Markdown" for tag in tags]


@pytest.mark.slow
@pytest.mark.xdist_group(GROUP)
def test_exports_hold_names_as_values(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
