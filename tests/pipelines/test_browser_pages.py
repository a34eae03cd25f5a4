"""The pages in a real browser: correct, run again, see who said so and why; hostile words do nothing; all can be read."""

from __future__ import annotations

import json
import shutil
import urllib.parse
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser import PHONE, browser, new_page, violations  # noqa: F401
from tests.command_line import process
from tests.pipelines.conftest import part_of_sample
from tests.pipelines.test_browser import TOKEN, Server, addresses, known, warehouse_of
from warehouse.store import Store

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]


def opened(server: Server, page: Page, path: str = "/") -> None:
    address = urllib.parse.urlencode({"token": TOKEN, "back": path})
    page.goto(f"http://127.0.0.1:{server.port}/enter?{address}")


def test_what_is_corrected_in_the_browser_is_so_after_the_next_run(
        browser: Browser, run_once: tuple[Path, str], tmp_path: Path) -> None:  # noqa: F811
    logs, out, said = part_of_sample(tmp_path / "logs"), tmp_path / "out", list[str]()
    shutil.copytree(run_once[0], out)
    session = known(out, "select session_id from mart.outcomes where probability > 0.9 order by all")
    family = known(out, "select family from mart.families order by all")
    task = known(out, "select task_id from mart.tasks join mart.rubrics using (task_id) join mart.decisions "
                 "on subject = task_id where stage = 'verify' and kept "
                 f"and not list_contains(session_ids, '{session}') order by all")
    server = Server(out)
    try:
        page = new_page(browser, said)
        opened(server, page, f"/session?id={session}")
        page.get_by_text("Correct the outcome").click()
        page.get_by_label("failed").check()
        form = page.locator("form:has(textarea)")
        form.get_by_label("Your name").fill("Ada <script>alert(1)</script>")
        form.get_by_label("Why").fill("the wrong flight")
        form.get_by_role("button", name="Correct").click()
        page.get_by_text("waits for the next run").wait_for()
        page.goto(f"http://127.0.0.1:{server.port}/family?id={family}")
        page.get_by_text("Correct the name").click()
        page.get_by_label("Name", exact=True).fill("what we call it")
        page.get_by_label("Why").fill("our word")
        page.get_by_role("button", name="Correct", exact=True).click()
        page.goto(f"http://127.0.0.1:{server.port}/task?id={task}")
        page.locator(".checks > li").last.get_by_text("Change this check").click()
        page.get_by_label("Description").fill("So we say.")
        page.get_by_label("accept it", exact=True).check()
        page.get_by_label("Why").fill("it is a duty")
        page.get_by_role("button", name="Keep", exact=True).click()
        page.get_by_text("waits for the next run").wait_for()
        done = process("run", "--no-image", logs, "--out", out)
        assert done.returncode == 0, done.stderr
        page.goto(f"http://127.0.0.1:{server.port}/session?id={session}")
        assert "says that it failed: the wrong flight" in page.locator("tr.person").inner_text()
        assert page.locator(".decision .failed").inner_text().startswith("1 %")
        page.goto(f"http://127.0.0.1:{server.port}/family?id={family}")
        assert page.locator("h1").inner_text() == "what we call it"
        assert "followed" in page.locator("#corrected").inner_text()
        page.goto(f"http://127.0.0.1:{server.port}/task?id={task}")
        assert "accepted it: it is a duty" in page.locator("p.person").inner_text().replace("“", "").replace("”", "").replace(
            '"', "")
        assert page.get_by_text("So we say.").count() >= 1
        page.context.close()
        assert said == []
    finally:
        server.stop()
    with Store.published(out / "warehouse.duckdb") as store:
        rows = store.read("select author, kind, stands from core.corrections order by happened_at").rows()
    assert [kind for _, kind, stands in rows if stands] == ["outcome", "family", "check"] and "<script>" in rows[0][0]


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
            page.set_viewport_size(PHONE)
            assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0, path
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
