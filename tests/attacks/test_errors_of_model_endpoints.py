"""Endpoints of models that repeat the key in errors, redirect elsewhere, or answer without end: no message, file or host gets
the key."""

from __future__ import annotations

import http.server
import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from pipelines.resources import connect
from tests.attacks.report import Report
from warehouse.errors import TraceroomError

KEY = "sk-test-what-nobody-may-see-0123456789"
MOST_MB = 200


class HostileEndpoint(http.server.BaseHTTPRequestHandler):
    """Answers a request as its path says."""

    strangers: list[str] = []  # noqa: RUF012  of the class, on purpose
    sent_mb = 0

    def do_POST(self) -> None:
        """Answer."""
        self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers["Host"].startswith("localhost"):
            HostileEndpoint.strangers.append(str(self.headers))
        way = self.path.split("/")[1]
        if way.isdigit():
            self._send(int(way), {"error": {"message": f"bad key {self.headers['Authorization']}", "type": "x"}})
        elif way == "redirect":
            self.send_response(307)
            self.send_header("Location", f"http://localhost:{self.server.server_address[1]}/200/chat/completions")
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif way == "null":
            self._send(200, {"choices": None})
        elif way == "text":
            self._send(200, f"not JSON {self.headers['Authorization']}")
        else:
            self._send(200, {"choices": [{"message": {"content": [1, 2]}}]})

    def _send(self, status: int, document: Any) -> None:
        data = document.encode() if isinstance(document, str) else json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Be quiet."""


def attack(folder: Path, share: float) -> Report:
    """Ask each endpoint, and read what the message holds."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), HostileEndpoint)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    problems, ways = [], ("400", "401", "403", "404", "422", "redirect", "null", "text", "odd",
        *(("429", "500") if share >= 0.1 else ()))
    for way in ways:
        begun = time.monotonic()
        try:
            connect(f"http://127.0.0.1:{server.server_port}/{way}", "m", KEY, timeout_s=20)("hello")
        except TraceroomError as error:
            problems += [f"{way}: the key is in the message: {error}"] if KEY in str(error) else []
        except Exception as error:
            problems.append(f"{way}: {type(error).__name__}: {str(error)[:100]}")
        problems += [f"{way} takes {time.monotonic() - begun:.0f} s"] if time.monotonic() - begun > 60 else []
    problems += ["another host gets the key"] if any(KEY in each for each in HostileEndpoint.strangers) else []
    server.shutdown()
    server.server_close()
    return Report(len(ways), tuple(problems))


@pytest.mark.slow
def test_no_message_holds_the_key(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
