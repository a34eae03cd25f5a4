"""What servers share: the listening socket, and the limit of open files."""

from __future__ import annotations

import contextlib
import socket

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


def most_open_files() -> int:
    """Return how many files this process may open."""
    try:
        import resource
    except ImportError:
        return MOST
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft == resource.RLIM_INFINITY else soft
