"""Which texts are programs: command lines, patches, code; and prose, ids and dates are none."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

from env_builder.rewards.commands import FEWEST_CALLS, holds_program, is_program, sessions_that_run_programs


@pytest.mark.parametrize("text", [
    "git log --oneline -5", "ls -la", "cat notes | sort", "make build && make test", "echo done > log", "sed -i x y",
    "*** Begin Patch\n*** Update File: a.txt\n@@\n-old\n+new", "diff --git a/x b/x",
    "def area(w, h):\n    size = w * h\n    return size", "for (const x of xs) {\n  total += x;\n}"])
def test_command_lines_patches_and_code_are_programs(text: str) -> None:
    assert is_program(text)


@pytest.mark.parametrize("text", [
    "Please move my visit to Friday - thanks!", "2024-05-15 10:00", "AB-1234", "Rock & Roll; the best of", "notes.txt",
    "Dear Ms Hill,\nyour order has shipped.\nIt comes on Friday.\nKind regards", "black, 20 hours, water-resistant",
    "a@b.example", "1. milk\n2. eggs\n3. bread", "https://shop.example/a/b?c=1"])
def test_prose_ids_days_and_lists_are_none(text: str) -> None:
    assert not is_program(text)


def test_a_list_that_begins_with_a_shell_is_a_program() -> None:
    assert holds_program({"command": ["/bin/bash", "-lc", "pwd"]}) and not holds_program({"people": ["Ann", "Bo"]})


def calls(*rows: tuple[str, str, Any]) -> pl.DataFrame:
    """Return turns: (session, tool, arguments)."""
    return pl.DataFrame([
        {"service": "main", "session_id": session, "tool": tool, "kind": "call", "arguments": json.dumps(arguments)}
        for session, tool, arguments in rows])


def test_sessions_of_a_service_that_mostly_uses_a_shell_all_work_on_files() -> None:
    shell = [(f"s{n}", "run", {"line": "ls -l && pwd"}) for n in range(FEWEST_CALLS)]
    found = sessions_that_run_programs(calls(*shell, ("edits", "replace", {"old": "red", "new": "blue"})))
    assert found == {"s0": "run", "s1": "run", "s2": "run", "edits": "run"}


def test_a_rare_shell_concerns_only_the_sessions_that_use_it_and_one_odd_text_none() -> None:
    shell = [(f"s{n}", "run", {"line": "ls -l && pwd"}) for n in range(FEWEST_CALLS)]
    others = [(f"t{n}", "note", {"text": "cat x | sort" if n == 0 else "the cat sleeps"}) for n in range(9)]
    assert sessions_that_run_programs(calls(*shell, *others)) == {"s0": "run", "s1": "run", "s2": "run"}
