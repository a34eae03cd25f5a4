"""Logs that would be pages: scripts, styles, SVG, frames and links in every name and text stay text on each page."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.attacks.hostile_run import GROUP, MARK, hostile_run
from tests.attacks.pages import HIDDEN, Page, crawled, on
from tests.attacks.report import Report, counted

PAGES = 1_000


def attack(folder: Path, share: float) -> Report:
    """Read pages of a hostile run as a parser of HTML does, with the forms of who may write."""
    server, problems, n, n_hostile = on(hostile_run()), [], 0, 0
    try:
        for address, text in crawled(server, counted(PAGES, share, 30), Cookie=server.enter()):
            page = Page(text)
            n += 1
            n_hostile += MARK in page.text
            problems += [f"{address}: {problem}" for problem in page.problems() if "data:,'" not in problem]
            if hidden := HIDDEN.search(text):
                problems.append(f"{address}: {text[max(0, hidden.start() - 30):hidden.end() + 30]!r}")
    finally:
        server.stop()
    problems += [] if n_hostile > n / 4 else [f"{n_hostile} of {n} pages show the log"]
    return Report(n, tuple(problems))


@pytest.mark.slow
@pytest.mark.xdist_group(GROUP)
def test_what_logs_hold_is_text_on_every_page(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
