"""The server of `traceroom receive`: OTLP/HTTP in, files in the inbox out.

    POST /v1/traces, /v1/logs     protobuf or OTLP/JSON, unpacked or gzip; 200 once the content is on disk
    GET  /health                  counts, as JSON

Requests wait in a queue of at most `MOST_WAITING` bytes; one thread unpacks, decodes and writes what waits, with one `fsync`
for all of it. A request that can never be accepted gets 4xx with a `google.rpc.Status`. A full queue gets 429, a disk that is
full or fails gets 503, both with Retry-After: exporters send such batches again. Bound to this machine, a request needs no
token unless one is set; bound elsewhere it needs it, as `Authorization: Bearer TOKEN`.
"""

from __future__ import annotations

import asyncio
import contextlib
import hmac
from collections import Counter
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from pipelines.browser.guard import host_of
from pipelines.receiving.inbox_spool import DeliveryRule, InboxSpool
from pipelines.receiving.otlp_request import (
    JSON,
    PROTOBUF,
    SIGNALS,
    DecodedRequest,
    ExportRequest,
    Rejection,
    accepted,
    decode,
    status,
)
from pipelines.serving.access import is_of_this_machine
from pipelines.serving.connections import run_guarded
from pipelines.serving.listening import BACKLOG, allow_open_files, listen

MOST_BODY = 20 << 20
"""Bytes of a body, unpacked."""
MOST_WAITING = 64 << 20
"""Bytes of bodies that wait."""
MOST_GROUP = 64
"""Requests that are written with one `fsync`."""
BODY_S = 60.0
"""Seconds in which a body must have come."""
STOP_S = 5
_TICK_S = 1.0
_RETRY_S = {429: 1, 503: 10}
_RESOURCE_EXHAUSTED, _UNAUTHENTICATED, _UNAVAILABLE = 8, 16, 14


@dataclass(frozen=True)
class ReceiverRules:
    """Who may send, and how much."""

    token: str | None = None
    """What a request must have; None: nothing."""
    exposed: bool = False
    """Bound to an address that is not this machine's own."""
    most_body: int = MOST_BODY


class ExportAnswer(NamedTuple):
    """What is answered: the status, and the result of a request that was decoded, or a code and a sentence."""

    http_status: int
    decoded: DecodedRequest | None = None
    code: int = 0
    sentence: str = ""


@dataclass
class WaitingRequest:
    """A request in the queue, and where its answer goes."""

    request: ExportRequest
    answer: asyncio.Future[ExportAnswer]


@dataclass
class ReceiverCounts:
    """What was received since the start."""

    requests: Counter[str] = field(default_factory=Counter)
    """By status."""
    records: int = 0
    """Spans and log records that are on disk."""
    files: int = 0
    """Handed over to the inbox."""


class OtlpReceiver:
    """The application of one inbox."""

    def __init__(self, spool: InboxSpool, rules: ReceiverRules, warn: Callable[[str], None]) -> None:
        self._spool, self._rules, self._warn = spool, rules, warn
        self._queue: asyncio.Queue[WaitingRequest | None] = asyncio.Queue()
        self._n_waiting = 0
        self._fault: str | None = None
        self._counts = ReceiverCounts()

    def application(self) -> Starlette:
        """Return the web application."""
        routes = [Route(path, self._export, methods=["POST"]) for path in SIGNALS]
        return Starlette(routes=[*routes, Route("/health", self._health)], lifespan=self._lifespan)

    @contextlib.asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        working = asyncio.create_task(self._work())
        try:
            yield
        finally:
            self._queue.put_nowait(None)
            await working

    async def _health(self, request: Request) -> Response:
        if (refusal := self._refusal(request)) is not None:
            return refusal
        return JSONResponse({
            "status": "ok" if self._fault is None else self._fault, "requests": dict(self._counts.requests),
            "records": self._counts.records, "files": self._counts.files, "bytes_waiting": self._n_waiting})

    def _refusal(self, request: Request) -> Response | None:
        """Return the answer to who may not ask."""
        if not self._rules.exposed and not is_of_this_machine(host_of(request.headers)):
            return _failed(request, 421, 7, "this receiver answers to the names of this machine alone.")
        if self._rules.token is not None and not hmac.compare_digest(
                request.headers.get("authorization", "").encode(), f"Bearer {self._rules.token}".encode()):
            return _failed(request, 401, _UNAUTHENTICATED, "send the receiver's token: Authorization: Bearer TOKEN.")
        return None

    async def _export(self, request: Request) -> Response:
        response = self._refusal(request) or await self._stored(request)
        self._counts.requests[str(response.status_code)] += 1
        return response

    async def _stored(self, request: Request) -> Response:
        content_type, encoding = _content_type(request), request.headers.get("content-encoding", "identity").strip().lower()
        if content_type not in (JSON, PROTOBUF):
            return _failed(request, 415, 3, f"the content type is neither {PROTOBUF} nor {JSON}.")
        if encoding not in ("identity", "gzip", ""):
            return _failed(request, 415, 3, f"the content encoding {encoding!r} is neither gzip nor identity.")
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_S):
                async for part in request.stream():
                    body += part
                    self._n_waiting += len(part)
                    if self._n_waiting > MOST_WAITING:
                        return _failed(request, 429, _RESOURCE_EXHAUSTED, "too many requests wait; send this one later.")
                    if len(body) > self._rules.most_body:
                        return _failed(request, 413, _RESOURCE_EXHAUSTED, (
                            f"the body is longer than {self._rules.most_body} bytes; send smaller batches, or raise "
                            "--max-body."))
            export = ExportRequest(SIGNALS[request.url.path], content_type, encoding, bytes(body))
            waiting = WaitingRequest(export, asyncio.get_running_loop().create_future())
            self._queue.put_nowait(waiting)
            answer = await asyncio.shield(waiting.answer)
        except TimeoutError:
            return _failed(request, 408, 4, f"the body did not come within {BODY_S:g} seconds.")
        except ClientDisconnect:
            return Response(status_code=400)   # nobody reads it
        finally:
            self._n_waiting -= len(body)
        if answer.decoded is None:
            return _failed(request, answer.http_status, answer.code, answer.sentence)
        return Response(accepted(export, answer.decoded.n_too_long), 200, media_type=content_type)

    async def _work(self) -> None:
        """Write what waits, group by group, and hand over what is whole, until the queue ends."""
        is_open = True
        while is_open:
            group: list[WaitingRequest] = []
            with contextlib.suppress(TimeoutError):
                group = [each] if (each := await asyncio.wait_for(self._queue.get(), _TICK_S)) is not None else []
                is_open = each is not None
            while len(group) < MOST_GROUP and is_open and not self._queue.empty():
                if (each := self._queue.get_nowait()) is None:
                    is_open = False
                else:
                    group.append(each)
            answers = await asyncio.to_thread(self._commit, [each.request for each in group])
            for each, answer in zip(group, answers, strict=True):
                each.answer.set_result(answer)
            await asyncio.to_thread(self._deliver, not is_open)

    def _commit(self, group: list[ExportRequest]) -> list[ExportAnswer]:
        """Write a group of requests; they are on disk when this returns, all or none."""
        answers: list[ExportAnswer] = []
        try:
            for request in group:
                try:
                    decoded = decode(request, self._rules.most_body)
                except Rejection as rejection:
                    answers.append(ExportAnswer(rejection.status, None, rejection.code, rejection.sentence))
                    continue
                if decoded.lines:
                    self._spool.append(decoded.lines)
                answers.append(ExportAnswer(200, decoded))
            if any(answer.decoded and answer.decoded.lines for answer in answers):
                self._spool.sync()
                self._fault = None
        except OSError as error:
            self._spool.roll_back()
            self._note(error)
            failed = ExportAnswer(503, None, _UNAVAILABLE, f"the inbox cannot be written ({error.strerror}); send it later.")
            return [answer if answer.decoded is None else failed for answer in answers] + [failed] * (len(group) - len(answers))
        stored = [answer.decoded for answer in answers if answer.decoded is not None]
        self._counts.records += sum(each.n_records - each.n_too_long for each in stored)
        return answers

    def _deliver(self, is_last: bool) -> None:
        try:
            handed = self._spool.close() if is_last else self._spool.deliver_due()
        except OSError as error:
            self._note(error)
        else:
            self._counts.files += handed is not None

    def _note(self, error: OSError) -> None:
        """Warn once about a fault, until something was written again."""
        fault = f"{error.filename or 'the inbox'}: {error.strerror}"
        if fault != self._fault:
            self._warn(f"{fault}; requests get HTTP 503 until it can be written")
        self._fault = fault


def _content_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _failed(request: Request, http_status: int, code: int, sentence: str) -> Response:
    """Return a `google.rpc.Status` in the request's encoding."""
    content_type = PROTOBUF if _content_type(request) == PROTOBUF else JSON
    headers = {"retry-after": str(_RETRY_S[http_status])} if http_status in _RETRY_S else {}
    sentence = sentence[0].upper() + sentence[1:]
    return Response(status(content_type, code, sentence), http_status, headers, content_type)


def receive(
    inbox: Path, rules: ReceiverRules, delivery: DeliveryRule, address: tuple[str, int], *,
    ready: Callable[[str, int], None], warn: Callable[[str], None],
) -> None:
    """Receive until interrupted or terminated; calls `ready` with the address and the number of lines that an earlier receiver
    had not handed over. Raises InputError: the port is taken, or another receiver writes into the inbox."""
    host, port = address
    with listen(host, port) as listening:
        allow_open_files()
        spool = InboxSpool(inbox, delivery)
        receiver = OtlpReceiver(spool, rules, warn)
        name = f"[{host}]" if ":" in host else host
        ready(f"http://{name}:{listening.getsockname()[1]}", spool.n_recovered)
        run_guarded(receiver.application(), listening, backlog=BACKLOG, timeout_graceful_shutdown=STOP_S)
