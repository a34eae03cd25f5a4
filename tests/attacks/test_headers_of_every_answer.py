"""Pages in frames, types that are guessed, copies in caches: each answer of the browser's server forbids them, errors too."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.browser.exports import LISTS
from pipelines.browser.pages import PAGES
from tests.attacks.hostile_run import GROUP, hostile_run
from tests.attacks.pages import on
from tests.attacks.report import Report

DEMANDED = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


def attack(folder: Path, share: float) -> Report:
    """Ask for pages, lists, styles, texts, errors and refusals."""
    server, problems, n = on(hostile_run()), [], 0
    asked = [
        (path, None)
        for path in (
            *PAGES,
            *(f"{each}.csv" for each in LISTS),
            *(f"{each}.json" for each in LISTS),
            "/style.css",
            "/enter",
            "/nowhere",
            "/session?id=x",
            "/text?id=x",
            "/sessions?after=zz",
            "/report",
            "/favicon.ico",
        )
    ]
    asked += [(path, {"a": "b"}) for path in ("/correct", "/check", "/review", "/enter", "/sessions")]
    for path, form in asked:
        n += 1
        status, headers, text = server.ask(path, form)
        problems += [f"{path} ({status}) lacks {name}" for name, value in DEMANDED.items() if headers.get(name) != value]
        policy = headers.get("content-security-policy", "")
        problems += (
            [f"{path}: {policy!r}"]
            if "default-src 'none'" not in policy or "unsafe" in policy.replace("'unsafe-inline'", "")
            else []
        )
        is_page = headers["content-type"].startswith("text/html")
        problems += [f"{path}: scripts may run"] if "script" in policy and path != "/report" else []
        problems += (
            [f"{path}: it may be framed"] if is_page and path != "/report" and "frame-ancestors 'none'" not in policy else []
        )
        problems += (
            [f"{path}: it may be kept"] if path != "/style.css" and "no-store" not in headers.get("cache-control", "") else []
        )
        problems += [f"{path}: where it lies is told"] if "Traceback" in text or "site-packages" in text else []
    server.stop()
    return Report(n, tuple(problems))


@pytest.mark.slow
@pytest.mark.xdist_group(GROUP)
def test_every_answer_has_its_headers(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
