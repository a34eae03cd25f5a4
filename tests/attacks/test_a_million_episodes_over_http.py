"""A million quick episodes of a server, some left open or cut off: its memory is flat, no handle stays, no journal is lost."""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path

import pytest

from tests.attacks.fast_motion import Holdings, Player
from tests.attacks.report import Report, counted
from tests.attacks.servers import PATIENCE_S, HttpClient, Server, command
from tests.rooms import TASK, write_room

EPISODES, ROUNDS, WARM_UP = 1_000_000, 20, 3_000
"""All episodes; rounds, after each of which the file of journals is moved away, as logs are; episodes before memory counts."""
IDLE_S = 1.0
MOST_GROWTH = 0.05
TOKENS = tuple(f"a token of client {number:02}" for number in range(20))


def rested(server: Server, token: str) -> Holdings:
    """Return what a server holds when nobody plays: all idle episodes have ended, all connections are closed."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        with HttpClient(server, Authorization=f"Bearer {token}") as client:
            if not client.health()["episodes"]:
                break
        time.sleep(0.2)
    time.sleep(2 * IDLE_S)
    return Holdings.of(server.process.pid)


def moved_away(journals: Path, number: int) -> int:
    """Rotate the file of journals; return its lines."""
    rotated = journals.with_name(f"journals.{number}.jsonl")
    journals.rename(rotated)
    time.sleep(0.05)   # a line that is being written
    n_lines = rotated.read_bytes().count(b"\n")
    rotated.unlink()
    return n_lines


def attack(folder: Path, share: float) -> Report:
    """Play episodes of all kinds over connections that stay open, with tokens that take turns and journals that are rotated."""
    n, journals, n_stored = counted(EPISODES, share, 4_000), folder / "journals.jsonl", 0
    with command("serve", write_room(folder / "hall"), "--task", TASK, "--journals", journals, "--idle", str(IDLE_S),
                 TRACEROOM_SERVE_TOKENS=",".join(TOKENS)) as server:
        player = Player(server, random.Random(27), TOKENS)
        asyncio.run(player.play(WARM_UP))
        before = rested(server, TOKENS[0])
        for number in range(ROUNDS):
            asyncio.run(player.play(n // ROUNDS))
            n_stored += moved_away(journals, number)
        after = rested(server, TOKENS[0])
        with HttpClient(server) as client:
            health = client.health()
    n_stored += journals.read_bytes().count(b"\n") if journals.exists() else 0
    growth, n_left = before.growth(after), before.n_left(after)
    problems = [f"memory grew by {growth:.1%}: {before.n_bytes:,} to {after.n_bytes:,}"] if growth > MOST_GROWTH else []
    problems += [f"{n_left} handles stay: {after.handles - before.handles}"] if n_left else []
    problems += [f"{player.n_bad} bad answers"] if player.n_bad else []
    problems += [f"{n_stored} journals of {player.n_journals} episodes"] if n_stored < player.n_journals else []
    problems += [f"{health}"] if health["episodes"] or health["lost"] or health["unstored"] else []
    return Report(player.n_episodes, tuple(problems), {"memory_growth": growth, "handles_left": float(n_left)})


@pytest.mark.slow
def test_many_episodes_over_http_leave_nothing_behind(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.004).problems == ()
