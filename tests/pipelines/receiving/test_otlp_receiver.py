"""The receiver's answers, over a socket: what it takes, what it rejects and how, and what happens where the disk is full."""

from __future__ import annotations

import contextlib
import gzip
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest
import requests
import uvicorn
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from pipelines.receiving import receiver as receiver_module
from pipelines.receiving.inbox_spool import DeliveryRule, InboxSpool
from pipelines.receiving.otlp_request import JSON, PROTOBUF, SIGNALS, reads_protobuf
from pipelines.receiving.receiver import OtlpReceiver, ReceiverRules
from tests.command_line import ROOT
from tests.extractors.formats.spans import batch, chat, log, logs
from tests.pipelines.receiving.sdk_spans import canonical_turns, handed_over, sdk_spans, written_dump
from warehouse.errors import InputError

DUMP = ROOT / "tests" / "logs" / "retail_desk" / "otlp" / "2026-03-02.jsonl"
SPANS = orjson.dumps(batch(chat(1, [("user", "hi")], [("assistant", "hello")])))


DEEP = b'{"resourceSpans":[{"scopeSpans":[{"spans":[%s]}]}]}' % (b'{"a":' * 300 + b"1" + b"}" * 300)


@contextlib.contextmanager
def serving(inbox: Path, rules: ReceiverRules | None = None, delivery: DeliveryRule | None = None) -> Iterator[str]:
    """Yield the address of a receiver in this process; at the end everything is handed over."""
    warnings: list[str] = []
    spool = InboxSpool(inbox, delivery or DeliveryRule(free_bytes=0))
    app = OtlpReceiver(spool, rules or ReceiverRules(), warnings.append).application()
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        running = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        running.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            running.join(20)
    assert not running.is_alive()


def post(url: str, body: bytes, content_type: str = JSON, path: str = "/v1/traces", **headers: str) -> requests.Response:
    return requests.post(f"{url}{path}", body, headers={"content-type": content_type, **headers}, timeout=20)


def test_json_and_protobuf_packed_or_not_give_the_events_of_the_dump(tmp_path: Path) -> None:
    message = encode_spans(sdk_spans(DUMP)).SerializeToString()
    resources = [each for line in DUMP.read_bytes().splitlines() for each in orjson.loads(line)["resourceSpans"]]
    bodies = {"json": (orjson.dumps({"resourceSpans": resources}), JSON, DUMP),
              "protobuf": (message, PROTOBUF, written_dump(sdk_spans(DUMP), tmp_path / "dump.jsonl"))}
    for name, (body, content_type, dump) in bodies.items():
        for encoding, packed in (("identity", body), ("gzip", gzip.compress(body[:999]) + gzip.compress(body[999:]))):
            inbox = tmp_path / name / encoding
            with serving(inbox) as url:
                answer = post(url, packed, f"{content_type}; charset=utf-8", **{"content-encoding": encoding})
            assert answer.status_code == 200 and answer.headers["content-type"].startswith(content_type)
            assert answer.content == (b"" if content_type == PROTOBUF else b"{}")
            assert canonical_turns(inbox) == canonical_turns(dump), (name, encoding)


def test_log_records_and_spans_of_a_trace_lie_in_one_file(tmp_path: Path) -> None:
    record = logs(log("gen_ai.user.message", {"content": "hi"}), log("gen_ai.choice", {"message": {"content": "hello"}}))
    message = ExportLogsServiceRequest()
    message.resource_logs.add().scope_logs.add().log_records.add(trace_id=bytes.fromhex("0af7651916cd43dd8448eb211c80319c"),
                                                                 span_id=b"\1" * 8, time_unix_nano=1, severity_number=9)
    with serving(tmp_path) as url:
        assert post(url, orjson.dumps(record), path="/v1/logs").status_code == 200
        assert post(url, SPANS).status_code == 200
        assert post(url, message.SerializeToString(), PROTOBUF, "/v1/logs").status_code == 200
    assert len(list(tmp_path.glob("*.jsonl"))) == 1
    first, second, third = handed_over(tmp_path)
    assert first == record and second == orjson.loads(SPANS)
    [read] = third["resourceLogs"][0]["scopeLogs"][0]["logRecords"]
    assert read == {"timeUnixNano": "1", "severityNumber": 9, "traceId": "0af7651916cd43dd8448eb211c80319c", "spanId": "01" * 8}


@pytest.mark.parametrize(("body", "content_type", "headers", "status", "why"), [
    (b"{", JSON, {}, 400, "not JSON"),
    (b"[]", JSON, {}, 400, "not a JSON object"),
    (b'{"resourceSpans":[{"scopeSpans":{}}]}', JSON, {}, 400, "is not a list"),
    (DEEP, JSON, {}, 400, "stored"),
    (b"\xff\xff\xff", PROTOBUF, {}, 400, "ExportTraceServiceRequest"),
    (b"{}", "text/plain", {}, 415, "content type"),
    (b"{}", JSON, {"content-encoding": "br"}, 415, "'br'"),
    (b"{}", JSON, {"content-encoding": "gzip"}, 400, "not gzip"),
    (gzip.compress(SPANS)[:-9], JSON, {"content-encoding": "gzip"}, 400, "ends too early"),
    (b" " * 5000, JSON, {}, 413, "smaller batches"),
    (gzip.compress(b" " * 5000), JSON, {"content-encoding": "gzip"}, 413, "smaller batches"),
    (SPANS, JSON, {"host": "elsewhere.example"}, 421, "names of this machine"),
], ids=["json", "list", "scopes", "deep", "protobuf", "type", "encoding", "packed", "torn", "long", "unpacked", "name"])
def test_a_bad_request_gets_a_status_in_its_own_encoding(
    tmp_path: Path, body: bytes, content_type: str, headers: dict[str, str], status: int, why: str,
) -> None:
    with serving(tmp_path, ReceiverRules(most_body=4000)) as url:
        answer = post(url, body, content_type, **headers)
        assert post(url, b"{}").status_code == 200, "it goes on"
    assert answer.status_code == status and "retry-after" not in answer.headers
    if content_type == PROTOBUF:
        assert answer.headers["content-type"] == PROTOBUF
        assert answer.content[:2] == b"\x08\x03" and why.encode() in answer.content
    else:
        assert why in answer.json()["message"] and answer.json()["code"] > 0
    assert not list(tmp_path.glob("*.jsonl"))


def test_a_span_that_is_too_long_for_a_line_is_counted_in_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pipelines.receiving.otlp_request.MOST_LINE", 2000)
    spans = batch(chat(1, [("user", "hi")], []), chat(2, [("user", "x" * 3000)], []), chat(3, [("user", "ho")], []))
    message = encode_spans(sdk_spans(DUMP)).SerializeToString()
    with serving(tmp_path) as url:
        answer = post(url, orjson.dumps(spans)).json()["partialSuccess"]
        partial = ExportTraceServiceResponse.FromString(post(url, message, PROTOBUF).content).partial_success
    assert answer["rejectedSpans"] == "1" and "limit the lengths" in answer["errorMessage"]
    assert 0 < partial.rejected_spans < len(sdk_spans(DUMP)) and "limit the lengths" in partial.error_message
    shown = [span for each in handed_over(tmp_path) for span in each["resourceSpans"][0]["scopeSpans"][0]["spans"]]
    assert len(shown) == 2 + len(sdk_spans(DUMP)) - partial.rejected_spans


def test_a_full_disk_is_answered_with_a_time_to_send_again_and_loses_nothing(tmp_path: Path) -> None:
    with serving(tmp_path, delivery=DeliveryRule(free_bytes=1 << 62)) as url:
        answer = post(url, SPANS)
        assert answer.status_code == 503 and int(answer.headers["retry-after"]) > 0
        assert "No space" in answer.json()["message"]
        assert "No space" in requests.get(f"{url}/health", timeout=9).json()["status"]
        assert post(url, b"{").status_code == 400 and post(url, b"{}").status_code == 200
    assert not list(tmp_path.glob("*.jsonl"))


def test_bodies_that_wait_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(receiver_module, "MOST_WAITING", 10_000)
    with serving(tmp_path) as url, socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2]))) as slow:
        slow.sendall(b"POST /v1/traces HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                     b"Content-Length: 9999\r\n\r\n" + b" " * 9900)
        until = time.monotonic() + 60
        while requests.get(f"{url}/health", timeout=9).json()["bytes_waiting"] < 9900 and time.monotonic() < until:
            time.sleep(0.02)
        answer = post(url, SPANS)
        assert answer.status_code == 429 and answer.headers["retry-after"] == "1"
        slow.close()
        while (answer := post(url, SPANS)).status_code != 200 and time.monotonic() < until:
            time.sleep(0.02)
        assert answer.status_code == 200, "what a client gave up waits no longer"


def test_without_the_package_protobuf_is_refused_with_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, SIGNALS["/v1/traces"].request[0], None)   # as where it is not installed
    with serving(tmp_path) as url:
        answer = post(url, encode_spans(sdk_spans(DUMP)).SerializeToString(), PROTOBUF)
        assert post(url, SPANS).status_code == 200
    assert answer.status_code == 415 and b"pip install 'traceroom[otlp]'" in answer.content and not reads_protobuf()


def test_a_second_receiver_of_an_inbox_is_refused(tmp_path: Path) -> None:
    with serving(tmp_path), pytest.raises(InputError, match="another receiver writes there"):
        InboxSpool(tmp_path, DeliveryRule())
