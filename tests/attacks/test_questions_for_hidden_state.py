"""Calls that ask for what an agent must not see: other entities by patterns, the world's files, rubrics and solutions."""

from __future__ import annotations

import json
from pathlib import Path

from env_builder.runtime import Environment
from tests.attacks.report import Report
from tests.rooms import CLOSED, TASK, write_rewards, write_room

VALUES = ("*", "%", "7' or '1'='1", ".*", "../world.jsonl", "/etc/passwd", "file:///room/world.jsonl", "{{world}}", "__dict__",
    "7\x00", "７", "07",
          " 7", "7 ", "+7", "7.0", "0x7", None, True, 7, 7.0, [], {}, ["7"], {"$ne": None}, {"$regex": ".*"}, {"door": "7"},
          -1, 10 ** 30)
TOOLS = ("read_sign", "open_door", "../open_door", "__init__", "grade", "rubric", "solution", "state", "journal", "learn",
    "eval", "exec", "os.system",
         "read_file", "traceroom/journal", "")


def attack(folder: Path, share: float) -> Report:
    """Call every tool with every value, and look for what the world, the rubric and the solution hold."""
    room = write_room(folder / "out" / "environments" / "hall")
    write_rewards(room)
    problems, n_tried = [], 0
    secrets = (CLOSED, "door/7", "accepted", "check_id", "rubric_id", "root:x")
    for tool in TOOLS:
        for value in VALUES:
            n_tried += 1
            environment = Environment.load(room) if n_tried == 1 else environment.fork()  # noqa: F821  of the turn before
            environment.reset(TASK)
            result = environment.call(tool, {"at": value, "door": value} if tool == "read_sign" else {"door": value})
            repeated = json.dumps(value)
            told = [secret for secret in secrets if secret in result.content.replace(repeated, "")]
            problems += [f"{tool} {value!r} gives {told}"] if told else []
            changed = environment.difference() if callable(environment.difference) else environment.difference
            problems += [f"{tool} {value!r} changes {changed}"] if tool != "open_door" and changed.get("documents") else []
    return Report(n_tried, tuple(problems))


def test_what_is_hidden_is_not_answered(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
