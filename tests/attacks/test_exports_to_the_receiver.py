"""Exports to the receiver of traces that are bombs, no exports, or from others' pages: they are refused, and memory stays
flat."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import orjson

from tests.attacks.report import Report
from tests.attacks.servers import HttpClient, command
from tests.extractors.formats.spans import batch, chat

SPANS = orjson.dumps(batch(chat(1, [("user", "hi")], [("assistant", "hello")])))


def attack(folder: Path, share: float) -> Report:
    """Send each body under each type, then an honest one."""
    bomb = gzip.compress(b"{" + b" " * (300 << 20))
    bodies: list[tuple[bytes, dict[str, str]]] = [
        (bomb, {"Content-Encoding": "gzip"}),
        (gzip.compress(bomb), {"Content-Encoding": "gzip"}),
        (bomb[:-8], {"Content-Encoding": "gzip"}),
        (b"x", {"Content-Encoding": "gzip"}),
        (SPANS, {"Content-Encoding": "br"}),
        (SPANS, {"Content-Encoding": "gzip, gzip"}),
        (b"[" * 200_000, {}),
        (b'{"a":' * 100_000, {}),
        (b"null", {}),
        (b"[]", {}),
        (b'{"resourceSpans": 5}', {}),
        (b'{"resourceSpans": [{"scopeSpans": [{"spans": [null]}]}]}', {}),
        (b"\xff" * 10_000, {"Content-Type": "application/x-protobuf"}),
        (b"\x0a\xff\xff\xff\xff\x7f", {"Content-Type": "application/x-protobuf"}),
        (b"\x0a\x02" * 50_000, {"Content-Type": "application/x-protobuf"}),
        (SPANS, {"Content-Type": "text/plain"}),
        (SPANS, {"Content-Type": ""}),
        (SPANS, {"Origin": "http://evil.example"}),
        (SPANS, {"Host": "evil.example"}),
        (json.dumps({"resourceSpans": [{"x": "\ud800"}]}).encode(), {}),
    ]
    problems, inbox = [], folder / "inbox"
    with command("receive", "--inbox", inbox) as server:
        for body, headers in bodies:
            for path in ("/v1/traces", "/v1/logs"):
                with HttpClient(server) as client:
                    answer = client.send("POST", path, body, **headers)
                problems += (
                    [f"{body[:20]!r} {headers}: {answer.status} {answer.body[:80]!r}"]
                    if answer.status >= 500 and "retry-after" not in answer.headers
                    else []
                )
                problems += (
                    [f"{headers} is taken"]
                    if answer.status == 200 and (headers.get("Host") or headers.get("Content-Type") == "text/plain")
                    else []
                )
        for path in ("/", "/v1/traces/../../etc", "/v1/metrics", "/inbox", "/%2e%2e/x"):
            with HttpClient(server) as client:
                problems += [f"GET {path} is answered"] if client.send("GET", path).status == 200 else []
        peak = next(
            line for line in Path(f"/proc/{server.process.pid}/status").read_text().splitlines() if line.startswith("VmHWM")
        )
        problems += [f"it took {int(peak.split()[1]) // 1024} MB"] if int(peak.split()[1]) > 900 * 1024 else []
        with HttpClient(server) as client:
            honest = client.send("POST", "/v1/traces", SPANS)
        problems += [f"an honest export: {honest.status}"] if honest.status != 200 else []
    strange = [path.name for path in folder.rglob("*") if path.is_file() and inbox not in path.parents]
    return Report(2 * len(bodies) + 6, (*problems, *(f"{name} was written" for name in strange)))


def test_what_is_no_export_is_refused(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
