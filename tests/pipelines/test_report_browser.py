"""The report in a real browser: nothing is asked for, nothing of a log runs, and everybody can read it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from benchmarks.report_warehouse import fill
from tests.browser import DESKTOP, PHONE, new_page, violations
from tests.conftest import once
from tests.pipelines.test_report import Parsed, written
from warehouse.store import Store

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("browser")]
HOSTILE = (
    "<script>alert(1)</script>", "</script><img src=x onerror=alert(2)>", "\"><svg onload=alert(3)>", "javascript:alert(4)",
    "</style></title></svg>]]><iframe src=//example.com>", "{{ 7 * 7 }} ${alert(5)} datum.x",
    "' onfocus='alert(6)' autofocus='", "\x00\x1b[31m\u202egnp.exe\u2028\ufeff", "https://example.com/" + "x" * 5_000)
"""What a log may say."""


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the report on a warehouse every name of which is hostile."""
    def make(out: Path) -> None:
        fill(out, 3_000)
        with Store.open(out / "warehouse.duckdb") as store:
            for table, key, columns in (
                    ("mart.names", "family", ("name", "sentence")), ("mart.decisions", "subject", ("detail", "reason")),
                    ("core.tools", "tool", ("tool",)), ("mart.signals", "signal", ("signal",)),
                    ("mart.families", "family", ("goal",)), ("mart.environments", "environment", ("image_skip_reason",))):
                for column in columns:
                    word = f"$words[1 + (hash({key}) % {len(HOSTILE)})::int]"
                    store.change(f"update {table} set {column} = {word} || {key}", words=list(HOSTILE))
            store.change("insert into mart.decisions select 'drift', word, false, word, word, null, null from "
                         "(select unnest($words) as word)", words=list(HOSTILE))
            store.publish()
        written(out, out / "report")

    return once(tmp_path_factory, "hostile_report", make) / "report" / "index.html"


def test_words_of_logs_are_text(page_file: Path) -> None:
    page = Parsed(page_file.read_text("utf-8"))
    assert page.tags.count("script") == 1 and not {"iframe", "img", "object", "form"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    assert any(HOSTILE[0] in text for text in page.texts), "it stands there, as text"
    assert "https://example.com" in " ".join(page.texts) and not [value for value in page.all_of("href") if "example" in value]


@pytest.mark.parametrize(("scheme", "size"), [("light", DESKTOP), ("dark", PHONE)], ids=["desktop", "phone"])
def test_everybody_can_read_it(browser: Browser, page_file: Path, scheme: str, size: dict[str, int]) -> None:
    said: list[str] = []
    page = new_page(browser, said, color_scheme=scheme, viewport=size)
    page.goto(page_file.as_uri())
    page.locator("summary").first.click()
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"], "nothing sticks out"
    shown = "[...document.querySelectorAll('.plot')].filter(plot => plot.getBoundingClientRect().width > 0).length"
    assert page.evaluate(shown) == page.locator("figure").count(), "each chart stands there once"
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, ground[4:-1].split(","))) < 200) == (scheme == "dark")
    assert said == [], "no error, no dialog, nothing asked of another machine, nothing that the policy had to stop"
    page.context.close()


def test_keys_alone_read_a_chart_out(browser: Browser, page_file: Path) -> None:
    said: list[str] = []
    page = new_page(browser, said)
    page.goto(page_file.as_uri())
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.keyboard.press("Enter")
    page.locator("#families-map .picture").focus()
    heard = []
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft", "End"):
        page.keyboard.press(key)
        heard.append(page.locator("#said").text_content())
        assert page.locator("#tip").is_visible() and page.locator("#tip").text_content() == heard[-1]
    assert heard[0] == heard[2] != heard[1] and "session" in (heard[0] or "")
    assert "smaller families" in (heard[3] or ""), "the last box is all others"
    page.keyboard.press("Escape")
    assert page.locator("#tip").is_hidden()
    page.locator("#families-map .wide .mark").first.hover()
    assert page.locator("#tip").text_content() == heard[0]
    assert said == []
    page.context.close()


def test_it_can_be_read_without_its_script(browser: Browser, page_file: Path) -> None:
    page = new_page(browser, [], java_script_enabled=False)
    page.goto(page_file.as_uri())
    assert page.locator("#families-map .wide title").count() > 30
    page.locator("#families-map summary").click()
    assert page.locator("#families-map tbody tr").first.is_visible()
    page.context.close()
