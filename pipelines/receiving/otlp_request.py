"""An export request of OTLP/HTTP as lines for the inbox, and the answers to it.

In: a body in protobuf or OTLP/JSON, unpacked or gzip. Out: OTLP/JSON lines that the format `otlp` reads, each with the spans or
log records of one trace, ids as hex, enums as numbers; answers in the request's own encoding (`Export…ServiceResponse`,
`google.rpc.Status`), written by hand, so that they need no package. Protobuf is read by `opentelemetry-proto`, an optional
extra.
Sees: traces and logs. Does not see: metrics; fields of a newer protocol than the installed package knows (protobuf alone).
"""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

JSON, PROTOBUF = "application/json", "application/x-protobuf"
MOST_LINE = 32 << 20
"""Bytes of a line; a span that is longer is rejected."""
NO_TRACE = "-"
_TRACE = re.compile(r"[A-Za-z0-9+/=_-]{1,64}")
_IDS = {"traceId", "spanId", "parentSpanId"}
_GZIP = 16 + zlib.MAX_WBITS
_INSTALL = "pip install 'traceroom[otlp]', or let the exporter send OTLP/JSON (OTEL_EXPORTER_OTLP_PROTOCOL=http/json)"


class Rejection(ValueError):
    """A request that will never be accepted: its HTTP status, its `google.rpc.Code`, and one sentence."""

    def __init__(self, status: int, code: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status, self.code, self.sentence = status, code, sentence


@dataclass(frozen=True)
class OtlpSignal:
    """A kind of telemetry and the names of its parts, the protocol's first."""

    path: str
    request: tuple[str, str]
    """Module and class of its request in `opentelemetry.proto`."""
    resources: tuple[str, str]
    scopes: tuple[str, str]
    records: tuple[str, str]
    rejected: str
    """Field of an answer that counts what was rejected."""


SIGNALS = {
    signal.path: signal for signal in (
        OtlpSignal("/v1/traces", ("opentelemetry.proto.collector.trace.v1.trace_service_pb2", "ExportTraceServiceRequest"),
                   ("resourceSpans", "resource_spans"), ("scopeSpans", "scope_spans"), ("spans", "spans"), "rejectedSpans"),
        OtlpSignal("/v1/logs", ("opentelemetry.proto.collector.logs.v1.logs_service_pb2", "ExportLogsServiceRequest"),
                   ("resourceLogs", "resource_logs"), ("scopeLogs", "scope_logs"), ("logRecords", "log_records"),
                   "rejectedLogRecords"))}


class TraceLine(NamedTuple):
    """A line for the inbox."""

    trace_id: str
    content: bytes
    """With its end."""


@dataclass(frozen=True)
class ExportRequest:
    """A request as it came."""

    signal: OtlpSignal
    content_type: str
    encoding: str
    body: bytes


@dataclass
class DecodedRequest:
    """What a request holds."""

    lines: list[TraceLine]
    n_records: int
    n_too_long: int = 0
    """Spans or log records that are longer than a line may be."""


def decode(request: ExportRequest, most_bytes: int) -> DecodedRequest:
    """Return the lines of a request of at most `most_bytes` unpacked. Raises Rejection."""
    body = _unpacked(request, most_bytes)
    if request.content_type == PROTOBUF:
        return _lines(_from_protobuf(request.signal, body), request.signal)
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Rejection(400, 3, f"the body is not JSON ({error}).") from error
    return _lines(value, request.signal)


def reads_protobuf() -> bool:
    """Tell whether the package that reads protobuf is installed."""
    try:
        import opentelemetry.proto.collector.trace.v1.trace_service_pb2  # noqa: F401
    except ImportError:
        return False
    return True


def accepted(request: ExportRequest, n_too_long: int = 0) -> bytes:
    """Return the body of an answer to a request that was stored, but for records that were too long."""
    why = f"longer than {MOST_LINE} bytes; limit the lengths of attributes" if n_too_long else ""
    if request.content_type == PROTOBUF:
        return _field(1, _varint_field(1, n_too_long) + _field(2, why.encode())) if n_too_long else b""
    partial = {"partialSuccess": {request.signal.rejected: str(n_too_long), "errorMessage": why}}
    return orjson.dumps(partial if n_too_long else {})


def status(content_type: str, code: int, sentence: str) -> bytes:
    """Return a `google.rpc.Status` in the encoding of a request."""
    if content_type == PROTOBUF:
        return _varint_field(1, code) + _field(2, sentence.encode())
    return orjson.dumps({"code": code, "message": sentence})


def _unpacked(request: ExportRequest, most_bytes: int) -> bytes:
    too_long = Rejection(413, 8, f"the body is longer than {most_bytes} bytes; send smaller batches, or raise --max-body.")
    if request.encoding != "gzip":
        if len(request.body) > most_bytes:
            raise too_long
        return request.body
    unpacked, remainder = bytearray(), request.body
    try:
        while remainder:   # a gzip file may have several members
            inflating = zlib.decompressobj(_GZIP)
            unpacked += inflating.decompress(remainder, most_bytes + 1 - len(unpacked))
            if len(unpacked) > most_bytes:
                raise too_long
            if not inflating.eof:
                raise Rejection(400, 3, "the body is gzip that ends too early.")
            remainder = inflating.unused_data
    except zlib.error as error:
        raise Rejection(400, 3, f"the body is not gzip ({error}).") from error
    return bytes(unpacked)


def _from_protobuf(signal: OtlpSignal, body: bytes) -> Any:
    from importlib import import_module

    try:
        module = import_module(signal.request[0])
        from google.protobuf.json_format import MessageToDict
        from google.protobuf.message import DecodeError
    except ImportError as error:
        raise Rejection(415, 12, f"protobuf is not read here: on the receiver, {_INSTALL}.") from error
    message = getattr(module, signal.request[1])()
    try:
        message.ParseFromString(body)
    except DecodeError as error:
        raise Rejection(400, 3, f"the body is not an {signal.request[1]} ({error}).") from error
    return _with_hex_ids(MessageToDict(message, use_integers_for_enums=True), signal)


def _with_hex_ids(value: dict[str, Any], signal: OtlpSignal) -> dict[str, Any]:
    """Write ids as OTLP/JSON has them; protobuf's own JSON has base64."""
    for _, _, records in _groups(value, signal):
        for record in records:
            for owner in (record, *record.get("links", ())):
                for name in _IDS & owner.keys():
                    owner[name] = base64.b64decode(owner[name]).hex()
    return value


def _lines(value: Any, signal: OtlpSignal) -> DecodedRequest:
    """Cut a request into lines of one trace each."""
    decoded = DecodedRequest([], 0)
    for resource, scope, records in _groups(value, signal):
        by_trace: dict[str, list[dict[str, Any]]] = {}
        for record in records:
            by_trace.setdefault(_trace_of(record), []).append(record)
        for trace_id, members in by_trace.items():
            decoded.n_records += len(members)
            _add_lines(decoded, trace_id, (resource, scope, members), signal)
    return decoded


def _add_lines(
    decoded: DecodedRequest, trace_id: str, parts: tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]],
    signal: OtlpSignal,
) -> None:
    resource, scope, members = parts
    scoped = {**scope, signal.records[0]: members}
    try:
        content = orjson.dumps({signal.resources[0]: [{**resource, signal.scopes[0]: [scoped]}]}) + b"\n"
    except orjson.JSONEncodeError as error:
        raise Rejection(400, 3, f"the body cannot be stored as JSON ({error}).") from error
    if len(content) <= MOST_LINE:
        decoded.lines.append(TraceLine(trace_id, content))
    elif len(members) == 1:
        decoded.n_too_long += 1
    else:
        for member in members:
            _add_lines(decoded, trace_id, (resource, scope, [member]), signal)


def _trace_of(record: dict[str, Any]) -> str:
    trace_id = record.get("traceId", record.get("trace_id"))
    return trace_id if isinstance(trace_id, str) and _TRACE.fullmatch(trace_id) else NO_TRACE


def _groups(value: Any, signal: OtlpSignal) -> Iterator[tuple[dict[str, Any], dict[str, Any], list[dict[str, Any]]]]:
    """Yield each resource and scope of a request without their records, and these. Raises Rejection."""
    if not isinstance(value, dict):
        raise Rejection(400, 3, f"the body is not a JSON object with {signal.resources[0]}.")
    for resource in _members(value, signal.resources):
        bare = {key: inner for key, inner in resource.items() if key not in signal.scopes}
        for scope in _members(resource, signal.scopes):
            yield (bare, {key: inner for key, inner in scope.items() if key not in signal.records},
                   list(_members(scope, signal.records)))


def _members(owner: dict[str, Any], names: tuple[str, str]) -> Iterator[dict[str, Any]]:
    for name in dict.fromkeys(names):
        members = owner.get(name)
        if members is not None and not (isinstance(members, list) and all(isinstance(each, dict) for each in members)):
            raise Rejection(400, 3, f"{name} is not a list of objects.")
        yield from members or ()


def _varint(number: int) -> bytes:
    written = bytearray()
    while number > 127:
        written.append(number & 127 | 128)
        number >>= 7
    written.append(number)
    return bytes(written)


def _varint_field(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _field(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content
