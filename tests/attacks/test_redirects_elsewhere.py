"""Addresses to go back to that lead to other sites: after the token, a correction, and a review, a browser stays here."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import quote, urljoin, urlsplit

import pytest

from tests.attacks.hostile_run import GROUP, hostile_run
from tests.attacks.pages import on
from tests.attacks.report import Report
from tests.pipelines.test_browser import TOKEN

BACKS = ("//evil.example", "http://evil.example", "/\\evil.example", "\\\\evil.example", "/\t/evil.example",
    "/\n/evil.example", "///evil.example",
         "/%2f/evil.example", "javascript:alert(1)", "data:text/html,x", "/..//evil.example", "/.//evil.example",
         " //evil.example", "/ /evil.example",
         "https:evil.example", "@evil.example", "/@evil.example", "\x00//evil.example", "/\u2028/evil.example",
         "/sessions\r\nLocation: //evil.example",
         "/\uff0f\uff0fevil.example", "/;@evil.example", "?//evil.example", "")


def attack(folder: Path, share: float) -> Report:
    """Follow each as a browser does: it drops tabs and line ends, and takes a backslash for a slash."""
    server, problems = on(hostile_run()), []
    own = f"http://127.0.0.1:{server.port}/enter"
    for back in BACKS:
        for status, headers, _ in (
                server.ask(f"/enter?token={quote(TOKEN)}&back={quote(back, safe='')}"), server.ask("/enter",
                {"token": TOKEN, "back": back})):
            place = headers.get("location", "")
            target = urljoin(own, place.strip().replace("\\", "/").replace("\t", "").replace("\n", "").replace("\r", ""))
            url = urlsplit(target)
            if status != 303 or (url.scheme, url.netloc) != ("http", f"127.0.0.1:{server.port}") or place.startswith("//"):
                problems.append(f"{back!r}: {status} {place!r}")
    server.stop()
    return Report(2 * len(BACKS), tuple(problems))


@pytest.mark.slow
@pytest.mark.xdist_group(GROUP)
def test_a_browser_stays_on_its_server(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
