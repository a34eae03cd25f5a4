"""Two hosts of one site, a browser without a window and Chromium: what they show, what they ask for, how fast they are.

    python benchmarks/browser_hosts.py ../shared/data/portal

Serves pages as recorded, with the style sheets and scripts that the HARs hold. `items_recall` and `items_precision`: of the
interactive items (role and name) that Chromium's snapshot shows, up to two pages of each path, how many the other host shows;
and of these, how many Chromium shows. `journals_equal`: the share of recorded sessions (all that a browser recorded, a dozen
that a proxy did) which, played as clicks and forms, ask for the same in both hosts. Plays in which a script of the page wrote a
field otherwise than it was typed (an input mask) cannot be equal; they are counted apart, as `plays_rewritten`.
`toggles_equal`: the share of menus, tabs and windows of pages whose opening shows the same items in both. `steps_s` is on
one core with snapshot, pages parsed before; `cold_steps_s` sees every page for the first time. Prints one JSON object last.
"""

from __future__ import annotations

import base64
import json
import re
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from env_builder.runtime.site import forms
from env_builder.runtime.site.activation import is_toggle
from env_builder.runtime.site.addresses import resolve
from env_builder.runtime.site.browser import SiteBrowser
from env_builder.runtime.site.port import Delivery, PortAnswer, PortRequest
from env_builder.runtime.site.shown_pages import ShownPage, ViewShelf
from env_builder.runtime.site.styling import Styles
from env_builder.runtime.site.trees import Element
from env_builder.site.chromium import ChromiumHost
from env_builder.site.loopback import StaticFile
from env_builder.site.parsing import parse
from env_builder.site.styles import compile_styles

INTERACTIVE = frozenset({
    "button", "checkbox", "combobox", "link", "listbox", "menuitem", "menuitemcheckbox", "menuitemradio", "option", "radio",
    "searchbox", "slider", "spinbutton", "switch", "tab", "textbox", "treeitem"})
_LINE = re.compile(r"""\s*- '?(\w+)(?: ("(?:[^"\\]|\\.)*"))?""").match
_PAGES_OF_A_PATH = 2
_N_PLAIN = 12
_ROUNDS = 30
Call = tuple[str, dict[str, Any]]


class RecordedEntry(NamedTuple):
    """A request of a HAR with its answer."""

    request: PortRequest
    answer: PortAnswer


class RecordedSite:
    """The HARs of a folder: sessions, static files, style sheets."""

    def __init__(self, folder: Path) -> None:
        self.sessions: dict[str, list[RecordedEntry]] = {}
        self.by_browser: set[str] = set()
        """Sessions that a browser recorded."""
        self.files: dict[str, StaticFile] = {}
        self.origin = ""
        self._trees: dict[str, Element] = {}
        sheets: dict[str, str] = {}
        for path in sorted(folder.glob("*.har")):
            entries = self.sessions.setdefault(path.stem, [])
            log = json.loads(path.read_bytes())["log"]
            if log.get("browser"):
                self.by_browser.add(path.stem)
            for entry in log["entries"]:
                kind, body = _body(entry["response"]["content"])
                url = urlsplit(entry["request"]["url"])
                self.origin = self.origin or f"{url.scheme}://{url.netloc}"
                if entry.get("_resourceType") == "document":
                    entries.append(self._entry(entry, kind, body))
                elif body is not None:
                    self.files[url.path] = kind, body
                    if kind.startswith("text/css"):
                        sheets[url.path] = body.decode()
        inline = {"".join(child for child in element.children if isinstance(child, str))
                  for tree in self._trees.values() for element in tree.elements() if element.tag == "style"}
        self.styles = compile_styles(sheets, sorted(inline))

    def _entry(self, entry: Mapping[str, Any], kind: str, body: bytes | None) -> RecordedEntry:
        request, response = entry["request"], entry["response"]
        url = urlsplit(request["url"])
        target = (url.path or "/") + (f"?{url.query}" if url.query else "")
        form = None
        if request["method"] == "POST":
            posted = request.get("postData") or {}
            form = tuple(parse_qsl(posted.get("text") or "", keep_blank_values=True))
        asked = PortRequest(request["method"], target, form)
        status = response["status"]
        location = next((each["value"] for each in response["headers"] if each["name"].lower() == "location"), None)
        if location is not None and 300 <= status < 400:
            return RecordedEntry(asked, PortAnswer(status, "recorded", location=location))
        if kind.startswith("text/html") and body is not None:
            text = body.decode("utf-8", "replace")
            if text not in self._trees:
                self._trees[text] = parse(text)
            return RecordedEntry(asked, PortAnswer(status, "recorded", page=self._trees[text]))
        return RecordedEntry(asked, PortAnswer(status, "recorded", file=Delivery(url.path.rpartition("/")[2], kind, None)))


def _body(content: Mapping[str, Any]) -> tuple[str, bytes | None]:
    text, kind = content.get("text"), str(content.get("mimeType") or "")
    if text is None:
        return kind, None
    return kind, base64.b64decode(text) if content.get("encoding") == "base64" else str(text).encode()


class CassettePort:
    """One recorded session as a port: each request gets its next recorded answer, the last one again after that."""

    def __init__(self, entries: Sequence[RecordedEntry]) -> None:
        self._answers: dict[tuple[str, str], list[PortAnswer]] = {}
        for entry in entries:
            self._answers.setdefault(entry.request[:2], []).append(entry.answer)
        self._n_asked: Counter[tuple[str, str]] = Counter()
        self.journal: list[PortRequest] = []

    def ask(self, request: PortRequest) -> PortAnswer:
        """Answer as recorded; 404 for what this session never asked for."""
        self.journal.append(request)
        answers = self._answers.get(request[:2])
        if answers is None:
            return PortAnswer(404, "unknown")
        place = min(self._n_asked[request[:2]], len(answers) - 1)
        self._n_asked[request[:2]] += 1
        return answers[place]


class PagesPort:
    """Pages by their number."""

    def __init__(self, pages: Sequence[Element]) -> None:
        self._pages = pages

    def ask(self, request: PortRequest) -> PortAnswer:
        """Answer /N with page N."""
        return PortAnswer(200, "recorded", page=self._pages[int(request.url[1:])])


def items_of(snapshot: str) -> Counter[tuple[str, str]]:
    """Return the interactive items of a snapshot's lines: role and name."""
    items: Counter[tuple[str, str]] = Counter()
    for line in snapshot.splitlines():
        match = _LINE(line)
        if match is not None and match[1] in INTERACTIVE:
            name = match[2] or '""'
            items[match[1], json.loads(name.replace("''", "'") if line.lstrip().startswith("- '") else name)] += 1
    return items


def pages_of(site: RecordedSite) -> list[Element]:
    """Return up to two pages of each path, ids in it aside."""
    chosen: dict[str, list[Element]] = {}
    for entry in (each for session in site.sessions.values() for each in session):
        if entry.answer.page is not None and entry.answer.status == 200:
            path = re.sub(r"\d+", "0", f"{entry.request.method} {urlsplit(entry.request.url).path}")
            pages = chosen.setdefault(path, [])
            if len(pages) < _PAGES_OF_A_PATH and not any(page is entry.answer.page for page in pages):
                pages.append(entry.answer.page)
    return [page for _, pages in sorted(chosen.items()) for page in pages]


def compare_items(site: RecordedSite, host: ChromiumHost) -> dict[str, Any]:
    """Return how far the items of both hosts agree."""
    pages = pages_of(site)
    port, n_both, n_chromium, n_own = PagesPort(pages), 0, 0, 0
    own = SiteBrowser(port, site.origin, styles=Styles(site.styles))
    real = host.open(port, site.origin, files=site.files)
    for number in range(len(pages)):
        call: Call = ("browser_navigate", {"url": f"/{number}"})
        shown, theirs = (items_of(browser.call(*call).content) for browser in (own, real))
        n_both, n_chromium, n_own = n_both + (shown & theirs).total(), n_chromium + theirs.total(), n_own + shown.total()
        for text, which in (("only in Chromium", theirs - shown), ("not in Chromium", shown - theirs)):
            for item, count in which.items():
                print(f"page {number}: {text}: {count} x {item}")
    real.close()
    return {"pages": len(pages), "items": n_chromium, "items_recall": round(n_both / n_chromium, 4),
            "items_precision": round(n_both / n_own, 4)}


def compare_toggles(site: RecordedSite, host: ChromiumHost) -> dict[str, Any]:
    """Return whether both hosts show the same items after a click on what a page marks as showing something, each name once."""
    pages = pages_of(site)
    port, names, n_equal = PagesPort(pages), set[tuple[str, str]](), 0
    own = SiteBrowser(port, site.origin, styles=Styles(site.styles))
    real = host.open(port, site.origin, files=site.files)
    for number in range(len(pages)):
        own.call("browser_navigate", {"url": f"/{number}"})
        page = own.page
        view = own.view(page) if page is not None else None
        for element, node in list(view.nodes.items()) if view is not None else ():
            if view is None or page is None or not is_toggle(view.page, element) or not node.name or (
                    node.role, node.name) in names or node.role not in INTERACTIVE:
                continue
            names.add((node.role, node.name))
            calls: list[Call] = [("browser_navigate", {"url": f"/{number}"}),
                                 ("browser_click", {"target": _selector(own, page, element)})]
            shown, theirs = ([items_of(browser.call(*call).content) for call in calls][-1] for browser in (own, real))
            n_equal += shown == theirs
            if shown != theirs:
                print(f"page {number}: {node.role} {node.name!r} shows {theirs - shown} in Chromium, not {shown - theirs}")
    real.close()
    return {"toggles": len(names), "toggles_equal": round(n_equal / len(names), 3) if names else None}


def script_of(site: RecordedSite, entries: Sequence[RecordedEntry], shelf: ViewShelf) -> list[Call]:
    """Return a recorded session as calls of tools: links and forms of the page where it has them, else an address."""
    browser = SiteBrowser(CassettePort(entries), site.origin, shelf=shelf)
    calls: list[Call] = []
    follows_redirect = False
    for entry in entries:
        if not follows_redirect:
            for call in _calls_for(browser, entry.request):
                calls.append(call)
                result = browser.call(*call)
                if result.is_error:
                    print(f"refused: {call}: {result.content[:200]}")
        follows_redirect = entry.answer.location is not None
    return calls


def _calls_for(browser: SiteBrowser, request: PortRequest) -> Iterator[Call]:
    page = browser.page
    if page is not None and request.method == "GET":
        view = browser.view(page)
        for number, node in view.nodes.items():
            if node.role == "link" and node.name and _target(page, dict(node.properties).get("url", "")) == request.url:
                same = view.select(f"role=link[name={json.dumps(node.name)}]") or []
                if number in same:
                    target = f"role=link[name={json.dumps(node.name, ensure_ascii=False)}] >> nth={same.index(number)}"
                    yield "browser_click", {"target": target}
                    return
    if page is not None and (form := _form_for(browser, page, request)) is not None:
        yield from _fill(browser, page, form, request)
        return
    if request.method == "GET":
        yield "browser_navigate", {"url": request.url}


def _target(page: ShownPage, reference: str) -> str | None:
    address = resolve(page.address, reference)
    return address.target if address is not None else None


def _form_for(browser: SiteBrowser, page: ShownPage, request: PortRequest) -> int | None:
    """Return the form of a page that sends such a request: method, address, names of fields."""
    flat = browser.view(page).page
    asked = urlsplit(request.url)
    names = {name for name, _ in (request.form if request.form is not None else parse_qsl(asked.query, keep_blank_values=True))}
    for form in flat.of_tag.get("form", ()):
        attributes = flat.attributes[form]
        address = _target(page, attributes.get("action", "") or page.address)
        own = {flat.attributes[each].get("name") for each in forms.controls(flat, form)}
        if attributes.get("method", "get").lower() == request.method.lower() and names <= own and address is not None and (
                address == request.url if request.method == "POST" else address.partition("?")[0] == asked.path):
            return form
    return None


def _fill(browser: SiteBrowser, page: ShownPage, form: int, request: PortRequest) -> Iterator[Call]:
    view = browser.view(page)
    flat = view.page
    values = dict(request.form if request.form is not None else parse_qsl(urlsplit(request.url).query, keep_blank_values=True))
    fields, submit = [], None
    for number in forms.controls(flat, form):
        node, name, kind = view.nodes.get(number), flat.attributes[number].get("name"), forms.kind_of(flat, number)
        if node is None:
            continue
        target = _selector(browser, page, number)
        if kind in ("submit", "image"):
            if submit is None or (name in values and flat.attributes[number].get("value", "") == values[name]):
                submit = target
        elif name not in values:
            continue
        elif forms.takes_text(flat, number) and values[name] != forms.value(flat, {}, number):
            fields.append({"target": target, "name": name, "type": "textbox", "value": values[name].replace("\r\n", "\n")})
        elif kind == "select":
            chosen = [each for each in forms.options(flat, number) if forms.option_value(flat, each) == values[name]]
            if chosen and (chosen[0],) != forms.selection(flat, {}, number):
                label = forms.option_label(flat, chosen[0])
                fields.append({"target": target, "name": name, "type": "combobox", "value": label})
        elif kind == "checkbox" and not forms.is_checked(flat, {}, number):
            fields.append({"target": target, "name": name, "type": "checkbox", "value": "true"})
    if fields:
        yield "browser_fill_form", {"fields": fields}
    if submit is not None:
        yield "browser_click", {"target": submit}


def _selector(browser: SiteBrowser, page: ShownPage, number: int) -> str:
    view = browser.view(page)
    node = view.nodes[number]
    selector = f"role={node.role}[name={json.dumps(node.name, ensure_ascii=False)}]" if node.name else f"role={node.role}"
    return f"{selector} >> nth={(view.select(selector) or []).index(number)}"


def compare_plays(site: RecordedSite, host: ChromiumHost) -> dict[str, Any]:
    """Return whether both hosts ask for the same in the same plays, and how many steps a second they take."""
    shelf = ViewShelf(Styles(site.styles))
    plain = sorted(site.sessions.keys() - site.by_browser)
    chosen = [*sorted(site.by_browser), *plain[::max(1, len(plain) // _N_PLAIN)][:_N_PLAIN]]
    scripts = {name: script_of(site, site.sessions[name], shelf) for name in chosen}
    equal: dict[str, bool] = {}
    rewritten: set[str] = set()
    n_requests, seconds = 0, 0.0
    for name in chosen:
        own, real = CassettePort(site.sessions[name]), CassettePort(site.sessions[name])
        browser = SiteBrowser(own, site.origin, shelf=shelf)
        other = host.open(real, site.origin, files=site.files)
        for call in scripts[name]:
            began = time.perf_counter()
            theirs = other.call(*call)
            seconds += time.perf_counter() - began
            ours = browser.call(*call)
            if ours.is_error or theirs.is_error:
                print(f"{name}: {call}: {ours.content[:200]!r} | {theirs.content[:200]!r}")
            if call[0] == "browser_fill_form" and any(
                    field["value"] not in theirs.content for field in call[1]["fields"] if _is_plain_text(field)):
                rewritten.add(name)
        n_requests += len(own.journal)
        equal[name] = own.journal == real.journal == other.site.journal
        for one, two in zip(own.journal, real.journal, strict=False):
            if one != two:
                print(f"{name}{' (rewritten)' if name in rewritten else ''}: {one} | {two}")
                break
        other.close()
    n_calls = sum(map(len, scripts.values()))
    comparable = [each for name, each in equal.items() if name not in rewritten]
    figures = {"plays": len(chosen), "plays_calls": n_calls, "plays_requests": n_requests, "plays_rewritten": len(rewritten),
               "journals_equal": round(statistics.mean(comparable), 3), "chromium_steps_s": round(n_calls / seconds, 1)}
    return figures | speed(site, scripts)


def _is_plain_text(field: Mapping[str, Any]) -> bool:
    """Whether a snapshot shows a field's value as it is: one line, no password."""
    return field["type"] == "textbox" and "pass" not in field["target"].lower() and field["value"].isprintable() and (
        '"' not in field["value"])


def speed(site: RecordedSite, scripts: Mapping[str, Sequence[Call]]) -> dict[str, Any]:
    """Return steps a second on one core, of pages seen before and for the first time, and the median of a fork."""
    shelf = ViewShelf(Styles(site.styles))
    rounds, forks = [], []
    for _ in range(_ROUNDS):
        n_steps, began = 0, time.process_time()
        for name, calls in scripts.items():
            browser = SiteBrowser(CassettePort(site.sessions[name]), site.origin, shelf=shelf)
            for call in calls:
                n_steps += not browser.call(*call).is_error
        rounds.append(n_steps / (time.process_time() - began))
        port = CassettePort([])
        for _ in range(100):
            start = time.perf_counter_ns()
            browser.fork(port).restore(browser.snapshot())
            forks.append(time.perf_counter_ns() - start)
    return {"steps_s": round(statistics.median(rounds[1:])), "cold_steps_s": round(rounds[0]),
            "fork_p50_us": round(statistics.median(forks) / 1_000, 2)}


def hosts(data: Path) -> dict[str, Any]:
    """Return the figures of both hosts."""
    site = RecordedSite(data / "logs" / "har")
    with ChromiumHost() as host:
        return compare_items(site, host) | compare_toggles(site, host) | compare_plays(site, host)


if __name__ == "__main__":
    print(json.dumps({"benchmark": "browser_hosts", "figures": hosts(Path(sys.argv[1]))}))
