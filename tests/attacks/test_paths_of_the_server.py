"""Addresses that lead elsewhere: dots, doubled slashes, escapes, other methods; none opens the grader or a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attacks.halls import GROUP, hall, rpc, spoken
from tests.attacks.report import Report

PATHS = ("/mcp/../grade", "//grade", "/grade/", "/./grade", "/%67rade", "/mcp%2f..%2fgrade", "/grade;x", "/grade%00",
    "/grade?x", "/GRADE",
         "/mcp/%2e%2e/grade", "/../../../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/journals.jsonl", "/.git/config",
         "/tasks.jsonl", "/static/../tasks.jsonl", "/health/../grade", "/health/grade", "/mcp\\..\\grade", "/docs",
         "/openapi.json",
         "/debug", "/metrics", "/..;/grade", "http://127.0.0.1/grade", "*", "grade")
METHODS = ("GET", "POST", "PUT", "TRACE", "CONNECT", "PROPFIND", "OPTIONS", "HEAD", "DELETE", "DEBUG")
SECRETS = (b"episodes", b"root:", b"task_id", b"rubric", b"session_ids", b"structuredContent")


def attack(folder: Path, share: float) -> Report:
    """Ask for each address with each method, as a grader asks but without the token."""
    server, problems, n_tried = hall().server, [], 0
    body = rpc("tools/call", {"name": "episodes", "arguments": {}}).encode()
    for path in PATHS:
        for method in METHODS if share >= 0.1 else METHODS[:2]:
            n_tried += 1
            head = (f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Type: application/json\r\n"
                    f"Authorization: Bearer x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n")
            answer = spoken(server, head.encode() + body)
            is_health = path.startswith("/health") and b" 200 " in answer[:20] and b"root:" not in answer
            problems += [f"{method} {path}: {answer[:200]!r}"] if not is_health and (
                b" 200 " in answer[:20] or any(secret in answer for secret in SECRETS)) else []
            problems += [f"{method} {path}: the request comes back"] if b"Authorization: Bearer x" in answer else []
    return Report(n_tried, (*problems, *hall().trouble()))


@pytest.mark.xdist_group(GROUP)
def test_no_address_leads_elsewhere(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
