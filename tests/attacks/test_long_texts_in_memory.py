"""Messages and arguments of many megabytes: refused at every door, and none stays in memory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from env_builder.runtime import Environment
from env_builder.runtime.admission import MAX_TEXT
from tests.attacks.report import Report, counted
from tests.attacks.servers import HttpClient, command
from tests.rooms import TASK, write_room

MEGABYTES, TIMES = 15, 200
MOST_GROWTH = 64 << 20


def resident(pid: int) -> int:
    """Return the bytes that a process and its children hold in memory."""
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    status = Path(f"/proc/{pid}/status").read_text()
    own = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS")) << 10
    return own + sum(resident(int(child)) for child in children)


def attack(folder: Path, share: float) -> Report:
    """Send long words and arguments in many episodes over HTTP."""
    text, problems = "x" * (MEGABYTES << 20), []
    shorter = "y" * (MAX_TEXT + 1)
    with command("serve", write_room(folder / "hall"), "--task", TASK) as server:
        with HttpClient(server) as client:
            client.open_session()
        before = resident(server.process.pid)
        for _ in range(counted(TIMES, share, 10)):
            with HttpClient(server) as client:
                client.open_session()
                status = [client.send("POST", "/episode/say", json.dumps({"text": each})).status for each in (text, shorter)]
                answers = [client.call("read_sign", json.dumps({"at": each})) for each in (text, shorter)]
                problems += [f"say gave {status}"] if status != [413, 400] else []
                is_refused = answers[0].status == 413 and answers[1].json["result"]["isError"]
                problems += [] if is_refused else ["a call was answered"]
        grown = resident(server.process.pid) - before
    problems += [f"{grown >> 20} MB more are held"] if grown > MOST_GROWTH else []
    return Report(4 * counted(TIMES, share, 10), tuple(problems), {"grown_mb": grown >> 20})


@pytest.mark.slow
def test_long_texts_are_refused_and_not_kept(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.05).problems == ()


def test_a_text_that_is_too_long_is_no_step(tmp_path: Path) -> None:
    environment = Environment.load_room(write_room(tmp_path / "hall"))
    environment.reset(TASK)
    with pytest.raises(ValueError, match="longer than"):
        environment.say("x" * (MAX_TEXT + 1))
    assert environment.call("read_sign", {"at": "x" * MAX_TEXT}).is_error
    assert [row.get("arguments") for row in environment.journal] == [None]
