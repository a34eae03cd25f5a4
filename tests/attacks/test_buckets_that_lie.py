"""A bucket whose server lies: bodies without end, cut ones, other digests, redirects to others, errors; a pull ends and takes
nothing."""

from __future__ import annotations

import http.server
import threading
import time
from pathlib import Path

import pytest

from pipelines.releases.registry import Registry
from tests.attacks.lying import release_of
from tests.attacks.report import Report
from warehouse.errors import TraceroomError

MOST_MB = 300


class LyingBucket(http.server.BaseHTTPRequestHandler):
    """Answers as S3 does, with a lie about what is under `objects/`."""

    registry: Path
    lie = ""
    sent_mb = 0
    strangers: list[str] = []  # noqa: RUF012  of the class, on purpose

    def do_GET(self) -> None:
        """Answer."""
        kind = type(self)
        name = self.path.partition("?")[0].removeprefix("/lies").lstrip("/")
        if self.headers["Host"].startswith("localhost"):
            kind.strangers.append(str(self.headers))
        if "list-type" in self.path:
            names = sorted(each.relative_to(self.registry).as_posix() for each in self.registry.rglob("*") if each.is_file())
            items = "".join(
                f"<Contents><Key>{each}</Key><Size>{(self.registry / each).stat().st_size}</Size><ETag>x</ETag>"
                "<LastModified>2026-01-01T00:00:00.000Z</LastModified></Contents>"
                for each in names
                if not each.startswith(".")
            )
            self._send(f"<ListBucketResult><IsTruncated>false</IsTruncated>{items}</ListBucketResult>".encode())
        elif not (self.registry / name).is_file():
            self._send(b"<Error><Code>NoSuchKey</Code></Error>", 404)
        elif not name.startswith("objects/") or not kind.lie:
            self._send((self.registry / name).read_bytes())
        else:
            self._lie((self.registry / name).read_bytes())

    do_HEAD = do_GET

    def _lie(self, data: bytes) -> None:
        kind = type(self)
        if kind.lie == "endless":
            self.send_response(200)
            self.send_header("Content-Length", str(1 << 40))
            self.send_header("ETag", "x")
            self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
            self.end_headers()
            try:
                while kind.sent_mb < MOST_MB:
                    self.wfile.write(b"x" * (1 << 20))
                    kind.sent_mb += 1
            except OSError:
                pass
            self.close_connection = True
        elif kind.lie == "redirect":
            self.send_response(307)
            self.send_header("Location", f"http://localhost:{self.server.server_address[1]}{self.path}")
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            self._send(
                {"cut": data[:-1], "other": b"y" * len(data), "empty": b""}.get(kind.lie, data),
                {"denied": 403, "broken": 501}.get(kind.lie, 200),
            )

    def _send(self, data: bytes, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.send_header("ETag", "x")
        self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Be quiet."""


def attack(folder: Path, share: float) -> Report:
    """Pull from the bucket under each lie."""
    files = {"environments/hall/tasks.jsonl": b'{"task_id": "1"}\n', "datasets/a": b"a" * 5_000}
    _, release = release_of(folder, files)
    LyingBucket.registry = folder / "registry"
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), LyingBucket)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    problems, lies = [], ("", "cut", "other", "empty", "endless", "redirect", "denied", "broken")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_REGION": "us-east-1",
            "AWS_SECRET_ACCESS_KEY": "what-only-we-know",
            "AWS_ALLOW_HTTP": "true",
            "AWS_DEFAULT_REGION": "us-east-1",
        }.items():
            patch.setenv(name, value)
        for lie in lies:
            LyingBucket.lie, begun = lie, time.monotonic()
            try:
                pulled = Registry("s3://lies").fetch(release, folder / f"pulled{lie}")
                same = all((pulled / path).read_bytes() == content for path, content in files.items())
                problems += [] if same and lie in ("", "redirect") else [f"{lie}: it is pulled"]
            except (TraceroomError, OSError) as error:
                problems += [f"an honest bucket: {error}"] if not lie else []
            problems += [f"{lie}: it takes {time.monotonic() - begun:.0f} s"] if time.monotonic() - begun > 60 else []
            problems += (
                [f"{lie}: something is left"] if lie and lie != "redirect" and (folder / f"pulled{lie}").exists() else []
            )
    problems += [f"{LyingBucket.sent_mb} MB of an endless body are taken"] if LyingBucket.sent_mb >= MOST_MB else []
    problems += ["another host gets the secret"] if any("what-only-we-know" in each for each in LyingBucket.strangers) else []
    server.shutdown()
    server.server_close()
    return Report(len(lies), tuple(problems))


def test_a_bucket_that_lies_gives_nothing(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
