"""The page of reviews in a real browser: one screen a case, two buttons and a reason; the next run follows the answers."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.browser import PHONE, browser, new_page, violations  # noqa: F401
from tests.command_line import process
from tests.pipelines.conftest import part_of_sample
from tests.pipelines.test_browser import TOKEN, Server
from tests.pipelines.test_browser_pages import opened
from warehouse.store import Store

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]


def test_answers_become_reviews_and_the_next_run_follows_them(
        browser: Browser, run_once: tuple[Path, str], tmp_path: Path) -> None:  # noqa: F811
    logs, out, said = part_of_sample(tmp_path / "logs"), tmp_path / "out", list[str]()
    shutil.copytree(run_once[0], out)
    server = Server(out)
    try:
        page = new_page(browser, said)
        opened(server, page, "/reviews")
        sessions = []
        for name, reason in (("Right", "as asked <script>alert(1)</script>"), ("Wrong", "the wrong day"), ("Right", "")):
            for heading in ("The request", "What was done", "What the policy says", "The end", "Your answer"):
                assert page.get_by_role("heading", name=heading).is_visible()
            assert page.locator(".policy").first.text_content() and page.locator(".telling li").count() > 0
            assert page.locator(".step.call").count()
            sessions.append(page.locator(".about.session a[href^='/session']").get_attribute("href"))
            page.get_by_label("Reason").fill(reason)
            page.get_by_label("Your name").fill("Ada")
            page.get_by_role("button", name=name, exact=True).click()
            page.get_by_text(f"{len(sessions)} answered").wait_for()
        assert len(set(sessions)) == 3
        first = page.locator(".about.session a[href^='/session']").get_attribute("href")
        page.get_by_role("link", name="Skip", exact=True).click()
        assert page.locator(".about.session a[href^='/session']").get_attribute("href") != first
        assert page.locator("p.quiet").last.inner_text().startswith("3 reviews in reviews.jsonl")
        page.context.close()
        page = new_page(browser, said)
        opened(server, page, "/reviews?sample=2")
        page.get_by_label("Your name").fill("Ada")
        page.get_by_role("button", name="Right", exact=True).click()
        page.get_by_text("1 answered").wait_for()
        page.context.close()
        assert said == []
        rows = [json.loads(line) for line in (out / "reviews.jsonl").read_text().splitlines()]
        assert [row["right"] for row in rows] == [True, False, True, True]
        assert [row["sampled"] for row in rows] == [False, False, False, True]
        assert all(row["session_id"] in (link or "") for row, link in zip(rows, sessions, strict=False))
        done = process("run", "--no-image", logs, "--out", out)
        assert done.returncode == 0 and "by 1 random review." in done.stderr, done.stderr
        with Store.published(out / "warehouse.duckdb") as store:
            chances = dict(store.read("select session_id, probability from mart.outcomes").iter_rows())
        assert [chances[row["session_id"]] > 0.5 for row in rows] == [row["right"] for row in rows]
        page = new_page(browser, said)
        opened(server, page, f"{sessions[0]}")
        assert "Ada reviewed it as right: as asked <script>" in page.locator("tr.person").inner_text()
        page.context.close()
        assert said == []
    finally:
        server.stop()


def test_only_who_has_the_token_answers(run_once: tuple[Path, str], tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(run_once[0], out)
    server = Server(out)
    try:
        status, _, text = server.ask("/reviews")
        assert status == 200 and "give its token" in text and "<form" not in text
        form = {"session_id": "s", "answer": "right", "reviewer": "Ada"}
        assert server.ask("/review", form)[0] in (401, 403) and not (out / "reviews.jsonl").exists()
        assert TOKEN not in text
    finally:
        server.stop()


def test_the_page_is_accessible_and_fits_a_phone(browser: Browser, run_once: tuple[Path, str]) -> None:  # noqa: F811
    server, said = Server(run_once[0]), list[str]()
    try:
        for told in ({}, {"color_scheme": "dark"}, {"viewport": PHONE}):
            page = new_page(browser, said, **told)
            opened(server, page, "/reviews")
            assert violations(page) == []
            assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0
            page.context.close()
        assert said == []
    finally:
        server.stop()
