"""A disk that is full where journals go: none is lost, no episode begins meanwhile, and all are stored once there is room."""

from __future__ import annotations

import json
import resource
import time
from pathlib import Path

import pytest

from tests.attacks.report import Report
from tests.attacks.servers import HELLO, PATIENCE_S, HttpClient, command, rows
from tests.rooms import TASK, write_room

ROOM_LEFT = 700
"""Bytes that the file may have: less than the journals take, and no multiple of one."""


def attack(folder: Path, share: float) -> Report:
    """End one episode by DELETE and two by idleness while the file cannot grow, then make room."""
    kept, problems = folder / "journals.jsonl", []
    with command("serve", write_room(folder / "hall"), "--task", TASK, "--journals", kept, "--idle", "3") as server:
        pid = server.process.pid
        clients = [HttpClient(server) for _ in range(3)]
        for client in clients:
            client.open_session()
            client.call("read_sign", json.dumps({"at": "gate", "note": "x" * 300}))
        _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (ROOM_LEFT, hard))
        status = [client.send("DELETE", "/mcp").status for client in clients[:2]]
        problems += [f"DELETE gave {status}"] if status[-1] != 507 else []
        until = time.monotonic() + PATIENCE_S
        while (health := clients[0].health())["episodes"] and time.monotonic() < until:
            time.sleep(0.2)
        if health["episodes"] or health["lost"] or not health["unstored"]:
            problems.append(f"{health} while the disk is full")
        del clients[0].headers["Mcp-Session-Id"]
        refused = clients[0].send("POST", "/mcp", json.dumps(HELLO))
        problems += [f"a new session gave {refused.status}"] if refused.status != 503 else []
        problems += ["part of a line is in the file"] if len(rows(kept)) != 3 - health["unstored"] else []
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))
        while clients[0].health()["unstored"] and time.monotonic() < until:
            time.sleep(0.2)
        opened = clients[0].send("POST", "/mcp", json.dumps(HELLO))
        problems += [f"a session gave {opened.status} after there was room"] if opened.status != 200 else []
    problems += [f"{len(rows(kept))} of 3 journals"] if len(rows(kept)) != 3 else []
    return Report(3, tuple(problems))


@pytest.mark.slow
def test_a_full_disk_costs_no_journal(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
