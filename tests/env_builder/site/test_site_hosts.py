"""Two hosts, one journal: the made-up site over real Chromium shows and asks for what the browser without a window does."""

from __future__ import annotations

import base64
import difflib
import re
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from env_builder.runtime.site.browser import SiteBrowser
from env_builder.runtime.site.port import PortRequest
from env_builder.site.chromium import ChromiumBrowser, ChromiumHost
from env_builder.site.loopback import LoopbackSite, posted_form
from tests.browser import NAMES, chromium
from tests.made_site import ORIGIN, MadePort
from warehouse.errors import Unavailable

Call = tuple[str, dict[str, Any]]


def click(role: str, name: str) -> Call:
    return "browser_click", {"target": f'role={role}[name="{name}"]'}


def type_in(role: str, name: str, text: str, **options: Any) -> Call:
    return "browser_type", {"target": f'role={role}[name="{name}"]', "text": text, **options}


def key(name: str) -> Call:
    return "browser_press_key", {"key": name}


HOME: Call = ("browser_navigate", {"url": "/"})
BACK: Call = ("browser_navigate_back", {})
NAME = type_in("textbox", "Name", "abcd")
PLAYS: dict[str, Sequence[Call]] = {
    "a refused field": [click("button", "Save"), type_in("textbox", "Name", "ab"), click("button", "Save")],
    "too long a text": [type_in("textbox", "Name", "abc def ghi"), click("button", "Save"), BACK],
    "one refusal after the other": [
        NAME, type_in("textbox", "Mail", "no"), click("button", "Save"), type_in("textbox", "Mail", "a@b"),
        type_in("spinbutton", "Count", "4"), click("button", "Save"), type_in("spinbutton", "Count", "3"),
        type_in("textbox", "Site", "x"), click("button", "Save"), type_in("textbox", "Site", "http://x"),
        type_in("textbox", "Code", "a1"), click("button", "Save"), type_in("textbox", "Code", "AB1"), click("button", "Save")],
    "every kind of field": [
        NAME, click("radio", "A"), click("checkbox", "One"), click("checkbox", "Two"),
        ("browser_select_option", {"target": "role=combobox", "values": ["Empty"]}),
        ("browser_select_option", {"target": "role=listbox", "values": ["II", "3"]}), type_in("textbox", "Area", "x\ny"),
        type_in("textbox", "Day", "2026-02-03"),
        ("browser_fill_form", {"fields": [{"target": "role=slider", "name": "r", "type": "slider", "value": "30"}]}),
        click("button", "Save")],
    "buttons": [click("button", "Nothing"), click("button", "Reset"), click("button", "Other")],
    "enter": [type_in("textbox", "First", "1", submit=True), type_in("textbox", "Query", "a b+c~é", submit=True), BACK],
    "questions": [click("button", "Ask"), ("browser_handle_dialog", {"accept": False}), click("button", "Ask"),
                  ("browser_handle_dialog", {"accept": True}), HOME, click("link", "Asking"),
                  ("browser_handle_dialog", {"accept": True})],
    "links": [click("link", "Odd"), BACK, click("link", "Here"), BACK, click("link", "Top"), click("link", "Moved")],
    "forms that lead to their own page": [
        click("link", "Here"), click("button", "Again"), HOME, click("link", "Here"), click("button", "Getting"), BACK],
    "a file": [click("link", "File"), click("link", "Script"), click("link", "Missing"), BACK],
    "a new tab": [click("link", "New"), ("browser_tabs", {"action": "select", "index": 1}), click("link", "Back"),
                  ("browser_tabs", {"action": "close"})],
    "redirects": [click("button", "Kept"), HOME, click("button", "Turned"), BACK],
    "files": [click("button", "Up"), ("browser_file_upload", {"paths": ["a/x.pdf", "ä.txt"]}), click("button", "Send"), HOME,
              click("button", "Send"), HOME, NAME, click("button", "File"), ("browser_file_upload", {"paths": ["z.txt"]}),
              click("button", "Save")],
    "keys": [click("checkbox", "One"), key("Space"), key("Tab"), key("Enter"), type_in("textbox", "Query", "ab"),
             key("Backspace"), key("z"), key("Enter")],
}


@pytest.fixture(scope="module")
def host() -> Iterator[ChromiumHost]:
    from tests.conftest import lacking

    if chromium() is None:
        lacking(f"no browser is there ({', '.join(NAMES)}); apt-get install chromium")
    with ChromiumHost() as running:
        yield running


def lines_of(content: str) -> list[str]:
    """Return what both hosts must answer alike: everything but refs, notes, and the focus of the page as a whole."""
    page = content[content.index("### Page"):] if "### Page" in content else content
    return re.sub(r" \[ref=\w+\]", "", page).replace("generic [active]", "generic").splitlines()


def play(host: ChromiumHost, calls: Sequence[Call]) -> None:
    own, other = MadePort(), MadePort()
    browser, real = SiteBrowser(own, ORIGIN), host.open(other, ORIGIN)
    for tool, arguments in [HOME, *calls]:
        ours, theirs = browser.call(tool, arguments), real.call(tool, arguments)
        difference = list(difflib.unified_diff(lines_of(ours.content), lines_of(theirs.content), "own", "Chromium", n=0))
        assert not difference, (tool, arguments, difference)
        assert ours.is_error == theirs.is_error
    assert own.journal == other.journal == real.site.journal
    real.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", PLAYS)
def test_both_hosts_show_and_ask_for_the_same(host: ChromiumHost, name: str) -> None:
    play(host, PLAYS[name])


@pytest.mark.slow
def test_chromium_reaches_the_site_alone_and_takes_pictures(host: ChromiumHost) -> None:
    port = MadePort()
    browser = host.open(port, ORIGIN)
    assert browser.call("browser_navigate", {"url": "https://other.test/"}).is_error
    assert browser.call(*HOME).tier == "induced"
    assert browser.call(*click("link", "Off")).is_error or "other.test" not in "".join(port.asked)
    assert all(request.url.startswith("/") for request in port.journal)
    picture = browser.call("browser_take_screenshot", {})
    assert base64.b64decode(picture.content).startswith(b"\x89PNG")
    assert browser.call("browser_take_screenshot", {"type": "gif"}).is_error
    assert browser.call("browser_click", {"target": "e1"}).is_error
    browser.close()


@pytest.mark.slow
def test_refs_of_chromium_are_drawn_by_the_seed(host: ChromiumHost) -> None:
    def refs(seed: int) -> tuple[ChromiumBrowser, list[str]]:
        browser = host.open(MadePort(), ORIGIN, seed=seed)
        return browser, re.findall(r"\[ref=(e\d+)\]", browser.call(*HOME).content)
    (one, first), (other, second) = refs(1), refs(2)
    assert first != second
    ref = re.search(r'link "Odd".*\[ref=(e\d+)\]', "\n".join(one.lines()))
    assert ref is not None and "page?a=b" in one.call("browser_click", {"target": ref[1]}).content
    assert one.call("browser_click", {"target": ref[1]}).is_error
    one.close()
    other.close()


def ask(site: LoopbackSite, url: str, data: bytes | None = None, **headers: str) -> tuple[int, dict[str, str], bytes]:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": site.proxy}))
    request = urllib.request.Request(url, data, {"Accept": "text/html", **headers})
    try:
        with opener.open(request, timeout=10) as answer:
            return answer.status, dict(answer.headers), answer.read()
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), error.read()


def test_the_server_asks_the_port_for_pages_alone_and_knows_no_other_host() -> None:
    port = MadePort()
    site = LoopbackSite("https://site.test", {"/s.css": ("text/css", b"a{}")})
    try:
        assert ask(site, f"{ORIGIN}/")[0] == 503
        site.serve(port)
        status, headers, body = ask(site, f"{ORIGIN}/")
        assert status == 200 and headers["Cache-Control"] == "no-store" and b"<title>A  form</title>" in body
        assert ask(site, f"{ORIGIN}/s.css", Accept="text/css")[2] == b"a{}"
        assert ask(site, f"{ORIGIN}/logo.png", Accept="image/png")[0] == 404
        assert ask(site, "http://other.test/")[0] == 403
        status, headers, body = ask(site, f"{ORIGIN}/file.txt")
        assert body == b"text" and "file.txt" in headers["Content-Disposition"]
        assert ask(site, f"{ORIGIN}/kept", b"a=1&b=%C3%A9+x&c=")[0] == 307
        assert port.journal == site.journal == [
            PortRequest("GET", "/", None), PortRequest("GET", "/file.txt", None),
            PortRequest("POST", "/kept", (("a", "1"), ("b", "é x"), ("c", "")))]
    finally:
        site.close()


def test_posted_forms_are_read_in_every_encoding() -> None:
    body = (b'--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n2\r\n--b\r\n'
            b'Content-Disposition: form-data; name="f"; filename="x.pdf"\r\nContent-Type: application/pdf\r\n'
            b'\r\n%PDF\r\n--b\r\n'
            b'Content-Disposition: form-data; name="g"; filename=""\r\n\r\n\r\n--b--\r\n')
    assert posted_form("multipart/form-data; boundary=b", body) == (("a", "1\r\n2"), ("f", "x.pdf"), ("g", ""))
    assert posted_form("text/plain", b"a=1\r\nb=x=y\r\n") == (("a", "1"), ("b", "x=y"))
    assert posted_form("application/x-www-form-urlencoded", b"a=%0D%0A&b") == (("a", "\r\n"), ("b", ""))
    assert posted_form("multipart/form-data", b"nonsense") == ()


def test_a_missing_chromium_is_said_to_be_missing(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="cannot start Chromium"), ChromiumHost(str(tmp_path / "absent")):
        pass
