"""Bodies that are packed, endless, or slower than any reader: they are refused unread, and others are served meanwhile."""

from __future__ import annotations

import gzip
import socket
import time
import zlib
from pathlib import Path

import pytest

from tests.attacks.halls import GROUP, hall, rpc, spoken
from tests.attacks.report import Report


def attack(folder: Path, share: float) -> Report:
    """Send bombs under every coding, chunks without end, and expectations that nobody fulfils."""
    server, problems = hall().server, []
    host = f"Host: 127.0.0.1:{server.port}\r\nContent-Type: application/json\r\n"
    bomb = gzip.compress(b" " * (200 << 20))
    with hall().agent() as agent:
        for coding, body in (
            ("gzip", bomb),
            ("deflate", zlib.compress(b" " * (64 << 20))),
            ("br", bomb),
            ("zstd", bomb),
            ("gzip, gzip", bomb),
        ):
            answer = agent.send("POST", "/mcp", body, **{"Content-Encoding": coding})
            problems += [f"{coding}: {answer.status}"] if answer.status not in (400, 413, 415) else []
        answer = agent.send("POST", "/mcp", rpc("ping") + " " * (5 << 20))
        problems += [f"a long body: {answer.status}"] if answer.status not in (400, 413) else []
    with socket.create_connection((server.host, server.port), timeout=30) as stream:
        stream.sendall(f"POST /mcp HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\n".encode())
        sent = 0
        try:
            for _ in range(64):
                stream.sendall(b"100000\r\n" + b" " * (1 << 20) + b"\r\n")
                sent += 1
        except OSError:
            pass
        problems += [f"{sent} MB of one body were taken"] if sent >= 64 else []
    begun = time.monotonic()
    answer_bytes = spoken(
        server, f"POST /mcp HTTP/1.1\r\n{host}Expect: 100-continue\r\nContent-Length: 99999999999\r\n\r\n".encode(), 1
    )
    problems += (
        [f"it waits for {answer_bytes[:60]!r}"] if b" 200 " in answer_bytes[:20] or time.monotonic() - begun > 30 else []
    )
    heads = {
        "many headers": "".join(f"X-{n}: y\r\n" for n in range(100_000)),
        "a long header": f"X: {'y' * (8 << 20)}\r\n",
        "a long name": f"{'x' * (1 << 20)}: y\r\n",
    }
    for name, head in heads.items():
        answer_bytes = spoken(server, f"GET /health HTTP/1.1\r\n{host}{head}\r\n".encode(), 1)
        problems += [f"{name}: {answer_bytes[:40]!r}"] if b" 200 " in answer_bytes[:20] else []
    return Report(11, (*problems, *hall().trouble()))


@pytest.mark.slow
@pytest.mark.xdist_group(GROUP)
def test_a_body_without_end_is_refused(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
