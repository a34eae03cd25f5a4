"""Retries: which faults may pass by themselves, and how often a step is tried after one.

It sees the exception and what caused it: an error of the operating system by its number, an answer of a server by its status,
a module that is not there. It does not see why a lock is held or an endpoint is silent: these count as faults that pass.
"""

from __future__ import annotations

import errno
import os
import socket
import time
from collections.abc import Callable
from typing import TypeVar

from warehouse.errors import Busy, InputError, TraceroomError, Unavailable

_PASSING = frozenset({
    errno.EAGAIN, errno.EBUSY, errno.ECONNABORTED, errno.ECONNREFUSED, errno.ECONNRESET, errno.EHOSTUNREACH, errno.EINTR,
    errno.EIO, errno.EMFILE, errno.ENETDOWN, errno.ENETUNREACH, errno.ENFILE, errno.ENOLCK, errno.EPIPE, errno.ESTALE,
    errno.ETIMEDOUT, errno.ETXTBSY})
"""The network, a lock, a table that is full for the moment, a hiccup of a disk. A full disk and a missing right are not among
them: they stay until somebody does something."""
_ASK_AGAIN = frozenset({408, 409, 425, 429})
"""Statuses below 500 by which a server asks for patience."""
_LOST = ("HTTPClientError", "ConnectionError", "APIConnectionError")
"""Errors of botocore and openai that no answer came: they are no OSErrors, nor of one family."""
T = TypeVar("T")


def waits() -> tuple[float, ...]:
    """Seconds to wait before each retry after a fault that may pass (TRACEROOM_RETRY_SECONDS)."""
    text = os.environ.get("TRACEROOM_RETRY_SECONDS", "1,2")
    try:
        return tuple(float(each) for each in text.split(",") if each.strip())
    except ValueError:
        raise InputError(f"{text!r} is no list of seconds", "TRACEROOM_RETRY_SECONDS", "give such as 10,60,300") from None


def retried(step: Callable[[], T], notify: Callable[[str], None], place: str = "a file of this run") -> T:
    """Do a step, again after each of `waits()` while its fault may pass; `notify` gets a sentence before each retry. `place`:
    where a fault of the system is that names no file. Raises TraceroomError."""
    for pause in (*waits(), None):
        try:
            return step()
        except (TraceroomError, OSError) as error:
            if pause is None or not passes(error):
                if isinstance(error, TraceroomError):
                    raise
                raise as_error(error, place) from error
            notify(f"{as_error(error, place)}; this may pass: next try in {pause:g} s")
            time.sleep(pause)
    raise AssertionError("the last try returns or raises")


def passes(error: BaseException) -> bool:
    """Whether the same step may succeed a little later with nothing done about it."""
    errors: list[BaseException] = []
    at: BaseException | None = error
    while at is not None and at not in errors:
        errors.append(at)
        at = at.__cause__ or (None if at.__suppress_context__ else at.__context__)
    if any(isinstance(one, ImportError) for one in errors):
        return False
    for one in reversed(errors):   # from the first cause on
        status = getattr(one, "status_code", None)   # openai's; botocore's is in the response
        if status is None and isinstance(answer := getattr(one, "response", None), dict):
            status = answer.get("ResponseMetadata", {}).get("HTTPStatusCode")
        if isinstance(status, int) and status >= 400:
            return status >= 500 or status in _ASK_AGAIN
        if isinstance(one, socket.gaierror):
            return one.errno == socket.EAI_AGAIN
        if isinstance(one, OSError) and one.errno is not None:
            return one.errno in _PASSING
        if isinstance(one, ConnectionError | TimeoutError) or any(kind.__name__ in _LOST for kind in type(one).__mro__):
            return True
    return isinstance(error, Busy | Unavailable) or not isinstance(error, TraceroomError)


def as_error(error: TraceroomError | OSError, place: str) -> TraceroomError:
    """Give an error of the operating system a hint; one of ours has its own."""
    if isinstance(error, TraceroomError):
        return error
    hint = "make room or give access, then run again: what was committed stays"
    return Unavailable(error.strerror or str(error), str(error.filename or place), hint)
