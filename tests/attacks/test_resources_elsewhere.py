"""Resources and prompts under addresses of files, of other machines, and of other episodes: only the task's own are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attacks.halls import GROUP, hall, is_refused, rpc
from tests.attacks.report import Report

ADDRESSES = ("file:///etc/passwd", "traceroom://episode/../../etc/passwd", "traceroom://episode/journal",
    "traceroom://episode/rubric",
             "http://127.0.0.1:1/x", "traceroom://episode/task\x00", "traceroom://episode/task/", "TRACEROOM://episode/task",
             "task",
             "traceroom://episode/", "traceroom://episode/solution", "data:,x", "traceroom://other/task", "/etc/passwd", "",
             None, 7, [], {})


def attack(folder: Path, share: float) -> Report:
    """Read each address as a resource, and as the name of a prompt."""
    problems = []
    with hall().agent() as agent:
        listed = agent.send("POST", "/mcp", rpc("resources/list")).json["result"]["resources"]
        own = [agent.send("POST", "/mcp", rpc("resources/read", {"uri": each["uri"]})).json for each in listed]
        problems += [] if own and all("result" in each for each in own) else [f"its own are not read: {own}"]
        for address in ADDRESSES:
            for method, params in (("resources/read", {"uri": address}), ("prompts/get", {"name": address}),
                                   ("resources/subscribe", {"uri": address}), ("completion/complete",
                                   {"ref": {"uri": address}})):
                if (method, address) == ("prompts/get", "task"):
                    continue
                answer = agent.send("POST", "/mcp", rpc(method, params))
                problems += [] if is_refused(answer) else [f"{method} of {address!r}: {answer.body[:100]!r}"]
    return Report(4 * len(ADDRESSES), (*problems, *hall().trouble()))


@pytest.mark.xdist_group(GROUP)
def test_no_address_of_a_resource_leads_elsewhere(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
