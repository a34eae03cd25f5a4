"""Serve a site's port over HTTP on loopback, as the proxy of a browser that can then reach nothing else.

In: a `SitePort`, an origin, recorded static files. Out: pages rendered from trees, redirects, downloads, and a journal of what
was asked for: the same requests that a browser without a window makes. A browser that uses the server as its proxy sees the
site under its own address; every other host, and everything encrypted, is refused here. Asks the port for what a person
navigates to; other requests (images, scripts, their calls) are answered from the recorded files alone, else 404; frames are not
loaded, as in a browser without a window.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from email import message_from_bytes
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, quote, urlsplit

from env_builder.runtime.site.addresses import resolve
from env_builder.runtime.site.browser import Deliver
from env_builder.runtime.site.port import PortAnswer, PortRequest, SitePort
from env_builder.runtime.site.trees import render

StaticFile = tuple[str, bytes]
"""Media type and bytes."""
_MOST_BYTES = 64 << 20
_EMPTY = b"<!DOCTYPE html><html><head></head><body></body></html>"


class LoopbackSite:
    """A server on loopback in front of a port; close it after use."""

    def __init__(self, origin: str, files: Mapping[str, StaticFile] | None = None) -> None:
        """`files`: recorded static files by path. The port is set with `serve`."""
        address = resolve(origin, "/")
        if address is None:
            raise ValueError(f"invalid origin {origin!r} (expected http://HOST or https://HOST)")
        self.host = address.host
        self.origin = f"http://{self.host}"
        """Browsers reach the site under http, whatever it was recorded under."""
        self.files = dict(files or {})
        self.journal: list[PortRequest] = []
        self.tiers: list[str] = []
        """Of the answers, in the journal's order."""
        self.downloads: list[str] = []
        """What was downloaded, as sentences."""
        self._port: SitePort | None = None
        self._deliver: Deliver | None = None
        self._lock = threading.Lock()
        self._server = _LoopbackServer(("127.0.0.1", 0), _handler(self))
        self.proxy = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def serve(self, port: SitePort, deliver: Deliver | None = None) -> None:
        """Answer from this port from now on, with an empty journal."""
        with self._lock:
            self._port, self._deliver = port, deliver
            self.journal, self.tiers, self.downloads = [], [], []

    def ask(self, request: PortRequest) -> PortAnswer:
        """Ask the port, one request at a time, and write it down."""
        with self._lock:
            self.journal.append(request)
            if self._port is None:
                return PortAnswer(503, "unknown")
            answer = self._port.ask(request)
            self.tiers.append(answer.tier)
            if answer.file is not None:
                where = self._deliver(answer.file, self.origin + request.url) if self._deliver is not None else None
                self.downloads.append(f"Downloaded file {answer.file.name}" + (f' to "{where}"' if where else ""))
            return answer

    def own_scheme(self, text: str) -> str:
        """Return a text with the site's own addresses under the scheme that is served."""
        return text.replace(f"https://{self.host}", self.origin)

    def close(self) -> None:
        """Stop the server."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class _LoopbackServer(ThreadingHTTPServer):
    """A server whose clients may go away before they have their answer."""

    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print an error, unless a connection broke."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)


def _handler(site: LoopbackSite) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._respond(None)

        def do_POST(self) -> None:
            length = self.headers.get("Content-Length", "0")
            if not length.isdigit() or int(length) > _MOST_BYTES:
                self._send(413, [], b"")
                return
            self._respond(posted_form(self.headers.get("Content-Type", ""), self.rfile.read(int(length))))

        def do_CONNECT(self) -> None:
            self._send(403, [], b"")

        def log_message(self, format: str, *args: Any) -> None:
            """Keep quiet: the journal says what was asked for."""

        def _respond(self, form: tuple[tuple[str, str], ...] | None) -> None:
            address = resolve(site.origin, self.path)
            if address is None or address.host != site.host:
                self._send(403, [], b"")
                return
            path = urlsplit(self.path).path or "/"
            if self.command == "GET" and path in site.files:
                kind, content = site.files[path]
                self._send(200, [("Content-Type", kind), ("Cache-Control", "max-age=3600")], content)
            elif self.command == "GET" and "text/html" not in self.headers.get("Accept", ""):
                self._send(404, [], b"")
            else:
                self._answer(site.ask(PortRequest(self.command, address.target, form)))

        def _answer(self, answer: PortAnswer) -> None:
            headers = [("Cache-Control", "no-store"), ("Content-Security-Policy", "frame-src 'none'; object-src 'none'")]
            headers += [each for each in answer.headers if each[0].lower() == "refresh"]
            if answer.location is not None and 300 <= answer.status < 400:
                self._send(answer.status, [*headers, ("Location", site.own_scheme(answer.location))], b"")
            elif answer.file is not None:
                name = quote(answer.file.name, safe="")
                headers += [("Content-Type", answer.file.type or "application/octet-stream"),
                            ("Content-Disposition", f"attachment; filename*=UTF-8''{name}")]
                self._send(answer.status, headers, answer.file.content or b"")
            else:
                page = site.own_scheme(render(answer.page)).encode("utf-8", "replace") if answer.page is not None else _EMPTY
                self._send(answer.status, [*headers, ("Content-Type", "text/html; charset=utf-8")], page)

        def _send(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
            self.send_response(status)
            for name, value in headers:
                self.send_header(name, value.replace("\r", "").replace("\n", ""))
            if status not in (204, 304):
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if status not in (204, 304):
                self.wfile.write(content)

    return Handler


def posted_form(kind: str, body: bytes) -> tuple[tuple[str, str], ...]:
    """Return the names and values of a posted form, in order; of a file its name."""
    if kind.lower().startswith("multipart/form-data"):
        message = message_from_bytes(b"Content-Type: " + kind.encode("latin-1", "replace") + b"\r\n\r\n" + body, policy=HTTP)
        pairs = []
        for part in message.iter_parts() if message.is_multipart() else ():
            name = part.get_param("name", header="content-disposition")
            file = part.get_filename(None) if part.get_param("filename", header="content-disposition") is not None else None
            content = part.get_payload(decode=True)
            text = content.decode("utf-8", "replace") if isinstance(content, bytes) else ""
            is_file = part.get_param("filename", header="content-disposition") is not None
            pairs.append((str(name or ""), str(file or "") if is_file else text))
        return tuple(pairs)
    if kind.lower().startswith("text/plain"):
        lines = body.decode("utf-8", "replace").split("\r\n")
        return tuple((name, value) for name, _, value in (line.partition("=") for line in lines if line))
    return tuple(parse_qsl(body.decode("ascii", "replace"), keep_blank_values=True, errors="replace"))
