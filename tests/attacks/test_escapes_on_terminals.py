"""Logs that speak to a terminal: escapes, directions and markup in names and texts, in what every command prints."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.attacks.hostile_run import GROUP, MARK, hostile_run
from tests.attacks.report import Report
from tests.command_line import called

OBEYED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff]")


def attack(folder: Path, share: float) -> Report:
    """Run the commands that show what logs hold."""
    out = hostile_run()
    logs, room = out.parent / "logs", next((out / "environments").iterdir())
    task = json.loads((room / "tasks.jsonl").read_text("utf-8").splitlines()[0])["task_id"]
    commands: list[tuple[str | Path, ...]] = [
        ("sniff", logs), *(("sniff", path) for path in sorted(logs.rglob("*.jsonl"))[-3 if share < 0.1 else 0:]),
        ("show", "--out", out, "--rejected"), ("tasks", room), ("review", out), ("coverage", "--out", out),
        ("play", room, task), ("sniff", "--json", logs), ("show", "--out", out, "--json")]
    if share >= 0.1:
        commands += [("audit", logs), ("verify", room), ("attack", room), ("show", "--out", out)]
    problems, shown = [], 0
    for command in commands:
        done = called(*command, typed="list\n\n")
        problems += [f"{command[0]}: exit code {done.returncode}: {done.stderr[-300:]}"] if done.returncode > 1 else []
        shown += MARK in done.stdout + done.stderr
        for stream, text in (("stdout", done.stdout), ("stderr", done.stderr)):
            if match := OBEYED.search(text):
                problems.append(f"{command[0]}, {stream}: {text[max(0, match.start() - 40):match.end() + 30]!r}")
    return Report(len(commands), (*problems, *([] if shown > 3 else ["the log is not shown"])))


@pytest.mark.slow
@pytest.mark.xdist_group(GROUP)
def test_a_terminal_obeys_no_log(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
