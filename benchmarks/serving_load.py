"""Load for a server: many sessions over few connections, each step of all sessions before the next, with as little client
as can be: requests are made up before the clock starts, answers are cut out by their length.

Over HTTP/1.1 with keep-alive, and over WebSocket (RFC 6455, text frames without extensions).
"""

from __future__ import annotations

import asyncio
import base64
import os
import struct
import time
from collections.abc import Sequence

CONNECTIONS = 32


class Http:
    """One connection that sends a request when the answer to the last has come."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, port: int) -> Http:
        """To a server on this machine."""
        return cls(*await asyncio.open_connection("127.0.0.1", port, limit=2**24))

    async def ask(self, request: bytes) -> tuple[int, bytes, bytes]:
        """Status, head and body of the answer."""
        self._writer.write(request)
        head = (await self._reader.readuntil(b"\r\n\r\n"))
        lower = head.lower()
        size = int(lower.partition(b"content-length:")[2].partition(b"\r")[0] or 0)
        return int(head[9:12]), head, await self._reader.readexactly(size) if size else b""

    def close(self) -> None:
        """End it."""
        self._writer.close()


class WebSocket:
    """One connection to a WebSocket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    @classmethod
    async def open(cls, port: int, path: str) -> WebSocket:
        """Shake hands."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**24)
        key = base64.b64encode(os.urandom(16)).decode()
        writer.write((f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                      f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n").encode())
        head = await reader.readuntil(b"\r\n\r\n")
        if b" 101 " not in head[:20]:
            raise OSError(head.decode(errors="replace"))
        return cls(reader, writer)

    async def ask(self, frame: bytes) -> bytes:
        """Return the next text that comes after this frame (`frame_of`)."""
        self._writer.write(frame)
        while True:
            first, second = await self._reader.readexactly(2)
            size = second & 127
            if size > 125:
                size = struct.unpack(">H" if size == 126 else ">Q", await self._reader.readexactly(2 if size == 126 else 8))[0]
            data = await self._reader.readexactly(size) if size else b""
            if first & 15 == 1:
                return data
            if first & 15 == 8:
                raise OSError("the server closed the connection")

    def close(self) -> None:
        """End it."""
        self._writer.close()


def frame_of(text: str) -> bytes:
    """Return a masked text frame; the mask is zero, which the protocol does not forbid and costs a client nothing."""
    data = text.encode()
    size = len(data)
    head = bytes([0x81, 0x80 | size]) if size < 126 else (
        struct.pack(">BBH", 0x81, 0xFE, size) if size < 65536 else struct.pack(">BBQ", 0x81, 0xFF, size))
    return head + b"\0\0\0\0" + data


async def timed(connections: Sequence[Http | WebSocket], requests: Sequence[Sequence[bytes]]) -> tuple[float, list[float]]:
    """Seconds of all, and of each; `requests`: for each connection what it asks, in order. An HTTP error stops it."""
    took: list[float] = []

    async def ask(connection: Http | WebSocket, mine: Sequence[bytes]) -> None:
        for request in mine:
            began = time.perf_counter()
            answer = await connection.ask(request)
            took.append(time.perf_counter() - began)
            if isinstance(answer, tuple) and answer[0] >= 300:
                raise SystemExit(f"the server answers {answer[0]}: {answer[2][:300]!r}")

    began = time.perf_counter()
    await asyncio.gather(*(ask(*pair) for pair in zip(connections, requests, strict=True)))
    return time.perf_counter() - began, took
