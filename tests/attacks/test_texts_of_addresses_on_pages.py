"""Addresses that hold scripts: what a page repeats of its own address, its filters and its errors stays text."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlencode

import pytest

from pipelines.browser.pages import PAGES
from tests.attacks.hostile_run import GROUP, SAID, hostile_run
from tests.attacks.pages import HIDDEN, Page, on
from tests.attacks.report import Report

NAMES = ("id", "words", "outcome", "service", "family", "after", "from", "sort", "order", "since", "until", "with", "step",
    "check", "kind",
         "sample", "seed", "reason", "stage", "back", "q", "policy", "room")


def attack(folder: Path, share: float) -> Report:
    """Ask for each page with a hostile text as each of its parameters, as its path, and as somebody's name in a cookie."""
    server, problems, n_tried = on(hostile_run()), [], 0
    texts = SAID if share >= 0.1 else SAID[:2]
    cookie = server.enter()
    for path in [*PAGES, "/nowhere", "/<script>alert(1)</script>", "/sessions.html", "/sessions.csv", "/enter"]:
        for text in texts:
            for names in (NAMES, *([name] for name in NAMES)) if share >= 0.1 else (NAMES,):
                n_tried += 1
                status, headers, answer = server.ask(
                    f"{path}?{urlencode(dict.fromkeys(names, text))}", Cookie=f"{cookie}; traceroom_author=<script>x</script>")
                problems += [f"{path}: {status}"] if status >= 500 else []
                if headers["content-type"].startswith("text/html") and path != "/report":
                    problems += [f"{path}, {text[:30]!r}: {each}" for each in Page(answer).problems() if "data:," not in each]
                    problems += [f"{path}: hidden characters"] if HIDDEN.search(answer) else []
                elif "<script" in answer and "nosniff" not in headers.get("x-content-type-options", ""):
                    problems.append(f"{path}: its type may be guessed")
    server.stop()
    return Report(n_tried, tuple(problems))


@pytest.mark.slow
@pytest.mark.xdist_group(GROUP)
def test_what_a_page_repeats_is_text(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
