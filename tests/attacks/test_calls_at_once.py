"""Many calls of one session at once over many connections: each is in the journal once, or was refused with Retry-After."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.attacks.halls import GROUP, hall
from tests.attacks.report import Report, counted

CALLS = 2_000


def attack(folder: Path, share: float) -> Report:
    """Call as fast as sixteen connections can, in one session, while it also talks, and end it meanwhile."""
    problems, n = [], counted(CALLS, share, 64)
    with hall().agent() as agent:
        headers = {"Mcp-Session-Id": agent.headers["Mcp-Session-Id"]}

        def call(number: int) -> int:
            with hall().client(**headers) as client:
                answer = client.call("read_sign", json.dumps({"at": f"gate {number}"}))
            if answer.status == 200:
                return 1
            problems.extend([] if answer.status == 429 and "retry-after" in answer.headers
                else [f"{answer.status}: {answer.body!r}"])
            return 0

        with ThreadPoolExecutor(24) as pool:
            n_served = sum(pool.map(call, range(n)))
        n_steps = hall().steps(headers["Mcp-Session-Id"])
    limit = 5  # steps that the room's task has
    problems += [] if n_steps <= limit and n_served >= min(n, limit) else [f"{n_steps} steps of {n_served} calls"]
    return Report(n, (*problems, *hall().trouble()))


@pytest.mark.xdist_group(GROUP)
def test_calls_at_once_are_counted_once(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
