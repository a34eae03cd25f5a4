"""Line ends in ids, queries, versions and tokens: no header of an answer is an attacker's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.attacks.halls import GROUP, hall, rpc, spoken
from tests.attacks.report import Report
from tests.attacks.servers import HELLO

LINES = ("\r\nX-Planted: 1", "\nX-Planted: 1", "%0d%0aX-Planted:%201", "%0aX-Planted:%201", "\u560d\u560aX-Planted: 1",
    "\r\n\r\n<html>X-Planted: 1",
         "\x85X-Planted: 1", "\u2028X-Planted: 1", "\rX-Planted: 1", "\x00\r\nX-Planted: 1")


def attack(folder: Path, share: float) -> Report:
    """Put each line end wherever an answer might repeat what it was asked."""
    server, problems, n_tried = hall().server, [], 0
    hello = json.dumps(HELLO)
    for line in LINES:
        raw = line.encode("utf-8")
        quoted = "".join(f"%{byte:02X}" if byte < 33 or byte > 126 else chr(byte) for byte in raw)
        for where, query, header in (("query", f"?task={quoted}", ""), ("parameter", f"?{quoted}=1", ""),
                                     ("session", "", f"Mcp-Session-Id: {quoted}\r\n"), ("version", "",
                                     f"Mcp-Protocol-Version: {quoted}\r\n"),
                                     ("origin", "", f"Origin: http://127.0.0.1{quoted}\r\n")):
            n_tried += 1
            head = (f"POST /mcp{query} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nContent-Type: application/json\r\n{header}"
                    f"Connection: close\r\nContent-Length: {len(hello)}\r\n\r\n{hello}")
            answer = spoken(server, head.encode("latin-1"))
            lines = answer.partition(b"\r\n\r\n")[0].lower().splitlines()
            problems += [f"{where}, {line!r}: {each!r}" for each in lines[1:] if each.startswith(b"x-planted")]
    with hall().agent() as agent:
        for line in LINES:
            n_tried += 1
            answer = agent.send("POST", "/mcp", rpc(line, {}, line))
            problems += [f"id {line!r}: {answer.headers}"] if "x-planted" in answer.headers else []
            problems += [] if answer.json["id"] == line else [f"id {line!r} comes back as {answer.json['id']!r}"]
    return Report(n_tried, (*problems, *hall().trouble()))


@pytest.mark.xdist_group(GROUP)
def test_no_line_end_makes_a_header(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
