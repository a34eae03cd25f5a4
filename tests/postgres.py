"""A server of PostgreSQL for tests: its own folder, a free port, a password, gone at the end.

    def test_something(postgres: Postgres) -> None:
        url = postgres.database()        # a new, empty database, as postgresql://user:password@127.0.0.1:port/name
"""

from __future__ import annotations

import contextlib
import itertools
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tests.conftest import lacking

USER, PASSWORD = "keeper", "pg-5ecret-of-tests"
_TRIES, _PATIENCE_S = 5, 120
_NUMBERS = itertools.count()


class Postgres(NamedTuple):
    """A server that answers."""

    host: str
    port: int
    binaries: Path
    """Folder of psql, pg_dump and the like."""
    folder: Path
    user: str = USER
    password: str = PASSWORD

    def url(self, database: str = "postgres", scheme: str = "postgresql") -> str:
        """Address of a database, with user and password."""
        return f"{scheme}://{self.user}:{self.password}@{self.host}:{self.port}/{database}"

    def database(self, name: str | None = None, scheme: str = "postgresql") -> str:
        """Address of a new, empty database."""
        name = name or f"test_{os.getpid()}_{next(_NUMBERS)}"
        self.run("psql", "--quiet", "--command", f'create database "{name}"', "--dbname", "postgres")
        return self.url(name, scheme)

    def run(self, program: str, *arguments: str) -> str:
        """Return what a program of PostgreSQL prints that asks this server."""
        done = subprocess.run(
            [str(self.binaries / program), "--host", self.host, "--port", str(self.port), "--username", self.user, *arguments],
            env=os.environ | {"PGPASSWORD": self.password}, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout


@contextlib.contextmanager
def serving() -> Iterator[Postgres]:
    """Yield a server, from its first file to its last. Skips the test where PostgreSQL is not installed."""
    binaries = _binaries()
    folder = Path(tempfile.mkdtemp(prefix="traceroom-postgres-"))   # pytest's own folders are closed to other users
    process: subprocess.Popen[bytes] | None = None
    try:
        as_user = _as_user(folder)
        _initialized(binaries, folder, as_user)
        server, process = _started(binaries, folder, as_user)
        yield server
    finally:
        if process is not None:
            process.send_signal(3)   # at once, without waiting for those who are connected
            process.wait()
        shutil.rmtree(folder, ignore_errors=True)


def _binaries() -> Path:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    told = shutil.which("initdb")
    if not found and told is None:
        lacking("PostgreSQL is not installed (Debian: apt-get install postgresql)")
    return found[-1].parent if found else Path(str(told)).resolve().parent


def _as_user(folder: Path) -> dict[str, Any]:
    """How a process is begun as somebody who is not root: PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return {}
    who = pwd.getpwnam("nobody")
    os.chown(folder, who.pw_uid, who.pw_gid)
    return {"user": who.pw_uid, "group": who.pw_gid, "extra_groups": []}


def _initialized(binaries: Path, folder: Path, as_user: dict[str, Any]) -> None:
    secret = folder / "password"
    secret.write_text(PASSWORD)
    if as_user:
        os.chown(secret, as_user["user"], as_user["group"])
    done = subprocess.run(
        [binaries / "initdb", "--pgdata", folder / "data", "--username", USER, "--pwfile", secret, "--no-sync",
         "--auth", "scram-sha-256", "--encoding", "UTF8", "--locale", "C"],
        capture_output=True, text=True, check=False, cwd=folder, **as_user)
    assert done.returncode == 0, done.stderr


def _started(binaries: Path, folder: Path, as_user: dict[str, Any]) -> tuple[Postgres, subprocess.Popen[bytes]]:
    """Return the server on a port that was free; somebody may have taken it since, so it is tried again on another."""
    for _ in range(_TRIES):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        with (folder / "said").open("ab") as said:
            process = subprocess.Popen(
                [binaries / "postgres", "-D", folder / "data", "-p", str(port), "-k", folder,
                 "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "max_connections=200"],
                stdout=said, stderr=said, cwd=folder, **as_user)
        server = Postgres("127.0.0.1", port, binaries, folder)
        if _answers(server, process):
            return server, process
    raise AssertionError((folder / "said").read_text())


def _answers(server: Postgres, process: subprocess.Popen[bytes]) -> bool:
    ready = [str(server.binaries / "pg_isready"), "--quiet", "--host", server.host, "--port", str(server.port)]
    until = time.monotonic() + _PATIENCE_S
    while process.poll() is None and time.monotonic() < until:
        if subprocess.run(ready, check=False).returncode == 0 and (server.folder / "data" / "postmaster.pid").is_file():
            return True
        time.sleep(0.1)
    process.kill()
    process.wait()
    return False
