"""Where a server listens, and how many connections it may hold open: as many as the system lets this process."""

from __future__ import annotations

import contextlib
import socket

from warehouse.errors import InputError

MOST = 65_536
BACKLOG = 2048
"""Connections that may wait to be accepted."""


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens, whose connections send what they are given at once; InputError where that cannot be.

    An event loop only sees to that for sockets that it opens itself: an answer's head and body would else wait for each other.
    """
    try:
        listening = socket.create_server((host, port), backlog=BACKLOG)
    except OSError as error:
        raise InputError(f"cannot listen there ({error.strerror})", f"{host}:{port}", "choose another --port") from error
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listening


def allow_open_files() -> None:
    """Raise this process's own limit up to what the system allows it, where it has such limits."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        most = MOST if hard == resource.RLIM_INFINITY else min(MOST, hard)
        if soft != resource.RLIM_INFINITY and soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
