"""Connections that would become others: WebSockets, HTTP/2 with and without notice, tunnels, TLS, other protocols; none is
opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attacks.halls import GROUP, hall, spoken
from tests.attacks.report import Report


def attack(folder: Path, share: float) -> Report:
    """Ask for each upgrade at each path, then speak protocols that are none of HTTP."""
    server, problems, n_tried = hall().server, [], 0
    host = f"Host: 127.0.0.1:{server.port}\r\n"
    key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    for path in ("/mcp", "/episode", "/grade", "/", "/health"):
        for name, head in (
            ("websocket", f"Connection: Upgrade\r\nUpgrade: websocket\r\n{key}"),
            ("h2c", "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQ\r\n"),
            ("tls", "Connection: Upgrade\r\nUpgrade: TLS/1.0\r\n"),
            ("both", f"Connection: keep-alive, Upgrade\r\nUpgrade: h2c, websocket\r\n{key}"),
        ):
            n_tried += 1
            answer = spoken(server, f"GET {path} HTTP/1.1\r\n{host}{head}\r\n".encode(), 0.3)
            problems += [f"{name} at {path}: {answer[:60]!r}"] if b" 101 " in answer[:20] else []
    raw = (
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"SSH-2.0-x\r\n",
        b"\x05\x01\x00",
        b"*1\r\n$4\r\nPING\r\n",
        b"GET / HTTP/0.9\r\n\r\n",
        b"GET /health HTTP/9.9\r\n" + host.encode() + b"\r\n",
        b"\0" * 5_000,
        b"GET\r\n\r\n",
        b"\r\n" * 2_000,
        b"EHLO x\r\n",
    )
    for data in raw:
        n_tried += 1
        answer = spoken(server, data, 0.3)
        problems += (
            [f"{data[:20]!r}: {answer[:60]!r}"] if b" 200 " in answer[:20] and not data.startswith(b"GET /health") else []
        )
        problems += (
            [f"{data[:20]!r}: another protocol is spoken: {answer[:40]!r}"]
            if answer and not answer.startswith(b"HTTP/1.")
            else []
        )
    return Report(n_tried, (*problems, *hall().trouble()))


@pytest.mark.slow
@pytest.mark.xdist_group(GROUP)
def test_a_connection_stays_what_it_is(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
