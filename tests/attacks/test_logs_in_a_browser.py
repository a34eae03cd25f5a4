"""Hostile logs in a real browser, wide and narrow: no script runs, nobody else is asked, nothing covers or leaves the page."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.attacks.hostile_run import GROUP, hostile_run
from tests.attacks.pages import crawled, on
from tests.attacks.report import Report, counted
from tests.browser import DESKTOP, PHONE, new_page, started
from tests.pipelines.test_browser import TOKEN

PAGES = 300
WIDTH = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
COVERED = "[...document.querySelectorAll('body *')].filter(e => ['fixed'].includes(getComputedStyle(e).position)).length"


def attack(folder: Path, share: float) -> Report:
    """Open pages of a hostile run, and its report."""
    server, problems, n = on(hostile_run()), [], 0
    addresses = [address for address, _ in crawled(server, counted(PAGES, share, 14), Cookie=server.enter())]
    with started() as browser:
        for size in (DESKTOP, PHONE):
            noticed: list[str] = []
            page = new_page(browser, noticed, viewport=size)
            page.goto(f"http://127.0.0.1:{server.port}/enter?{urlencode({'token': TOKEN, 'back': '/'})}")
            for address in [*addresses, "/report"]:
                n += 1
                page.goto(f"http://127.0.0.1:{server.port}{address}")
                problems += [f"{address}: {width} pixels stick out" for width in [page.evaluate(WIDTH)] if width > 0]
                problems += [f"{address}: something covers it" for covers in [page.evaluate(COVERED)] if covers]
            problems += noticed
            page.context.close()
    server.stop()
    return Report(n, tuple(problems))


@pytest.mark.slow
@pytest.mark.xdist_group(GROUP)
def test_hostile_logs_do_nothing_in_a_browser(tmp_path: Path) -> None:
    assert attack(tmp_path, 0.01).problems == ()
