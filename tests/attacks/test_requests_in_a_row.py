"""Hundreds of requests in one breath, of several sessions, without waiting: each gets its own answer, in order, and its own
session's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.attacks.halls import GROUP, hall, spoken
from tests.attacks.report import Report, counted
from tests.attacks.servers import PATIENCE_S

REQUESTS = 5_000


def attack(folder: Path, share: float) -> Report:
    """Send requests of two sessions in turn over one connection, as one write."""
    server, n = hall().server, counted(REQUESTS, share, 60)
    with hall().agent() as one, hall().agent() as other:
        names = [one.headers["Mcp-Session-Id"], other.headers["Mcp-Session-Id"]]
        data = b""
        for number in range(n):
            body = json.dumps(
                {
                    "jsonrpc": "2.0",
                    "id": number,
                    "method": "tools/call",
                    "params": {"name": "read_sign", "arguments": {"at": "gate"}},
                }
                if number % 7 == 0
                else {"jsonrpc": "2.0", "id": number, "method": "ping"}
            )
            data += (
                f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Type: application/json\r\n"
                f"Mcp-Session-Id: {names[number % 2]}\r\n"
                f"{'Connection: close' if number == n - 1 else 'X-Number: ' + str(number)}\r\n"
                f"Content-Length: {len(body)}\r\n\r\n{body}"
            ).encode()
        answers = spoken(server, data, PATIENCE_S)   # until the server closes the connection, after the last
        steps = [hall().steps(name) for name in names]
    ids = [
        json.loads(part.partition(b"\r\n\r\n")[2].partition(b"HTTP/1.1")[0] or b"{}").get("id")
        for part in answers.split(b"HTTP/1.1 ")[1:]
    ]
    problems = [] if ids == list(range(n)) else [f"{len(ids)} answers of {n}, of {ids[:10]}"]
    expected = [sum(number % 7 == 0 and number % 2 == side for number in range(n)) for side in range(2)]
    problems += [] if steps == [min(each, 5) for each in expected] else [f"steps {steps} of {expected} calls"]
    return Report(n, (*problems, *hall().trouble()))


@pytest.mark.xdist_group(GROUP)
def test_each_request_has_its_answer(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
