"""The pages in a real browser: hostile words do nothing, all can be read in light and dark, and on a phone."""

from __future__ import annotations

import json
import urllib.parse
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser import PHONE, browser, new_page, violations  # noqa: F401
from tests.pipelines.test_browser import TOKEN, Server, addresses, warehouse_of
from warehouse.store import Store

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]


def opened(server: Server, page: Page, path: str = "/") -> None:
    address = urllib.parse.urlencode({"token": TOKEN, "back": path})
    page.goto(f"http://127.0.0.1:{server.port}/enter?{address}")


def test_hostile_words_do_nothing_in_a_browser(browser: Browser, tmp_path: Path) -> None:  # noqa: F811
    said = list[str]()
    server = Server(warehouse_of(tmp_path, 200))
    try:
        page = new_page(browser, said)
        opened(server, page)
        with Store.published(tmp_path / "warehouse.duckdb") as store:
            ids = store.read("select session_id from core.sessions order by all limit 9")["session_id"].to_list()
        for path in ["/", "/families", "/sessions", "/tasks", *(
                f"/{kind}?{urllib.parse.urlencode({'id': name})}" for name in ids for kind in ("session", "task"))]:
            page.goto(f"http://127.0.0.1:{server.port}{path}")
            assert page.evaluate("document.querySelectorAll('script, img, svg, iframe, [onload], [onerror]').length") == 0
        page.context.close()
        assert said == [], json.dumps(said)
    finally:
        server.stop()


def test_pages_are_accessible_in_light_and_dark_and_fit_a_phone(browser: Browser, run_once: tuple[Path, str]) -> None:  # noqa: F811
    server, said = Server(run_once[0]), list[str]()
    paths = [path for path in addresses(run_once[0]) if not path.startswith("/text")]
    try:
        for told in ({}, {"color_scheme": "dark"}, {"viewport": PHONE}):
            page = new_page(browser, said, **told)
            opened(server, page)
            for path in paths if "viewport" in told else paths[::2] if told else paths[1::2]:
                page.goto(f"http://127.0.0.1:{server.port}{path}")
                if "viewport" in told:
                    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
                    assert wide <= 0, (path, wide)
                else:
                    assert violations(page) == [], path
            page.context.close()
        assert said == []
    finally:
        server.stop()
