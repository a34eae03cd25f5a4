"""Guesses of the grader's token, in every place and spelling; an agent's session is no grader, and a grade changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attacks.halls import GRADER, GROUP, SOLVED, hall, is_refused, rpc
from tests.attacks.report import Report

GUESSES = ("", GRADER[:-1], GRADER + "x", GRADER.upper(), f" {GRADER}", f"{GRADER},{GRADER}", "\xff" + GRADER, "null",
    "undefined", "*")


def attack(folder: Path, share: float) -> Report:
    """Ask for rewards without the token, then twice with it."""
    problems, body = [], rpc("tools/call", {"name": "episodes", "arguments": {}})
    with hall().agent() as agent:
        session = agent.headers["Mcp-Session-Id"]
        for guess in GUESSES:
            answer = agent.send("POST", "/grade", body, Authorization=f"Bearer {guess}")
            problems += [f"{guess!r}: {answer.body[:60]!r}"] if not is_refused(answer) and guess.strip() != GRADER else []
        for kind in ("Basic", "Token", "bearer\t", "Digest"):
            answer = agent.send("POST", "/grade", body, Authorization=f"{kind} {GRADER}")
            problems += [f"{kind}: {answer.body[:60]!r}"] if not is_refused(answer) else []
        for path, headers in ((f"/grade?token={GRADER}", {}), ("/grade", {"Cookie": f"token={GRADER}"}), ("/grade",
            {"X-Token": GRADER}),
                              (f"/grade?access_token={GRADER}", {"Authorization": ""})):
            answer = agent.send("POST", path, body, **headers)
            problems += [f"{path} {headers}: {answer.body[:60]!r}"] if not is_refused(answer) else []
        for method in ("grade", "episodes"):
            answer = agent.send("POST", "/mcp", rpc("tools/call", {"name": method, "arguments": {"episode": session}}))
            problems += [f"an agent's {method}: {answer.body[:80]!r}"] if b'"reward"' in answer.body else []
        agent.call(*SOLVED[0])
        rewards = [hall().grade(session)["reward"] for _ in range(3)]
        agent.send("DELETE", "/mcp")
        rewards.append(hall().grade(session)["reward"])
        problems += [] if rewards == [1.0] * 4 else [f"one episode has rewards {rewards}"]
    return Report(len(GUESSES) + 13, (*problems, *hall().trouble()))


@pytest.mark.xdist_group(GROUP)
def test_only_the_graders_token_grades(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
