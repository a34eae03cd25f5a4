"""Batches, floods of notifications, answers nobody asked for, and cancellations of others' calls: none has an effect."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.attacks.halls import GROUP, hall, is_refused
from tests.attacks.report import Report, counted

FLOOD = 20_000
CALL = {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "open_door", "arguments": {"door": "7"}}}


def attack(folder: Path, share: float) -> Report:
    """Send what a client may send unasked, many times, and look at journals, answers and another's session."""
    problems, n = [], counted(FLOOD, share)
    with hall().agent() as agent, hall().agent() as other:
        session = agent.headers["Mcp-Session-Id"]
        batch = json.dumps([{**CALL, "id": number} for number in range(2_000)])
        problems += [] if is_refused(agent.send("POST", "/mcp", batch)) else ["a batch is answered"]
        problems += [] if is_refused(agent.send("POST", "/mcp", "[]")) else ["an empty batch is answered"]
        messages = [CALL, {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}},
                    {"jsonrpc": "2.0", "method": "notifications/initialized"}, {"jsonrpc": "2.0", "id": 1,
                    "result": {"content": []}},
                    {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "x"}},
                    {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progressToken": "x", "progress": 1e308}}]
        for number in range(n):
            answer = agent.send("POST", "/mcp", json.dumps(messages[number % len(messages)]))
            if answer.status != 202 or answer.body:
                problems.append(f"{messages[number % len(messages)]}: {answer.status} {answer.body[:60]!r}")
        problems += [f"{hall().steps(session)} steps came of notifications"] if hall().steps(session) else []
        problems += [] if other.call("read_sign",
            '{"at": "gate"}').json["result"]["isError"] is False else ["another is cancelled"]
    return Report(n + 2, (*problems[:5], *hall().trouble()))


@pytest.mark.xdist_group(GROUP)
def test_what_nobody_asked_for_has_no_effect(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
