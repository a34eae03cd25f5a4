"""Fuzzed HTTP requests: sent over kept connections, and what of the answers is bad."""

from __future__ import annotations

import contextlib
import socket
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from tests.attacks.fuzz import Fuzz
from tests.attacks.servers import PATIENCE_S, Server

WAITING = (503, 507)
"""Statuses by which a server says that it cannot now, on purpose."""
METHODS = (b"POST", b"POST", b"POST", b"GET", b"DELETE", b"PUT", b"HEAD", b"OPTIONS", b"PATCH", b"post")


class FuzzedRequest(NamedTuple):
    """A request, as bytes after its request line."""

    method: bytes
    path: bytes
    headers: tuple[tuple[bytes, bytes], ...]
    body: bytes = b""

    def written(self, host: bytes) -> bytes:
        """Return it as it goes over the wire."""
        names = {name.lower() for name, _ in self.headers}
        headers = [*self.headers]
        headers += [] if b"host" in names else [(b"Host", host)]
        headers += [(b"Content-Length", b"%d" % len(self.body))] if b"content-length" not in names else []
        return b"%s %s HTTP/1.1\r\n%s\r\n%s" % (
            self.method, self.path, b"".join(b"%s: %s\r\n" % pair for pair in headers), self.body)


class RawClient:
    """A connection that sends requests as they are, and reads an answer to each."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._stream: socket.socket | None = None
        self._rest = b""

    def send(self, request: FuzzedRequest) -> tuple[int, dict[str, str], bytes]:
        """Return status, headers and body; status 0 where the server closed the connection without an answer."""
        data = request.written(f"{self._server.host}:{self._server.port}".encode())
        for _ in range(2):  # an idle connection may be closed by now
            was_open = self._stream is not None
            try:
                answer = self._exchange(data, request.method == b"HEAD")
            except OSError:
                self.close()
                answer = (0, {}, b"")
            if answer[0] or not was_open:
                return answer
        return answer

    def close(self) -> None:
        """Close the connection."""
        if self._stream is not None:
            self._stream.close()
        self._stream, self._rest = None, b""

    def _exchange(self, data: bytes, is_head: bool) -> tuple[int, dict[str, str], bytes]:
        if self._stream is None:
            self._stream = socket.create_connection((self._server.host, self._server.port), timeout=PATIENCE_S)
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it may answer before all is sent
            self._stream.sendall(data)
        if not self._fill(lambda: b"\r\n\r\n" in self._rest):
            self.close()
            return 0, {}, b""
        head, _, self._rest = self._rest.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        length = 0 if is_head or first.split()[1] in ("204", "304") else int(headers.get("content-length", "-1"))
        if length < 0 and headers.get("transfer-encoding") == "chunked":
            self._fill(lambda: self._rest.endswith(b"0\r\n\r\n"))
            body, self._rest = self._rest, b""
        else:
            self._fill(lambda: 0 <= length <= len(self._rest))
            body, self._rest = self._rest[:max(0, length)], self._rest[max(0, length):]
        if headers.get("connection") == "close" or length < 0 or self._rest:
            self.close()
        return int(first.split()[1]), headers, body

    def _fill(self, is_enough: Callable[[], bool]) -> bool:
        assert self._stream is not None
        while not is_enough():
            data = self._stream.recv(65536)
            if not data:
                return is_enough()
            self._rest += data
        return True


class Tally:
    """What was bad about the answers."""

    def __init__(self) -> None:
        self.n_sent = self.n_bad = 0
        self.examples: dict[str, str] = {}
        self.statuses: Counter[int] = Counter()

    def send(self, client: RawClient, request: FuzzedRequest, server: Server) -> tuple[int, dict[str, str], bytes]:
        """Send a request and judge its answer."""
        answer = status, headers, body = client.send(request)
        self.n_sent += 1
        self.statuses[status] += 1
        is_waiting = status in WAITING and ("retry-after" in headers or status == 507)
        if server.process.poll() is not None:
            self.note("the server is gone", request, body)
        elif status == 0:
            self.note("no answer", request, body)
        elif status >= 500 and not is_waiting:
            self.note(f"status {status}", request, body)
        return answer

    def note(self, what: str, request: FuzzedRequest | None = None, body: bytes = b"") -> None:
        """Count something bad, with an example of its kind."""
        self.n_bad += 1
        shown = "" if request is None else f": {request.method!r} {request.path!r} {request.headers!r} {request.body[:300]!r}"
        self.examples.setdefault(what, f"{what}{shown[:900]} -> {body[:300]!r}")


def fuzzed_headers(fuzz: Fuzz, usual: dict[bytes, bytes]) -> tuple[tuple[bytes, bytes], ...]:
    """Return headers: the usual ones, some dropped or replaced by hostile values."""
    headers = []
    for name, value in usual.items():
        damage = fuzz.random()
        if damage < 0.03:
            continue
        headers.append((name, header_text(fuzz) if damage < 0.06 else value))
    return tuple(headers)


def header_text(fuzz: Fuzz) -> bytes:
    """Return a value that may stand in a header."""
    return bytes(byte for byte in fuzz.text().encode("utf-8", "surrogatepass")[:500] if byte >= 32 and byte != 127)


def path_text(fuzz: Fuzz) -> bytes:
    """Return a text that may stand in a request line."""
    text = fuzz.text().encode("utf-8", "surrogatepass")[:200]
    return b"".join(b"%%%02X" % byte if fuzz.random() < 0.5 or not 33 <= byte < 127 else bytes([byte]) for byte in text)
