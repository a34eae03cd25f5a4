"""A server of S3 on this machine, on a port that was free: moto's (s3_server.py), which keeps its buckets in memory."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

KEYS = {"AWS_ACCESS_KEY_ID": "setup", "AWS_SECRET_ACCESS_KEY": "setup", "AWS_DEFAULT_REGION": "us-east-1"}
"""What it takes until somebody resets its authorization: then it knows its own users alone."""


@contextlib.contextmanager
def serving(said: Path) -> Iterator[str]:
    """Its address, from its first answer to its end; what it says goes to a file."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    with said.open("w") as output, subprocess.Popen(
            [sys.executable, Path(__file__).with_name("s3_server.py"), "127.0.0.1", str(port)], stdout=output, stderr=output,
            env=os.environ | {"INITIAL_NO_AUTH_ACTION_COUNT": "100000"}) as process:
        try:
            _wait(url, process)
            yield url
        finally:
            process.terminate()


def _wait(url: str, process: subprocess.Popen[bytes]) -> None:
    for _ in range(4000):
        assert process.poll() is None, "the server ended"
        try:
            urllib.request.urlopen(f"{url}/moto-api/", timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the server does not answer")
