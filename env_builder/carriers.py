"""What carries bytes to and from a room: a socket that is connected, a process of this user.

In: bytes of requests. Out: bytes of answers, as they come; `room.py` and `channel.py` make lines of them. A container is
another carrier (`image/containers.py`). Imports the standard library, and of ours what does too.
"""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from warehouse.errors import Unavailable

ANSWER_S = 60.0
"""Seconds that an answer may take before the room counts as gone."""


class Carrier(Protocol):
    """Carries bytes to and from a room."""

    @property
    def socket(self) -> socket.socket:
        """What it reads and writes, for who waits for it otherwise than by `receive`."""

    def unframed(self, data: bytes) -> bytes:
        """The room's own words among bytes that were read from the socket, in order."""

    def send(self, data: bytes) -> None:
        """Write all of it; OSError where the other end is gone."""

    def receive(self, timeout_s: float) -> bytes:
        """Some bytes; empty at the end; TimeoutError after `timeout_s`."""

    def last_words(self) -> str:
        """What the room said on stderr at the end, for an error message."""

    def close(self) -> None:
        """End the room; twice is once."""


class Frames:
    """Bytes of an attached container, as the engine frames them: 8 bytes before each piece, which stream and how long."""

    def __init__(self) -> None:
        self._rest = b""

    def split(self, data: bytes) -> tuple[bytes, bytes]:
        """(stdout, stderr) of what is whole now."""
        rest, at, streams = self._rest + data, 0, ([], [])  # type: bytes, int, tuple[list[bytes], list[bytes]]
        while len(rest) >= (begin := at + 8) and len(rest) >= (end := begin + int.from_bytes(rest[at + 4:begin], "big")):
            streams[rest[at] != 1].append(rest[begin:end])
            at = end
        self._rest = rest[at:]
        return b"".join(streams[0]), b"".join(streams[1])


class Connection:
    """Carries bytes over a socket that is connected; the room behind it is ended elsewhere, if at all.

    `framed`: it is that of a container.
    """

    def __init__(self, stream: socket.socket, framed: bool = False) -> None:
        self.socket = stream
        self._frames = Frames() if framed else None

    @classmethod
    def to(cls, path: Path) -> Connection:
        """To a room that listens at a Unix socket; Unavailable where none does."""
        stream = socket.socket(socket.AF_UNIX)
        try:
            stream.connect(str(path))
        except OSError as error:
            stream.close()
            raise Unavailable(f"no room listens there ({error.strerror})", str(path), "start it with --socket") from error
        return cls(stream)

    def send(self, data: bytes) -> None:
        """Write all of it."""
        self.socket.settimeout(ANSWER_S)
        self.socket.sendall(data)

    def receive(self, timeout_s: float) -> bytes:
        """Some bytes of what the room says."""
        self.socket.settimeout(timeout_s)
        try:
            return self.socket.recv(65536)
        except TimeoutError as error:
            raise TimeoutError(f"no answer within {timeout_s:.0f} s") from error

    def unframed(self, data: bytes) -> bytes:
        """All of it, but for what is around it."""
        return data if self._frames is None else self._frames.split(data)[0]

    def last_words(self) -> str:
        """None: it says them elsewhere."""
        return ""

    def close(self) -> None:
        """End the connection."""
        self.socket.close()


class Process(Connection):
    """A room as a process of this user."""

    def __init__(self, command: list[str], environment: Mapping[str, str] | None = None) -> None:
        own, its = socket.socketpair()
        super().__init__(own)
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  it is as long open as the room
        with its:
            end = its.fileno()
            self._process = subprocess.Popen(command, stdin=end, stdout=end, stderr=self._said, env=environment or {})

    @property
    def process_id(self) -> int:
        """Of the process."""
        return self._process.pid

    def last_words(self) -> str:
        """Last line on stderr, waiting a moment for a room that is ending."""
        if self._said.closed:
            return ""
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            return ""
        self._said.seek(max(0, self._said.seek(0, os.SEEK_END) - 4096))
        said = self._said.read().decode(errors="replace").strip().splitlines()
        return said[-1] if said else f"exit code {self._process.returncode}"

    def close(self) -> None:
        """Close its stdin, and end it where that does not."""
        super().close()
        try:
            self._process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._said.close()
