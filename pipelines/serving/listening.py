"""What servers share: the listening socket, the limit of open connections, and the file of journals."""

from __future__ import annotations

import contextlib
import json
import socket
from pathlib import Path
from typing import Any

from warehouse.errors import InputError

MOST = 65_536
BACKLOG = 2048
"""Connections that may wait to be accepted."""


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket whose connections send without delay; InputError if that is not possible. An event loop ensures
    that only for sockets that it opens itself: an answer's head and body would wait for each other."""
    try:
        listening = socket.create_server((host, port), backlog=BACKLOG)
    except OSError as error:
        raise InputError(f"cannot listen there ({error.strerror})", f"{host}:{port}", "choose another --port") from error
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def allow_open_files() -> None:
    """Raise this process's limit of open files to what the system allows, if there is one."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = MOST if hard == resource.RLIM_INFINITY else min(MOST, hard)
        if soft != resource.RLIM_INFINITY and soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def append_row(journals: Path, row: dict[str, Any]) -> None:
    """Append an episode to the file for the grader."""
    with journals.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row, ensure_ascii=False, sort_keys=True) + "\n")
