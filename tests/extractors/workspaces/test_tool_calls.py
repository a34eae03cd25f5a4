"""Recorded calls count for the workspace's tool that does the like."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

from env_builder.perturbations import perturbations
from extractors.workspaces.frames import frames
from extractors.workspaces.tool_calls import EFFECTS, as_workspace_tools, tool_of

PYTEST = ("python3", "-m", "pytest", "-q")


@pytest.mark.parametrize(("arguments", "content", "tool"), [
    ({"command": "python -m pytest -q tests/test_a.py"}, "1 passed", "test"),
    ({"command": "cd /app && uv run pytest"}, "1 passed", "test"),
    ({"command": ["bash", "-lc", "PYTHONPATH=. pytest tests"]}, "1 failed", "test"),
    ({"command": "pip install pytest"}, "done", "shell"),
    ({"command": "git status"}, "clean", "shell"),
    ({"file_path": "a.py"}, "     1\tx = 1\n     2\ty = 2\n", "read"),
    ({"pattern": "x", "path": "."}, "a.py:1:x = 1\nb.py:7:x = 2", "search"),
    ({"file_path": "a.py", "old_string": "1", "new_string": "2"}, "ok", "edit"),
    ({"file_path": "a.py", "content": "x"}, "ok", "write"),
    ({"city": "Bern"}, "sunny", None)])
def test_calls_stand_for_tools(arguments: dict[str, object], content: str, tool: str | None) -> None:
    assert tool_of(frames(json.dumps(arguments), content, False), PYTEST) == tool


@pytest.mark.parametrize(("command", "test", "is_test"), [
    ("sh run.sh", ("sh", "run.sh"), True), ("./run.sh", ("sh", "run.sh"), True), ("sh other.sh", ("sh", "run.sh"), False),
    ("npm test", ("npm", "test"), True), ("npm install", ("npm", "test"), False),
    ("node --test test/", ("node", "--test"), True), ("node index.js", ("node", "--test"), False)])
def test_the_command_of_the_tests_is_the_recipe_s(command: str, test: tuple[str, ...], is_test: bool) -> None:
    assert (tool_of(frames(json.dumps({"command": command}), "", False), test) == "test") is is_test


def test_time_and_failures_of_tests_are_measured() -> None:
    began = datetime(2026, 3, 2, tzinfo=UTC)
    rows = [{"turn_id": f"t{n}", "session_id": f"s{n // 2}", "service": "code", "position": n % 2, "kind": "call", "role": None,
             "happened_at": began + timedelta(minutes=n), "answered_at": began + timedelta(minutes=n, seconds=3 + n),
             "content": "Connection reset" if n % 2 == 0 else "3 passed", "call_id": f"c{n}", "tool": "Bash",
             "arguments": json.dumps({"command": "pytest"}), "arguments_raw": None, "is_error": n % 2 == 0,
             "requestor": None, "result_id": f"r{n}", "latency_ms": None, "model": None} for n in range(6)]
    turns = pl.DataFrame(rows, infer_schema_length=None)
    measured = perturbations(as_workspace_tools(turns, PYTEST), EFFECTS)
    assert [(row["tool"], row["n_calls"], row["latency_ms"][0], row["latency_ms"][-1], row["fault_rate"])
            for row in measured] == [("test", 6, 3000.0, 8000.0, 0.5)]
