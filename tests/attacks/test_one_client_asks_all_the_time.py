"""One client has a thousand requests wait: another one's is answered as if it were nearly alone."""

from __future__ import annotations

import asyncio
import statistics
import time
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.attacks.report import Report, counted
from tests.attacks.servers import HELLO, PATIENCE_S, HttpClient, Server, command
from tests.rooms import write_room

SESSIONS = 250
AT_ONCE = 4
"""Requests of each session that wait at a time."""
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "read_sign", "arguments": {"at": "gate"}}}


async def _flood(url: str, n_sessions: int, until: asyncio.Event) -> int:
    """Keep requests of each session waiting; return how many were answered with an error of the server's."""
    limits, n_failed = httpx2.Limits(max_connections=n_sessions * AT_ONCE), 0
    async with httpx2.AsyncClient(timeout=PATIENCE_S, limits=limits, headers={"Accept": "application/json"}) as http:
        async def ask(session: str) -> None:
            nonlocal n_failed
            while not until.is_set():
                status = (await http.post(url, json=CALL, headers={"Mcp-Session-Id": session})).status_code
                n_failed += status >= 500 and status != 503

        opened = [(await http.post(url, json=HELLO)).headers["mcp-session-id"] for _ in range(n_sessions)]
        await asyncio.gather(*(ask(session) for session in opened for _ in range(AT_ONCE)))
    return n_failed


def _times(server: Server, n: int) -> list[float]:
    times = []
    with HttpClient(server, source="127.0.0.2") as client:
        client.open_session()
        for _ in range(n):
            begun = time.monotonic()
            assert client.call("read_sign", '{"at": "gate"}').status == 200
            times.append(time.monotonic() - begun)
    return times


async def _both(server: Server, n_sessions: int, n: int) -> tuple[list[float], int]:
    until = asyncio.Event()
    flood: Any = asyncio.create_task(_flood(f"http://{server.host}:{server.port}/mcp", n_sessions, until))
    await asyncio.sleep(2)
    times = await asyncio.to_thread(_times, server, n)
    until.set()
    return times, await flood


def attack(folder: Path, share: float) -> Report:
    """Flood by one address, ask by another."""
    n_sessions, problems = counted(SESSIONS, share, 20), []
    with command("serve", write_room(folder / "hall"), "--episodes", "2048") as server:
        times, n_failed = asyncio.run(_both(server, n_sessions, 30))
    problems += [f"{n_failed} requests of the flood gave 5xx"] if n_failed else []
    median = statistics.median(times)
    problems += [f"an honest request takes {median:.2f} s"] if median > 2 else []
    return Report(n_sessions * AT_ONCE, tuple(problems), {"honest_median_s": round(median, 3)})


@pytest.mark.slow
def test_a_flood_of_one_client_does_not_delay_another(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.05).problems == ()
