"""Ids of requests that are giant, no ids at all, or another's: each answer has its request's own, or is an error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.attacks.halls import GROUP, hall
from tests.attacks.report import Report

IDS = ("1", "-1", "1.5", "1e400", "9" * 400, "9" * 5_000, '""', json.dumps("x" * 900_000), "null", "true", "[]", "{}",
    '{"a": 1}', "[[1]]",
       '"\\ud800"', '"\\u0000"', "NaN", "Infinity", "0", "1e5", '"1"', "18446744073709551616")


def attack(folder: Path, share: float) -> Report:
    """Ask under each id, twice in one message too, and after it what an honest client asks."""
    problems = []
    with hall().agent() as agent:
        for identity in IDS:
            for body in (f'{{"jsonrpc": "2.0", "id": {identity}, "method": "ping"}}',
                         f'{{"jsonrpc": "2.0", "id": 1, "id": {identity}, "method": "tools/list"}}'):
                answer = agent.send("POST", "/mcp", body)
                problems += [f"{identity[:30]}: {answer.status}"] if answer.status not in (200, 202, 400) else []
                if answer.status == 200 and "result" in (answer.json or {}):
                    same = json.dumps(answer.json["id"]) == json.dumps(json.loads(identity)).replace(r"\ud800", r"\ufffd")
                    problems += [] if same else [f"{identity[:30]} comes back as {json.dumps(answer.json['id'])[:60]}"]
            honest = agent.send("POST", "/mcp", '{"jsonrpc": "2.0", "id": "mine", "method": "ping"}')
            problems += [] if honest.json == {"jsonrpc": "2.0", "id": "mine",
                "result": {}} else [f"after {identity[:30]}: {honest}"]
    return Report(3 * len(IDS), (*problems, *hall().trouble()))


@pytest.mark.xdist_group(GROUP)
def test_each_answer_has_its_own_id(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
