"""The host's own methods from an agent: journal, reset, tasks, learn, close; none is answered, by any spelling."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attacks.halls import GROUP, SOLVED, hall, is_refused, rpc
from tests.attacks.report import Report
from tests.rooms import OPEN, TASK

METHODS = ("journal", "reset", "tasks", "say", "learn", "prompt", "supply", "finish", "state", "close")
SPELLINGS = ("traceroom/{}", "TRACEROOM/{}", "traceroom/{} ", "/traceroom/{}", "tools/../traceroom/{}",
    "tools/call\x00traceroom/{}",
             "traceroom.{}", "traceroom//{}", "{}", "rpc.{}", "traceroom\u2215{}")


def attack(folder: Path, share: float) -> Report:
    """Ask for each method in each spelling, with what a host would pass, and look at the journal."""
    problems, n_tried = [], 0
    with hall().agent() as agent:
        agent.call(*SOLVED[0])
        session = agent.headers["Mcp-Session-Id"]
        params = {"task_id": TASK, "text": "x", "name": "open_door", "arguments": {"door": "8"}, "content": OPEN, "reply": OPEN,
                  "seed": 0, "_meta": {"traceroom/episode": session, "traceroom/control": True}}
        for method in METHODS:
            for spelling in SPELLINGS:
                n_tried += 1
                answer = agent.send("POST", "/mcp", rpc(spelling.format(method), params))
                problems += [] if is_refused(answer) else [f"{spelling.format(method)!r} gives {answer.body[:80]!r}"]
                problems += [f"{method} gives the journal"] if b'"tier"' in answer.body or b'"kind"' in answer.body else []
        problems += [] if hall().steps(session) == 1 else ["the journal has other steps"]
    return Report(n_tried, (*problems, *hall().trouble()))


@pytest.mark.xdist_group(GROUP)
def test_an_agent_cannot_use_what_is_the_hosts(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
