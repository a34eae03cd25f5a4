"""Half an emoji over OpenEnv, by WebSocket and by HTTP: answers instead of failures, and every journal is stored."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.attacks.report import Report
from tests.attacks.servers import HttpClient, command, rows
from tests.peers import with_openenv
from tests.rooms import TASK, write_room

HALVES = (r"\ud800", r"ok \ud83d", r"\ude00\ud83d")
SOCKET = """
import asyncio, json, sys, websockets
async def main():
    url, answers = sys.argv[1], []
    async with websockets.connect(url) as socket:
        for text in json.loads(sys.argv[2]):
            await socket.send(text)
            answers.append(json.loads(await socket.recv()))
    print(json.dumps(answers))
asyncio.run(main())
"""


def attack(folder: Path, share: float) -> Report:
    """Send half characters in each field of an action, and end the session."""
    python, kept, problems = with_openenv(), folder / "journals.jsonl", []
    with command("serve", write_room(folder / "hall"), "--openenv", "--task", TASK, "--journals", kept,
                 TRACEROOM_OPENENV_PYTHON=str(python)) as server, HttpClient(server) as client:
        for half in HALVES:
            actions = [
                f'{{"type": "say", "text": "{half}"}}', f'{{"type": "call_tool", "tool_name": "{half}", "arguments": {{}}}}',
                f'{{"type": "call_tool", "tool_name": "read_sign", "arguments": {{"{half}": "{half}"}}}}']
            texts = ['{"type": "reset", "data": {}}', *(f'{{"type": "step", "data": {each}}}' for each in actions)]
            done = subprocess.run(
                [python, "-c", SOCKET, f"ws://{server.host}:{server.port}/ws", json.dumps(texts)], capture_output=True,
                text=True, check=False, timeout=120)
            answers = json.loads(done.stdout) if done.returncode == 0 else []
            problems += [f"{half}: {done.stderr[-300:] or answers}"] if [each["type"] for each in answers] != [
                "observation"] * 4 else []
            for action in (*actions, f'{{"type": "{half}"}}'):
                status = client.send("POST", "/step", f'{{"action": {action}, "{half}": "{half}"}}').status
                problems += [f"{half}: status {status} of {action}"] if status >= 500 else []
    own = [row["journal"] for row in rows(kept) if len(row["journal"]) >= 2]
    problems += [f"{len(own)} journals of {len(HALVES)} sessions"] if len(own) < len(HALVES) else []
    return Report(8 * len(HALVES), tuple(problems))


@pytest.mark.slow
def test_half_characters_over_openenv_are_answered_and_stored(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
