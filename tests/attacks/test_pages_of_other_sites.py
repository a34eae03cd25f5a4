"""Pages of other sites that call this machine's server: forms, preflights, rebinding names; none is answered."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.attacks.halls import GROUP, hall, spoken
from tests.attacks.report import Report
from tests.attacks.servers import HELLO

KINDS = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain; application/json",
    "", "text/json")
ORIGINS = ("http://evil.example", "null", "http://127.0.0.1.evil.example", "https://localhost.evil.example", "file://",
    "http://[::ffff:7f00:1]",
           "http://evil.example#127.0.0.1", "http://127.0.0.1@evil.example", "chrome-extension://x")


def attack(folder: Path, share: float) -> Report:
    """Ask as a page would: without a preflight, with one, and under a name that now means this machine."""
    server, problems, hello = hall().server, [], json.dumps(HELLO)
    with hall().client() as client:
        for kind in KINDS:
            answer = client.send("POST", "/mcp", hello, **{"Content-Type": kind})
            problems += [f"a form of {kind!r} opens a session"] if answer.status == 200 else []
        for origin in ORIGINS:
            for method, headers in (("OPTIONS", {"Access-Control-Request-Method": "POST"}), ("POST", {}), ("GET", {})):
                answer = client.send(method, "/mcp", hello if method == "POST" else None, Origin=origin, **headers)
                allowed = [name for name in answer.headers if name.startswith("access-control-")]
                problems += [f"{method} of {origin}: {answer.status} {allowed}"] if allowed or answer.status == 200 else []
    own = f"127.0.0.1:{server.port}"
    for hosts in (("evil.example", own), (own, "evil.example"), ("evil.example",), (f"{own}.evil.example",), (),
        (f"{own}, evil.example",)):
        head = "".join(f"Host: {host}\r\n" for host in hosts)
        answer = spoken(server, (f"POST /mcp HTTP/1.1\r\n{head}Content-Type: application/json\r\nConnection: close\r\n"
                                 f"Content-Length: {len(hello)}\r\n\r\n{hello}").encode())
        problems += [f"hosts {hosts} open a session"] if b" 200 " in answer[:20] else []
    return Report(len(KINDS) + 3 * len(ORIGINS) + 6, (*problems, *hall().trouble()))


@pytest.mark.xdist_group(GROUP)
def test_a_page_of_another_site_gets_nothing(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
