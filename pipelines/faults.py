"""Will a fault pass by itself? What decides whether a step is tried again.

It sees the exception and what caused it: an error of the operating system by its number, an answer of a server by its status,
a module that is not there. It does not see why a lock is held or an endpoint is silent: these count as faults that pass.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator

from warehouse.errors import Busy, TraceroomError, Unavailable

_PASSING = frozenset({
    errno.EAGAIN, errno.EBUSY, errno.ECONNABORTED, errno.ECONNREFUSED, errno.ECONNRESET, errno.EHOSTUNREACH, errno.EINTR,
    errno.EIO, errno.EMFILE, errno.ENETDOWN, errno.ENETUNREACH, errno.ENFILE, errno.ENOLCK, errno.EPIPE, errno.ESTALE,
    errno.ETIMEDOUT, errno.ETXTBSY})
"""The network, a lock, a table that is full for the moment, a hiccup of a disk. A full disk and a missing right are not among
them: they stay until somebody does something."""
_ASK_AGAIN = frozenset({408, 409, 425, 429})
"""Statuses below 500 by which a server asks for patience."""


def passes(error: BaseException) -> bool:
    """Whether the same step may succeed a little later with nothing done about it."""
    chain = list(_chain(error))
    if any(isinstance(one, ImportError) for one in chain):
        return False
    for one in chain:
        status = _status(one)
        if status is not None:
            return status >= 500 or status in _ASK_AGAIN
        if isinstance(one, socket.gaierror):
            return one.errno == socket.EAI_AGAIN
        if isinstance(one, OSError) and one.errno is not None:
            return one.errno in _PASSING
        if isinstance(one, ConnectionError | TimeoutError) or _lost(one):
            return True
    return isinstance(error, Busy | Unavailable) or not isinstance(error, TraceroomError)


def said(error: TraceroomError | OSError) -> TraceroomError:
    """The error with its sentence and a mend; one of ours is as it is."""
    if isinstance(error, TraceroomError):
        return error
    mend = "make room or give access, then run again: what was committed stays"
    return Unavailable(error.strerror or str(error), str(error.filename or "a file of this run"), mend)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, and what it came from, from the first cause on."""
    found: list[BaseException] = []
    at: BaseException | None = error
    while at is not None and at not in found:
        found.append(at)
        at = at.__cause__ or (None if at.__suppress_context__ else at.__context__)
    return reversed(found)


def _status(error: BaseException) -> int | None:
    """Status of the server's answer, where the error is one (as openai's and botocore's carry it)."""
    status = getattr(error, "status_code", None)
    if status is None and isinstance(answer := getattr(error, "response", None), dict):
        status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode")
    return status if isinstance(status, int) and status >= 400 else None


def _lost(error: BaseException) -> bool:
    """Whether a client library says that no answer came: botocore's and openai's errors are no OSErrors, nor of one family."""
    return any(kind.__name__ in ("HTTPClientError", "ConnectionError", "APIConnectionError") for kind in type(error).__mro__)
