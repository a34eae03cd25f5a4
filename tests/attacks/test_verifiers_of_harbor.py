"""Files left for Harbor's verifier: journals that are none, rewards that an agent wrote itself, links; none of them counts."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.attacks.hostile_run import GROUP
from tests.attacks.kits import harbor_task
from tests.attacks.logs import MB
from tests.attacks.report import Report


def attack(folder: Path, share: float) -> Report:
    """Run the verifier of a task on each journal, in a folder where rewards of 1 lie already."""
    task = harbor_task(folder)
    verifier = task / "tests"
    home = folder / "home"
    for name in ("room", "kit.json", "play.py", "harbor_grade.py"):
        (shutil.copytree if (verifier / name).is_dir() else shutil.copyfile)(verifier / name, _made(home / name))
    for name, place in (("task/tasks.jsonl", "room/tasks.jsonl"), ("task/rubrics.jsonl", "grader/rubrics.jsonl")):
        shutil.copyfile(verifier / name, _made(home / place))
    secret = folder / "victim"
    secret.write_text("untouched")
    solved = json.dumps([{"kind": "finish", "reward": 1.0}])
    journals: dict[str, bytes | None] = {
        "none": None, "empty": b"", "no JSON": b"{", "a number": b"1", "a text": b'"reward"', "a claim": b'{"reward": 1.0}',
        "a claimed end": solved.encode(),
        "depth": b"[" * 100_000, "another encoding": solved.encode("utf-16"), "rows of texts": b'["x", 1, null]',
        "long": b" " * (20 * MB) + b"[]",
        "half a character": b'[{"kind": "say", "content": "\\ud800"}]',
        "not a number": b'[{"kind": "call", "tool": "open_door", "arguments": {"door": NaN}}]'}
    problems = []
    for name, content in journals.items():
        out, journal = folder / "logs", folder / "journal.json"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        (out / "reward.json").symlink_to(secret) if name == "empty" else (out / "reward.json").write_text('{"reward": 1.0}')
        journal.unlink(missing_ok=True)
        if content is not None:
            journal.write_bytes(content)
        done = subprocess.run([sys.executable, "-I", "-S", "-B", home / "harbor_grade.py", journal, out], capture_output=True,
            check=False, env=dict(os.environ))
        text = (out / "reward.json").read_text() if (out / "reward.json").exists() else "{}"
        if text == "untouched" or json.loads(text).get("reward"):
            problems.append(f"{name}: {text} stays ({done.returncode}, {done.stderr[-150:]!r})")
    problems += [] if secret.read_text() == "untouched" else ["a file behind a link was written"]
    return Report(len(journals), tuple(problems))


def _made(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


@pytest.mark.slow
@pytest.mark.xdist_group(GROUP)
def test_a_reward_that_an_agent_wrote_does_not_stay(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
