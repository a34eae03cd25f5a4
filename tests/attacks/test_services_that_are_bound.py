"""Real services behind tools that redirect, answer without end or with no JSON: the call is answered, within bounds, and no
file is read."""

from __future__ import annotations

import http.server
import threading
import time
from pathlib import Path

import pytest

from env_builder.runtime import Environment
from tests.attacks.report import Report
from tests.rooms import TASK, write_rewards, write_room

MOST_MB = 120


class HostileService(http.server.BaseHTTPRequestHandler):
    """Answers a call as its path says."""

    sent_mb = 0

    def do_POST(self) -> None:
        """Answer."""
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        way = self.path.strip("/")
        if way == "endless":
            self.send_response(200)
            self.end_headers()
            try:
                while HostileService.sent_mb < MOST_MB:
                    self.wfile.write(b"x" * (1 << 20))
                    HostileService.sent_mb += 1
            except OSError:
                pass
            self.close_connection = True
            return
        places = {"file": "file:///etc/passwd", "circle": "/circle", "ftp": "ftp://127.0.0.1/x",
            "metadata": "http://169.254.169.254/x"}
        self.send_response(302 if way in places else int(way) if way.isdigit() else 200)
        self.send_header("Location", places[way]) if way in places else None
        body = {"deep": b"[" * 200_000, "half": b'{"content": "\\ud800"}', "text": b"no JSON", "null": b"null",
            "other": b'{"content": 5, "effects": "x"}', "bytes": b"\xff\xfe"}.get(way, b"{}")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST

    def log_message(self, format: str, *args: object) -> None:
        """Be quiet."""


def attack(folder: Path, share: float) -> Report:
    """Bind a tool to each, call it, and end the episode."""
    room = write_room(folder / "out" / "environments" / "hall")
    write_rewards(room)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), HostileService)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    problems, ways = [], ("deep", "half", "text", "null", "other", "bytes", "404", "500", "file", "circle", "ftp", "endless")
    for way in ways:
        environment, begun = Environment.load(room), time.monotonic()
        environment.bind("read_sign", f"http:http://127.0.0.1:{server.server_port}/{way}")
        environment.reset(TASK)
        try:
            result = environment.call("read_sign", {"at": "roof"})
            problems += [f"{way}: a file is read"] if "root:" in result.content else []
            problems += [f"{way}: {len(result.content) >> 20} MB are answered"] if len(result.content) > 20 << 20 else []
            result.content.encode()
            environment.finish()
            problems += [f"{way}: reward {environment.grade().reward}"] if environment.grade().reward else []
        except OSError:  # as where nothing answers: the host hears of it
            pass
        except Exception as error:
            problems.append(f"{way}: {type(error).__name__}: {str(error)[:120]}")
        problems += [f"{way} takes {time.monotonic() - begun:.0f} s"] if time.monotonic() - begun > 90 else []
    problems += [f"{HostileService.sent_mb} MB of an answer without end are taken"] if HostileService.sent_mb >= MOST_MB else []
    server.shutdown()
    server.server_close()
    return Report(len(ways), tuple(problems))


@pytest.mark.slow
def test_a_bound_service_cannot_end_an_episode(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
