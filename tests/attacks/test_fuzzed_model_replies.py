"""Fuzzed replies of a model: no rollout is aborted, a bad episode is one failed episode, and the folder takes further ones."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.attacks.fuzz import Fuzz
from tests.attacks.report import Report, counted
from tests.command_line import environ
from tests.endpoint import chatting
from tests.rooms import TASK, write_rewards, write_room

REPLIES = 10_000
HALF = r'{"at": "\ud83d"}'
SCRIPT = r"""
MOVES = ["half \ud83d", [{"tool": "read_sign", "arguments": {"at": "\ud800"}}]]
def policy(seen):
    return MOVES[seen.n_turns] if seen.n_turns < 2 else None
"""


class FuzzedModel:
    """A model whose replies are turns, or nearly so."""

    def __init__(self, seed: int) -> None:
        self._fuzz = Fuzz(seed)
        self.n_replies = 0

    def reply(self, asked: dict[str, Any]) -> dict[str, Any]:
        """Return the next message."""
        fuzz = self._fuzz
        self.n_replies += 1
        call = {"id": f"c{self.n_replies}", "type": "function", "function": {
            "name": fuzz.choice(("open_door", "read_sign", fuzz.text())),
            "arguments": fuzz.choice((json.dumps(fuzz.value()), fuzz.text(), '{"at": "gate"}', '{"at": NaN}', HALF))}}
        message: dict[str, Any] = {"content": fuzz.choice((None, fuzz.text(), "hello \ud83d"))}
        if fuzz.random() < 0.6:
            message["tool_calls"] = [call] * fuzz.choice((1, 1, 1, 2))
        changed: Any = fuzz.changed(message) if fuzz.random() < 0.3 else message
        return changed if isinstance(changed, dict) else {"content": changed}


def rollout(room: Path, *options: str | Path) -> subprocess.CompletedProcess[str]:
    """Run `traceroom rollout` to its end."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "pipelines", "rollout", str(room), "--json", *map(str, options)], cwd="/", env=environ(),
        capture_output=True, text=True, check=False)


def attack(folder: Path, share: float) -> Report:
    """Play until the model has given its replies, then play the known solution into the same folder."""
    room = write_room(folder / "out" / "environments" / "house")
    write_rewards(room)
    model, problems, n_aborted, seed = FuzzedModel(7), [], 0, 0
    with chatting(model.reply) as endpoint:
        while model.n_replies < counted(REPLIES, share):
            n_episodes = max(20, (counted(REPLIES, share) - model.n_replies) // 3)
            done = rollout(room, "--policy", f"openai:m@{endpoint.url}", "--tasks", str(n_episodes), "--seed", str(seed))
            seed += n_episodes
            if done.returncode not in (0, 1) or "mistake" in done.stderr:
                n_aborted += 1
                problems.append(f"exit code {done.returncode}: {done.stderr[-5000:]}")
                break
            endpoint.asked.clear()
    after = rollout(room, "--policy", "oracle")
    if after.returncode:
        problems.append(f"a later rollout into the folder: exit code {after.returncode}: {after.stderr[-500:]}")
    return Report(model.n_replies, tuple(problems), {"rollouts_aborted": n_aborted})


@pytest.mark.slow
def test_fuzzed_model_replies_abort_no_rollout(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()


@pytest.mark.slow
def test_a_script_that_says_half_a_character_leaves_the_folder_usable(tmp_path: Path) -> None:
    room = write_room(tmp_path / "out" / "environments" / "house")
    write_rewards(room)
    says = tmp_path / "says.py"
    says.write_text(SCRIPT)
    first, second = rollout(room, "--policy", f"script:{says}"), rollout(room, "--policy", "oracle")
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert TASK in (room.parent.parent / "rollouts" / "house" / "trajectories.jsonl").read_text("utf-8")
