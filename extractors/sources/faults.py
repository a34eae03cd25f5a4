"""What goes wrong between us and a platform, whatever client reports it, as one of our errors.

In: an exception of a client's library. Out: `InputError` (the request, the key or the project is wrong), `RetryableFault` (429,
5xx, no answer). Sees a status and headers on the exception, on its response or on what caused it. No credential reaches a
message. Does not see: faults that a client hides.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from types import ModuleType
from typing import Any

from extractors.sources.platform import Account
from warehouse.errors import InputError, RetryableFault, TraceroomError, Unavailable


class StatusFault(Exception):
    """An answer that is no success, where a client's own exception does not hold its status in the usual way."""

    def __init__(self, message: str, status_code: int | None, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status_code = status_code
        self.headers = headers or {}


_LONGEST = 200
"""Characters of a platform's message that are shown."""


def client(module: str, title: str, extra: str) -> ModuleType:
    """Import a platform's client. Raises `Unavailable` with the command that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise Unavailable(f"the client of {title} is not installed ({error})", extra,
                          f'install it: pip install "traceroom[{extra}]"') from error


@contextlib.contextmanager
def translated(account: Account, *kinds: type[Exception]) -> Iterator[None]:
    """Turn exceptions of a client into our errors."""
    try:
        yield
    except TraceroomError:
        raise
    except kinds as error:
        raise fault(account, error) from None   # a traceback could show the credentials


def fault(account: Account, error: Exception) -> TraceroomError:
    """Return our error for a client's exception."""
    status, headers = _response(error)
    message = account.redact(" ".join(str(_message(error)).split()))[:_LONGEST].rstrip(". ") or type(error).__name__
    where = f"source {account.source!r} at {account.redact(account.url)}"
    if status in (401, 403):
        return InputError(f"the platform rejects the key (status {status})", where, "check the credentials and the project")
    if status == 429:
        return RetryableFault("the platform's rate limit is reached", where, "run the command again later: it continues",
                              _wait_s(headers))
    if status is None or status >= 500 or status == 408:
        what = f"the platform does not answer ({message})" if status is None else f"the platform fails (status {status})"
        return RetryableFault(what, where, "run the command again later: it continues", _wait_s(headers))
    if status == 404:
        return InputError(f"the platform does not know the address or the project ({message})", where, "check both")
    return InputError(f"the platform rejects the request (status {status}: {message})", where,
                      "check the project, the filter and the client's version")


def _message(error: Exception) -> object:
    body = getattr(error, "body", None)
    return body if isinstance(body, str) and body else error


def _response(error: BaseException | None) -> tuple[int | None, Mapping[str, str]]:
    """Return the status and the headers of the answer behind an exception."""
    for _ in range(4):
        if error is None:
            break
        answer = getattr(error, "response", None)
        for holder in (error, answer):
            status: Any = getattr(holder, "status_code", None)
            if isinstance(status, int) and not isinstance(status, bool):
                headers = getattr(holder, "headers", None) or getattr(answer, "headers", None) or {}
                return status, {str(key).casefold(): str(value) for key, value in dict(headers).items()}
        error = error.__cause__ or error.__context__
    return None, {}


def _wait_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of `Retry-After`, which is a number or a date."""
    stated = headers.get("retry-after", "")
    try:
        return max(0.0, float(stated))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(stated) - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError):
        return None
