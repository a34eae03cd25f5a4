"""Which faults pass by themselves: told by what caused them, as the libraries raise it."""

from __future__ import annotations

import errno
import socket

import httpx2
import openai
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError

from pipelines.running.faults import passes
from warehouse.errors import Busy, InputError, NotAWarehouse, TraceroomError, Unavailable

ASKED = httpx2.Request("POST", "http://127.0.0.1/v1")


def answered(status: int) -> openai.APIStatusError:
    return openai.APIStatusError("no", response=httpx2.Response(status, request=ASKED), body=None)


def refused(status: int) -> ClientError:
    return ClientError({"Error": {"Code": "x"}, "ResponseMetadata": {"HTTPStatusCode": status}}, "ListObjects")  # type: ignore[typeddict-item]


@pytest.mark.parametrize(("error", "cause", "does"), [
    (Busy("another run holds it"), None, True),
    (Unavailable("no endpoint"), None, True),
    (Unavailable("an extra is missing"), ImportError("s3fs"), False),
    (Unavailable("the model does not answer"), openai.APIConnectionError(request=ASKED), True),
    (Unavailable("the model does not answer"), answered(429), True),
    (Unavailable("the model does not answer"), answered(503), True),
    (Unavailable("the model does not answer"), answered(401), False),
    (InputError("the store refuses"), EndpointConnectionError(endpoint_url="http://127.0.0.1:9"), True),
    (InputError("the store refuses"), refused(503), True),
    (InputError("the store refuses"), refused(403), False),
    (InputError("there is no such file"), None, False),
    (NotAWarehouse("this is something else"), None, False),
    (OSError(errno.ENOSPC, "no space left"), None, False),
    (PermissionError(errno.EACCES, "no right"), None, False),
    (OSError(errno.EIO, "input/output error"), None, True),
    (ConnectionResetError(errno.ECONNRESET, "reset"), None, True),
    (TimeoutError("no answer in time"), None, True),
    (socket.gaierror(socket.EAI_AGAIN, "ask again"), None, True),
    (socket.gaierror(socket.EAI_NONAME, "no such host"), None, False),
    (Unavailable("a disk"), OSError(errno.ENOSPC, "no space left"), False),
])
def test_a_fault_passes_or_stays(error: TraceroomError | OSError, cause: Exception | None, does: bool) -> None:
    error.__cause__ = cause
    assert passes(error) is does
