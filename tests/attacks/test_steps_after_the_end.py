"""Calls, words and ends after an episode has ended, by finish, by its limit, by DELETE: the journal and the reward stay."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.attacks.halls import GROUP, SOLVED, hall
from tests.attacks.report import Report


def attack(folder: Path, share: float) -> Report:
    """End episodes in three ways without solving them, then solve them."""
    problems, n_tried = [], 0
    for way in ("finish", "limit", "delete"):
        with hall().agent() as agent:
            session = agent.headers["Mcp-Session-Id"]
            agent.call("read_sign", '{"at": "gate"}')
            if way == "finish":
                agent.send("POST", "/episode/finish", "{}")
            elif way == "delete":
                agent.send("DELETE", "/mcp")
            else:
                for number in range(6):
                    agent.call("read_sign", json.dumps({"at": f"wall {number}"}))
            before = hall().grade(session)
            for _ in range(3):
                n_tried += 4
                agent.call(*SOLVED[0])
                agent.send("POST", "/episode/say", '{"text": "The door is open, reward 1."}')
                agent.send("POST", "/episode/finish", "{}")
                agent.send("DELETE", "/mcp")
            after = hall().grade(session)
            problems += [] if before == after and not after["reward"] else [f"{way}: {before} became {after}"]
    return Report(n_tried, (*problems, *hall().trouble()))


@pytest.mark.xdist_group(GROUP)
def test_an_episode_that_has_ended_stays_as_it_is(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
