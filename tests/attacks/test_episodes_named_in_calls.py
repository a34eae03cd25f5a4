"""Calls that name another's episode in their metadata, or ask there for tiers and control: they stay calls of their own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.attacks.halls import GROUP, SOLVED, hall, rpc
from tests.attacks.report import Report

METAS = ("traceroom/episode", "traceroom/tier", "traceroom/tiers", "traceroom/control", "traceroom/at", "progressToken",
    "episode")


def attack(folder: Path, share: float) -> Report:
    """Call the tool that solves a task in the name of a victim's episode, in every place that metadata may have."""
    problems = []
    with hall().agent() as victim, hall().agent() as attacker:
        own, other = attacker.headers["Mcp-Session-Id"], victim.headers["Mcp-Session-Id"]
        honest = attacker.call(*SOLVED[0]).json["result"]["_meta"].keys()
        call = {"name": "open_door", "arguments": {"door": "7"}}
        for number, meta in enumerate(METAS):
            for params in ({**call, "_meta": {meta: other}}, {**call, meta: other}, {**call, "arguments": {
                    "door": "7", "_meta": {meta: other}}}, {**call, "_meta": {meta: True}}):
                answer = attacker.send("POST", "/mcp", rpc("tools/call", params, number))
                shown = json.dumps(answer.json)
                problems += [f"{meta}: a tier is shown"] if "traceroom/tier" in shown else []
                result = (answer.json or {}).get("result", {})
                is_other = result and result["_meta"].keys() != honest
                problems += [f"{meta}: the answer has {result['_meta'].keys()}"] if is_other else []
        problems += [f"the victim's journal has {hall().steps(other)} steps"] if hall().steps(other) else []
        problems += [] if hall().steps(own) else ["the attacker's own journal has none"]
    return Report(4 * len(METAS), (*problems, *hall().trouble()))


@pytest.mark.xdist_group(GROUP)
def test_a_call_is_of_its_own_session(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
