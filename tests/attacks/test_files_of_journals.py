"""Files given to `grade` that are no journals: other encodings, depth, types, a line of megabytes; each is named."""

from __future__ import annotations

import json
from pathlib import Path

from env_builder.runtime import Environment
from tests.attacks.report import Report
from tests.command_line import called
from tests.rooms import TASK, write_rewards, write_room


def attack(folder: Path, share: float) -> Report:
    """Grade each file, and look that it ends with a sentence and with no reward of 1."""
    room = write_room(folder / "out" / "environments" / "hall")
    write_rewards(room)
    digest = Environment.load(room).manifest["content_digest"]
    row = {"environment": "hall", "content_digest": digest, "task_id": TASK, "seed": 0, "perturbations": [], "journal": []}
    contents = {
        "another encoding": json.dumps(row).encode("utf-16"), "no text": b"\xff\xfe\x00" * 50, "depth": b"[" * 100_000,
        "null": b"null\n",
        "a list": b"[]\n", "a number": b"1\n", "twice": json.dumps(row).encode() + b"\n" + json.dumps(row).encode() + b"\n",
        "a task in a list": json.dumps({**row, "task_id": [TASK]}).encode(),
        "a seed of text": json.dumps({**row, "seed": "x"}).encode(),
        "a giant seed": json.dumps({**row, "seed": 10 ** 300}).encode(),
        "a seed that is none": json.dumps({**row, "seed": None}).encode(),
        "perturbations of numbers": json.dumps({**row, "perturbations": [1]}).encode(),
        "no journal": json.dumps({**row, "journal": 5}).encode(),
        "a text for a journal": json.dumps({**row, "journal": "solved"}).encode(),
        "rows that are texts": json.dumps({**row, "journal": ["x"]}).encode(),
        "a long line": json.dumps({**row, "journal": [{"kind": "say", "content": "x" * 3_000_000}]}).encode(),
        "keys twice": b'{"task_id": "x", "reward": 1, ' + json.dumps(row).encode()[1:],
        "NaN": json.dumps({**row, "seed": float("nan")}).encode(),
        "a claimed reward": json.dumps({**row, "reward": 1.0, "checks": []}).encode(),
        "an ATIF of nothing": json.dumps({**row, "schema_version": "x"}).encode(),
        "extra that is a text": json.dumps({**row, "schema_version": "x", "extra": "y"}).encode()}
    problems = []
    for name, content in contents.items():
        path = folder / "journals.jsonl"
        path.write_bytes(content)
        done = called("grade", room, path, "--json")
        problems += [f"{name}: {done.stderr[-300:]}"] if "mistake in Traceroom" in done.stderr or done.returncode not in (0, 1,
            2) else []
        rewards = [each.get("reward") for each in json.loads(done.stdout).get("episodes",
            [])] if done.stdout.startswith("{") else []
        problems += [f"{name}: rewards {rewards}"] if any(rewards) else []
    return Report(len(contents), tuple(problems))


def test_a_file_that_holds_no_journal_is_named(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
