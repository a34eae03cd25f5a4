"""The receiver as a process, with the exporters of the OpenTelemetry SDK."""

from __future__ import annotations

import contextlib
import itertools
import json
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace.export import SpanExportResult

from tests.command_line import ROOT, environ
from tests.pipelines.receiving.sdk_spans import canonical_turns, sdk_spans, span_ids, written_dump

DUMP = ROOT / "tests" / "logs" / "retail_desk" / "otlp" / "2026-03-02.jsonl"


@contextlib.contextmanager
def receiving(
    inbox: Path, *arguments: str, port: int = 0, **settings: str,
) -> Iterator[tuple[subprocess.Popen[str], dict[str, Any]]]:
    """Yield a receiver and what it prints; it is ended if it still runs."""
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "pipelines", "receive", "--inbox", str(inbox), "--port", str(port), "--json", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=environ(**settings))
    try:
        assert process.stdout is not None
        printed = ""
        while not printed.endswith("}\n") and (line := process.stdout.readline()):
            printed += line
        yield process, json.loads(printed)
    finally:
        if process.poll() is None:
            process.terminate()
        process.communicate(timeout=30)


def test_spans_of_the_sdk_give_the_events_of_their_dump(tmp_path: Path) -> None:
    inbox, spans = tmp_path / "inbox", sdk_spans(DUMP)
    random.Random(7).shuffle(spans)
    with receiving(inbox) as (process, printed):
        exporter = OTLPSpanExporter(f"{printed['url']}/v1/traces", compression=Compression.Gzip)
        for start in range(0, len(spans), 7):
            assert exporter.export(spans[start:start + 7]) is SpanExportResult.SUCCESS
        assert requests.get(f"{printed['url']}/health").json() == {
            "status": "ok", "requests": {"200": -(-len(spans) // 7)}, "records": len(spans), "files": 0, "bytes_waiting": 0}
        assert all(path.name.startswith(".") for path in inbox.iterdir()), "the traces are still open"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) in (0, -signal.SIGTERM)
    assert sorted(span_ids(inbox)) == sorted(f"{span.context.span_id:016x}" for span in spans)
    dump = written_dump(sdk_spans(DUMP), tmp_path / "dump.jsonl")
    assert canonical_turns(inbox) == canonical_turns(dump) and len(canonical_turns(dump)) == 50
    assert not list(inbox.glob(".*.spool"))


def test_traces_are_handed_over_once_they_are_quiet(tmp_path: Path) -> None:
    spans, inbox = sdk_spans(DUMP), tmp_path / "inbox"
    with receiving(inbox, "--quiet", "0.2", "--file-seconds", "0") as (_, printed):
        assert OTLPSpanExporter(f"{printed['url']}/v1/traces").export(spans) is SpanExportResult.SUCCESS
        wanted, until = canonical_turns(written_dump(spans, tmp_path / "dump.jsonl")), time.monotonic() + 60
        while (not list(inbox.glob("*.jsonl")) or canonical_turns(inbox) != wanted) and time.monotonic() < until:
            time.sleep(0.05)   # one trace comes after the other
        assert canonical_turns(inbox) == wanted


@pytest.mark.slow
@pytest.mark.parametrize("quiet", ["300", "0"])
def test_what_was_acknowledged_survives_kills_while_it_is_sent(tmp_path: Path, quiet: str) -> None:
    """The receiver is killed at random moments and started again on the same port; the exporter sends on, as exporters do, and
    over again until the last kill, however fast it is. With a quiet time of 0 the receiver is killed while it hands over, too;
    then files cut conversations, and the events are not compared."""
    spans = sdk_spans(DUMP) * 3
    random.Random(11).shuffle(spans)
    acknowledged: list[str] = []
    with receiving(tmp_path) as (process, printed):
        port = int(printed["url"].rpartition(":")[2])
        process.kill()
    is_killed, is_done = threading.Event(), threading.Event()

    def send() -> None:
        exporter = OTLPSpanExporter(f"http://127.0.0.1:{port}/v1/traces", timeout=1.5)
        for n_sent, span in enumerate(itertools.cycle(spans)):
            if n_sent >= len(spans) and is_killed.is_set():
                break
            while exporter.export([span]) is not SpanExportResult.SUCCESS:
                time.sleep(0.02)
            assert span.context is not None
            acknowledged.append(f"{span.context.span_id:016x}")
        is_done.set()

    sending = threading.Thread(target=send)
    sending.start()
    rng, n_kills = random.Random(3), 0
    while not is_done.is_set():
        with receiving(tmp_path, "--quiet", quiet, "--file-seconds", "0", port=port) as (process, _):
            if n_kills < 5:
                is_done.wait(rng.uniform(0.05, 0.6))
                process.kill()
                n_kills += 1
            else:
                is_killed.set()
                is_done.wait(60)
    sending.join(60)
    with receiving(tmp_path):
        pass   # it goes on with what the last one had not handed over, and ends
    assert n_kills == 5 and is_done.is_set() and len(acknowledged) >= len(spans)
    assert set(acknowledged) == set(span_ids(tmp_path))
    dump = written_dump(sdk_spans(DUMP), tmp_path / ".dump.jsonl")
    assert quiet == "0" or canonical_turns(*tmp_path.glob("*.jsonl")) == canonical_turns(dump)


def test_elsewhere_a_request_needs_the_token(tmp_path: Path) -> None:
    token = "a token that is long enough"
    with receiving(tmp_path, "--host", "0.0.0.0", TRACEROOM_RECEIVE_TOKEN=token) as (_, printed):
        assert printed["token"] is None
        url = printed["url"].replace("0.0.0.0", "127.0.0.1")
        assert requests.get(f"{url}/health").status_code == 401
        sent = sdk_spans(DUMP)[:1]
        assert OTLPSpanExporter(f"{url}/v1/traces").export(sent) is SpanExportResult.FAILURE
        with_token = OTLPSpanExporter(f"{url}/v1/traces", headers={"Authorization": f"Bearer {token}"})
        assert with_token.export(sent) is SpanExportResult.SUCCESS
    assert len(span_ids(tmp_path)) == 1
