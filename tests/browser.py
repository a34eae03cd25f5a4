"""A real browser for tests of pages: Debian's Chromium, driven by Playwright; what axe-core finds on a page.

`browser` is a fixture of a module, for Playwright's loop may not run while another test begins one of its own. Tests that
use it are marked `slow`. Whatever a page does that it should not is gathered: its errors, and what it asks of other machines.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE_MS = 60_000
"""How long a page may take to do what a test waits for: far from what is usual, for machines are busy."""
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
_AT_HOME = ("file:", "data:", "blob:", "about:", "http://127.0.0.1:", "http://localhost:", "ws://127.0.0.1:", "ws://localhost:")


def chromium() -> str | None:
    """Where the browser is, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Yield a running headless Chromium."""
    with started() as running:
        yield running


@contextlib.contextmanager
def started() -> Iterator[Browser]:
    """Yield a running headless Chromium."""
    from tests.conftest import lacking

    path = chromium()
    if path is None:
        lacking(f"no browser is there ({', '.join(NAMES)}); apt-get install chromium")
    from playwright.sync_api import sync_playwright

    root = ["--no-sandbox"] if os.geteuid() == 0 else []   # Chromium's sandbox refuses to be root's
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(
            executable_path=path, args=[*root, "--disable-dev-shm-usage", "--disable-gpu"], timeout=PATIENCE_MS)
        yield running
        running.close()


def new_page(browser: Browser, said: list[str], **context: Any) -> Page:
    """Return a page of its own (`color_scheme="dark"`, `viewport=PHONE` …); close `page.context` after it.

    `said` gathers what no good page has: its errors, what its policy blocked, dialogs, and requests that leave the machine.
    """
    page = browser.new_context(**{"viewport": DESKTOP, "reduced_motion": "reduce", **context}).new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.on("console", lambda line: said.append(line.text) if line.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda asked: None if asked.url.startswith(_AT_HOME) else said.append(f"asked for {asked.url}"))

    def dialog(opened: Any) -> None:
        said.append(f"dialog: {opened.message}")
        opened.dismiss()

    page.on("dialog", dialog)
    return page


def violations(page: Page) -> list[str]:
    """Return what axe-core (WCAG 2.2 A and AA, best practices) finds on the page as it stands: a line a node."""
    from axe_playwright_python.sync_playwright import Axe

    tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
    found = Axe().run(page, options={"runOnly": {"type": "tag", "values": tags}}).response["violations"]
    return [f"{rule['id']}: {node['html'][:200]} ({node['failureSummary']})" for rule in found for node in rule["nodes"]]
