"""Half-sent heads and bodies, also trickled a byte at a time: the server closes them after its time limits."""

from __future__ import annotations

import contextlib
import socket
import time
from pathlib import Path

import pytest

from pipelines.serving.connections import BODY_S, HEAD_S
from tests.attacks.holding import KINDS, held, open_ones, trickle
from tests.attacks.report import Report, counted
from tests.attacks.servers import HttpClient, command
from tests.rooms import TASK, write_room

CONNECTIONS = 500


def still_open(sockets: dict[str, list[socket.socket]]) -> dict[str, list[socket.socket]]:
    """Return the connections of each kind that the server has not closed."""
    return {name: open_ones(each) for name, each in sockets.items()}


def attack(folder: Path, share: float) -> Report:
    """Hold connections of every kind at once, a third of them sending on, until the limits have passed twice over."""
    n_each = counted(CONNECTIONS, share, 15) // len(KINDS)
    with command("serve", write_room(folder / "hall"), "--task", TASK) as server, contextlib.ExitStack() as stack:
        sockets = {name: stack.enter_context(held(server, n_each, kind)) for name, kind in KINDS.items()}
        until = time.monotonic() + 2 * HEAD_S + BODY_S + 5
        while any((remaining := still_open(sockets)).values()) and time.monotonic() < until:
            for each in sockets.values():
                trickle(each[::3])
            time.sleep(0.5)
        problems = [f"{name}: {len(each)} of {n_each} are open still" for name, each in remaining.items() if each]
        with HttpClient(server) as client:
            problems += ["the server does not answer any more"] if client.health()["status"] != "ok" else []
    return Report(n_each * len(KINDS), tuple(problems))


@pytest.mark.slow
def test_half_sent_requests_are_closed(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
