"""One client has a thousand requests wait: another one's is answered as if it were nearly alone."""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import httpx2
import pytest

from tests.attacks.report import Report, counted
from tests.attacks.servers import HELLO, PATIENCE_S, HttpClient, Server, command
from tests.conftest import ROOT
from tests.rooms import write_room

SESSIONS = 250
SETTLE_S = 3.0
REQUESTS, PAUSE_S = 100, 0.03
"""Of the honest client, and seconds between them."""
MOST_TIMES = 20
"""What a request may take, of what it takes without the flood: nearly a thousand others wait meanwhile."""
AT_ONCE = 4
"""Requests of each session that wait at a time."""
CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "read_sign", "arguments": {"at": "gate"}}}


class Flood:
    """Sessions of one client, each with requests that wait all the time."""

    def __init__(self, url: str, n_sessions: int) -> None:
        self._url, self._n_sessions = url, n_sessions
        self.is_running, self.is_over = asyncio.Event(), asyncio.Event()
        self.n_answered = self.n_failed = 0

    async def run(self) -> None:
        """Flood until it is over."""
        limits = httpx2.Limits(max_connections=self._n_sessions * AT_ONCE)
        async with httpx2.AsyncClient(timeout=PATIENCE_S, limits=limits, headers={"Accept": "application/json"}) as http:
            opened = [(await http.post(self._url, json=HELLO)).headers["mcp-session-id"] for _ in range(self._n_sessions)]
            self.is_running.set()
            await asyncio.gather(*(self._ask(http, session) for session in opened for _ in range(AT_ONCE)))

    async def _ask(self, http: httpx2.AsyncClient, session: str) -> None:
        while not self.is_over.is_set():
            try:
                status = (await http.post(self._url, json=CALL, headers={"Mcp-Session-Id": session})).status_code
            except httpx2.TransportError:  # on a machine that pauses, an idle connection may be closed by now
                continue
            self.n_answered += 1
            self.n_failed += status >= 500 and status != 503


def _times(server: Server, n: int) -> list[float]:
    times = []
    with HttpClient(server, source="127.0.0.2") as client:
        client.open_session()
        for _ in range(n):
            begun = time.monotonic()
            assert client.call("read_sign", '{"at": "gate"}').status == 200
            times.append(time.monotonic() - begun)
            time.sleep(PAUSE_S)
    return times


async def _until_told(url: str, n_sessions: int) -> None:
    """Flood until a line comes on stdin; say on stdout when it begins, and then its answers and failures."""
    flood = Flood(url, n_sessions)
    running = asyncio.create_task(flood.run())
    await flood.is_running.wait()
    print("running", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    before = flood.n_answered
    print("measured", flush=True)
    await asyncio.to_thread(sys.stdin.readline)
    n_answered = flood.n_answered - before
    flood.is_over.set()
    await running
    print(json.dumps([n_answered, flood.n_failed]), flush=True)


def attack(folder: Path, share: float) -> Report:
    """Flood by one address from a process of its own, ask by another."""
    n_sessions, problems = counted(SESSIONS, share, 20), []
    with command("serve", write_room(folder / "hall"), "--episodes", "2048") as server:
        alone = statistics.median(_times(server, REQUESTS))
        url = f"http://{server.host}:{server.port}/mcp"
        flooding = [sys.executable, "-m", f"tests.attacks.{Path(__file__).stem}", url, str(n_sessions)]
        with subprocess.Popen(flooding, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as flood:
            assert flood.stdin is not None and flood.stdout is not None and flood.stdout.readline() == "running\n"
            time.sleep(SETTLE_S)  # until all its connections are open
            flood.stdin.write("now\n")
            flood.stdin.flush()
            flood.stdout.readline()
            times = _times(server, REQUESTS)
            flood.stdin.write("stop\n")
            flood.stdin.close()
            n_answered, n_failed = json.loads(flood.stdout.readline())
    problems += [f"{n_failed} requests of the flood gave 5xx"] if n_failed else []
    problems += [f"the flood had {n_answered} answers meanwhile"] if n_answered < REQUESTS else []
    median = statistics.median(times)
    most = max(1.0, MOST_TIMES * alone)   # on a machine that is busy with others, all requests take longer
    problems += [f"an honest request takes {median:.2f} s, alone {alone:.2f} s"] if median > most else []
    return Report(n_answered, tuple(problems), {"honest_median_s": round(median, 4)})


@pytest.mark.slow
def test_a_flood_of_one_client_does_not_delay_another(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.05).problems == ()


if __name__ == "__main__":
    asyncio.run(_until_told(sys.argv[1], int(sys.argv[2])))
