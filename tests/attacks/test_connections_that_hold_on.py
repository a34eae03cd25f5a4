"""Hostile connections of every kind hold on while honest clients play: these are served, and as fast as before."""

from __future__ import annotations

import resource
import time
from pathlib import Path

import pytest

from tests.attacks.holding import KINDS, Trickling, held, honest, open_ones
from tests.attacks.report import Report, counted
from tests.attacks.servers import command
from tests.rooms import TASK, write_room

CONNECTIONS = 2000
SESSIONS, CALLS = 50, 20
SETTLE_S = 2.0


def attack(folder: Path, share: float) -> Report:
    """Play without and with the connections; each kind is a fifth of them, and some of each send a byte now and then."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, CONNECTIONS + 512)), hard))
    problems, n_each = [], counted(CONNECTIONS, share, 10) // len(KINDS)
    n_sessions = counted(SESSIONS, share, 10)
    with command("serve", write_room(folder / "hall"), "--task", TASK) as server:
        honest(server, n_sessions, CALLS)
        alone = honest(server, n_sessions, CALLS)
        sockets = []
        holding = [held(server, n_each, kind) for kind in KINDS.values()]
        try:
            for each in holding:
                sockets += each.__enter__()
            time.sleep(SETTLE_S)  # all hold on; the first of them are closed after `HEAD_S`
            slow = Trickling(sockets[::7])
            among = honest(server, n_sessions, CALLS, slow.send)
            n_open = len(open_ones(sockets))
        finally:
            for each in holding:
                each.__exit__(None, None, None)
        time.sleep(SETTLE_S)
        after = honest(server, n_sessions, CALLS)
    ratio = 2 * among.seconds / (alone.seconds + after.seconds)
    problems += [f"{n_open} of {len(sockets)} held on to the end"] if share == 1 and n_open < len(sockets) / 2 else []
    problems += [f"{among.share:.3f} of the honest requests were served"] if among.share < 0.99 else []
    problems += [f"they took {ratio:.2f} times as long"] if ratio > 2 else []
    figures = {"honest_served": round(among.share, 4), "honest_time_ratio": round(ratio, 2)}
    return Report(n_each * len(KINDS), tuple(problems), figures)


@pytest.mark.slow
def test_honest_clients_are_served_while_hostile_connections_hold_on(tmp_path: Path) -> None:
    report = attack(tmp_path, 0.05)
    assert report.figures["honest_served"] >= 0.99, report
