"""Addresses in logs that are none: brackets, ports, users, other schemes, escapes, names of other scripts; each request is
read."""

from __future__ import annotations

import json
from pathlib import Path

from extractors.inventory import SourceFile
from extractors.reading import read
from extractors.sessions import assemble
from tests.attacks.report import Report

ADDRESSES = (
    "http://[",
    "http://[::1",
    "http://x:99999/a",
    "http://x:port/a",
    "//",
    "",
    "http://",
    "x",
    "javascript:alert(1)",
    "file:///etc/passwd",
    "http://a@b@c/d",
    "http://%00/x",
    "/%ff%fe",
    "/%2e%2e/%2e%2e/etc/passwd",
    "/" + "a/" * 3_000,
    "/?" + "a=b&" * 5_000,
    "/?a=%ZZ",
    "/#" * 50,
    "http://\u0430.example/x",
    "/\ud800",
    "/\x00",
    "/a b",
    "*",
    "http://x/" + "%25" * 2_000 + "41",
    "/?__proto__=1&constructor=2",
    "/users/../admin",
    "http://[fe80::1%25eth0]/x",
    "http://x/?q=" + "(" * 2_000,
    "HTTP://X/A",
    "/;a=b;c=d?x;y",
    "\\\\x\\y",
)


def attack(folder: Path, share: float) -> Report:
    """Put each address into a browser's log, and a line of a web server's, and put sessions together."""
    problems = []
    for address in ADDRESSES:
        entry = {
            "startedDateTime": "2026-01-01T10:00:00Z",
            "time": 20,
            "request": {
                "method": "POST",
                "url": address,
                "queryString": [],
                "headers": [{"name": "x-session-id", "value": "s1"}, {"name": "Referer", "value": address}],
                "postData": {"mimeType": "application/x-www-form-urlencoded", "text": address},
            },
            "response": {
                "status": 302,
                "headers": [{"name": "Location", "value": address}],
                "content": {"mimeType": "text/html", "text": f'<a href="{address}">'},
            },
        }
        har = json.dumps({"log": {"version": "1.2", "entries": [entry, entry]}}).encode()
        line = f'10.0.0.1 - ada [01/Jan/2026:10:00:00 +0000] "GET {address} HTTP/1.1" 200 12 "{address}" "x"\n'.encode(
            "utf-8", "surrogatepass"
        )
        for name, content in (("a.har", har), ("access.log", line * 3)):
            path = folder / name
            path.write_bytes(content)
            try:
                reading = read(SourceFile(path, path.name))
                assemble(reading.events)
            except Exception as error:
                problems.append(f"{name}, {address[:40]!r}: {type(error).__name__}: {str(error)[:150]}")
                continue
            problems += (
                [f"{name}, {address[:40]!r}: it vanishes"]
                if not reading.events.height and reading.decisions.filter(~reading.decisions["kept"]).is_empty()
                else []
            )
    return Report(2 * len(ADDRESSES), tuple(problems))


def test_every_address_is_read(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
