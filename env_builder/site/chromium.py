"""Real Chromium as the second host of a site: the same tools over the same port, and screenshots.

In: a `SitePort`, recorded static files. Out: a driver that answers the calls that `SiteBrowser` answers, and a journal of the
same requests. Pages come from a server on loopback that is the browser's only way out. Scripts run if recorded files hold them.
Needs the package playwright and a Chromium: that of `TRACEROOM_CHROMIUM`, of the system, or Playwright's own.

Sees: what Chromium shows, as Playwright's snapshot for agents writes it, refs drawn by a seed. Does not see: frames elsewhere.
A question (`confirm`) is dismissed at once and the click is made again when it is accepted.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from env_builder.runtime.canonical import digest
from env_builder.runtime.records import Result
from env_builder.runtime.schemas import refusal
from env_builder.runtime.site.accessible_names import squeeze_text
from env_builder.runtime.site.addresses import resolve, typed_address
from env_builder.runtime.site.browser import Deliver
from env_builder.runtime.site.browser_tools import TOOLS, with_targets
from env_builder.runtime.site.finding import compiled, indent, subtree, windows_around
from env_builder.runtime.site.port import SitePort
from env_builder.runtime.site.snapshot import RefDraw
from env_builder.site.loopback import LoopbackSite, StaticFile
from warehouse.errors import Unavailable

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Locator, Page, Playwright, Response

_PLACES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_REF = re.compile(r"\[ref=(e\d+)\]")
_SHOWN = re.compile(r" \[cursor=[a-z-]+\]")
_TIMEOUT_MS = 3_000
_SETTLE_MS = 30
"""How long a script may take to begin a navigation after a click."""
_TRANSITION_MS = 350
"""How long menus, tabs and windows of a page take to open after a click that leads nowhere."""
_MOST_REFS = 99_990
_WATCH = """addEventListener('invalid', event => {
  if (!window.__refused) window.__refused = event.target.validationMessage || 'invalid value';
}, true)"""
_OUTSIDE = ["--disable-background-networking", "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
            "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"]
"""Nothing leaves this machine but through the proxy."""


class ChromiumRefusal(Exception):
    """A call that makes no sense here; its text is the answer."""


class ChromiumHost:
    """A Chromium process; a context manager. Sessions of it share nothing."""

    def __init__(self, executable: str | None = None) -> None:
        self._executable = executable or os.environ.get("TRACEROOM_CHROMIUM") or next(
            (path for name in _PLACES if (path := shutil.which(name))), None)
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None

    def __enter__(self) -> ChromiumHost:
        """Start the process. Errors: `Unavailable` where Playwright or Chromium is missing."""
        try:
            from playwright.sync_api import Error, sync_playwright
        except ImportError as error:
            raise Unavailable("Chromium as a host needs the package playwright",
                              hint='install it: pip install "traceroom[chromium]"') from error
        hint = "install Debian's package chromium, or name an executable in TRACEROOM_CHROMIUM"
        if self._executable is not None and not os.access(self._executable, os.X_OK):
            raise Unavailable(f"cannot start Chromium: {self._executable} is no executable", hint=hint)
        self._playwright = sync_playwright().start()
        try:
            self._browser = self._playwright.chromium.launch(executable_path=self._executable, headless=True, args=_OUTSIDE)
        except Error as error:
            self._playwright.stop()
            raise Unavailable(f"cannot start Chromium: {error.message.splitlines()[0]}", hint=hint) from error
        return self

    def __exit__(self, *exception: object) -> None:
        """End the process."""
        if self._browser is not None:
            self._browser.close()
        if self._playwright is not None:
            self._playwright.stop()

    def open(self, port: SitePort, origin: str, **options: Any) -> ChromiumBrowser:
        """Return a browser with cookies and history of its own; see `ChromiumBrowser`."""
        if self._browser is None:
            raise ValueError("the host was not started: use it in a with statement")
        return ChromiumBrowser(self._browser, port, origin, **options)

    def draw(self, html: str, width: int = 1280, height: int = 720) -> str:
        """Return a picture (PNG in base64) of a page that runs and loads nothing."""
        if self._browser is None:
            raise ValueError("the host was not started: use it in a with statement")
        context = self._browser.new_context(
            viewport={"width": width, "height": height}, java_script_enabled=False, offline=True)
        try:
            page = context.new_page()
            page.set_content(html)
            return b64encode(page.screenshot()).decode()
        finally:
            context.close()


class ChromiumBrowser:
    """One person's browser in one episode, over real Chromium; close it after use."""

    def __init__(
        self, browser: Browser, port: SitePort, origin: str, *, files: Mapping[str, StaticFile] | None = None, seed: int = 0,
        width: int = 1280, height: int = 720, scripts: bool = True, deliver: Deliver | None = None,
        read_file: Callable[[str], bytes] | None = None,
    ) -> None:
        """`files`: recorded static files by path; `read_file` gives the bytes of a file to upload, OSError for none."""
        self.site = LoopbackSite(origin, files)
        self.site.serve(port, deliver)
        self._read_file = read_file
        self._context = browser.new_context(
            proxy={"server": self.site.proxy, "bypass": "<-loopback>"}, viewport={"width": width, "height": height},
            java_script_enabled=scripts, service_workers="block", accept_downloads=True)
        self._context.set_default_timeout(_TIMEOUT_MS)
        if scripts:
            self._context.add_init_script(_WATCH)
        self._scripts = scripts
        self._refs = RefDraw.draw(1, _MOST_REFS, int(digest(f"{seed}")[:24], 16))
        self._known_refs: set[str] = set()
        self._pages: list[Page] = []
        self._n_navigations = 0
        self._statuses: dict[Page, int] = {}
        """Of the pages' last documents."""
        self._question: str | None = None
        self._accepts = False
        self._repeat: Callable[[], object] | None = None
        """Makes a click again that asked a question."""
        self._chooser: Any = None
        self._notes: list[str] = []
        self._context.on("page", self._add)
        self._page = self._context.new_page()

    def call(self, tool: str, arguments: Mapping[str, Any], key: str | None = None) -> Result:
        """Answer a call of a tool, `browser_take_screenshot` among them: its content is the image in base64."""
        from playwright.sync_api import Error

        if tool not in TOOLS:
            return Result(f"unknown tool {tool!r}; there are: {', '.join(TOOLS)}", True, "derived")
        arguments = with_targets(arguments)
        wrong = refusal(TOOLS[tool][2], arguments, "the arguments")
        if wrong:
            return Result(wrong, True, "derived")
        n_asked, n_downloads = len(self.site.journal), len(self.site.downloads)
        n_navigations = self._n_navigations if self._scripts and tool in ("browser_click", "browser_press_key") else -1
        self._notes = []
        try:
            self._check_modal(tool)
            text = _TOOLS[tool](self, arguments)
            if text is None:
                self._settle(n_navigations)
                self._notes += self._refused_field()
                self._notes += self.site.downloads[n_downloads:]
                text = self._report()
        except ChromiumRefusal as refused:
            return Result(str(refused), True, "derived")
        except Error as error:
            return Result(error.message.splitlines()[0], True, "derived")
        tier: Any = self.site.tiers[-1] if len(self.site.journal) > n_asked and self.site.tiers else "derived"
        return Result(text, False, tier)

    def lines(self) -> list[str]:
        """Return the lines of the current page's snapshot, refs as they are drawn, passwords as dots."""
        text = _SHOWN.sub("", self._page.aria_snapshot(mode="ai"))
        self._known_refs = set(_REF.findall(text))
        text = _REF.sub(lambda match: f"[ref={self._refs.ref(int(match[1][1:]))}]", text)
        return self._without_passwords(text.splitlines())

    def _without_passwords(self, lines: list[str]) -> list[str]:
        """Return the lines with what stands in fields for passwords as dots."""
        fields = self._page.locator("input[type=password]")
        for place, value in enumerate(fields.evaluate_all("each => each.map(one => one.value)")):
            match = _REF.search(fields.nth(place).aria_snapshot(mode="ai")) if value else None
            if match is None:
                continue
            ref = f"[ref={self._refs.ref(int(match[1][1:]))}]"
            start = next((number for number, line in enumerate(lines) if ref in line), len(lines))
            shown = squeeze_text(value)
            for number in range(start, start + len(subtree(lines, start)) if start < len(lines) else start):
                for written in (f": {shown}", f": {json.dumps(shown, ensure_ascii=False)}"):
                    if lines[number].endswith(written):
                        lines[number] = f"{lines[number].removesuffix(written)}: {'•' * len(value)}"
        return lines

    def close(self) -> None:
        """Close the browser's pages and the server."""
        self._context.close()
        self.site.close()

    def _add(self, page: Page) -> None:
        self._pages.append(page)
        page.on("dialog", self._answer_dialog)
        page.on("filechooser", self._take_chooser)
        page.on("close", lambda closed: self._pages.remove(closed))
        page.on("response", lambda response: self._note_status(page, response))
        page.on("request", lambda request: self._count(request.is_navigation_request()))

    def _note_status(self, page: Page, response: Response) -> None:
        if response.request.is_navigation_request() and response.frame == page.main_frame:
            self._statuses[page] = response.status

    def _count(self, is_navigation: bool) -> None:
        self._n_navigations += is_navigation

    def _answer_dialog(self, dialog: Dialog) -> None:
        if dialog.type == "alert" or self._accepts:
            if dialog.type == "alert":
                self._notes.append(f"The page said: {dialog.message}")
            dialog.accept()
        else:
            self._question = dialog.message
            dialog.dismiss()

    def _take_chooser(self, chooser: Any) -> None:
        self._chooser = chooser

    def _navigate(self, arguments: Mapping[str, Any]) -> None:
        address = resolve(self.site.origin, typed_address(arguments["url"], resolve(self.site.origin, "/") or _never()))
        if address is None:
            raise ChromiumRefusal(f"invalid address {arguments['url'][:200]!r} (expected a page of {self.site.origin})")
        if address.host != self.site.host:
            raise ChromiumRefusal(f"cannot reach {address.origin}; only {self.site.origin} is there")
        self._go(lambda: self._page.goto(address._replace(origin=self.site.origin).text))

    def _go(self, navigate: Callable[[], object]) -> None:
        """Navigate; a download is no error."""
        from playwright.sync_api import Error

        n_downloads = len(self.site.downloads)
        try:
            navigate()
        except Error as error:
            if len(self.site.downloads) == n_downloads and "ERR_ABORTED" not in error.message:
                raise

    def _back(self, arguments: Mapping[str, Any]) -> None:
        self._go(self._page.go_back)

    def _snapshot(self, arguments: Mapping[str, Any]) -> str | None:
        if "target" not in arguments and "depth" not in arguments:
            return None
        lines = self.lines()
        if "target" in arguments:
            text = _SHOWN.sub("", self._locate(arguments["target"]).aria_snapshot(mode="ai"))
            lines = _REF.sub(lambda match: f"[ref={self._refs.ref(int(match[1][1:]))}]", text).splitlines()
        deepest = 2 * (int(arguments.get("depth", 1_000)) - 1)
        return "\n".join(["### Result", *(line for line in lines if indent(line) <= deepest)])

    def _click(self, arguments: Mapping[str, Any]) -> None:
        target = self._locate(arguments["target"])
        options: dict[str, Any] = {name: arguments[name] for name in ("button", "modifiers") if name in arguments}
        click = target.dblclick if arguments.get("doubleClick") else target.click
        self._asking(lambda: click(**options))

    def _asking(self, act: Callable[[], object]) -> None:
        """Do something that may ask a question first."""
        self._repeat = act
        act()

    def _type(self, arguments: Mapping[str, Any]) -> None:
        target = self._locate(arguments["target"])
        if arguments.get("slowly"):
            target.press_sequentially(arguments["text"])
        else:
            target.fill(arguments["text"])
        if arguments.get("submit"):
            self._asking(lambda: target.press("Enter"))

    def _fill_form(self, arguments: Mapping[str, Any]) -> None:
        for field in arguments["fields"]:
            target = self._locate(field["target"])
            if field["type"] in ("checkbox", "radio"):
                target.set_checked(field["value"] == "true")
            elif field["type"] == "combobox":
                target.select_option(label=field["value"])
            else:
                target.fill(field["value"])

    def _select_option(self, arguments: Mapping[str, Any]) -> None:
        self._locate(arguments["target"]).select_option(arguments["values"])

    def _press(self, arguments: Mapping[str, Any]) -> None:
        self._asking(lambda: self._page.keyboard.press(arguments["key"]))

    def _wait_for(self, arguments: Mapping[str, Any]) -> None:
        if not {"time", "text", "textGone"} & arguments.keys():
            raise ChromiumRefusal("give at least one of time, text and textGone")
        longest = 1_000 * arguments.get("time", 5)
        if "text" in arguments:
            self._page.get_by_text(arguments["text"]).first.wait_for(state="visible", timeout=longest)
        elif "textGone" in arguments:
            self._page.get_by_text(arguments["textGone"]).first.wait_for(state="hidden", timeout=longest)
        else:
            self._page.wait_for_timeout(longest)

    def _upload(self, arguments: Mapping[str, Any]) -> None:
        chooser, self._chooser = self._chooser, None
        if chooser is None:
            raise ChromiumRefusal("no field waits for files; click the field first")
        payloads = []
        for path in arguments.get("paths", ()):
            try:
                content = self._read_file(path) if self._read_file is not None else b""
            except OSError:
                raise ChromiumRefusal(f"no file {path!r}") from None
            payloads.append({"name": path.replace("\\", "/").rpartition("/")[2], "mimeType": "application/octet-stream",
                             "buffer": content})
        if "paths" in arguments:
            chooser.set_files(payloads)

    def _handle_dialog(self, arguments: Mapping[str, Any]) -> None:
        if self._question is None or self._repeat is None:
            raise ChromiumRefusal("no dialog is open")
        self._question = None
        if arguments["accept"]:
            self._accepts = True
            try:
                self._repeat()
                self._settle()
            finally:
                self._accepts = False

    def _tabs(self, arguments: Mapping[str, Any]) -> str | None:
        action, index = arguments["action"], int(arguments.get("index", self._pages.index(self._page)))
        if action == "list":
            return "\n".join(["### Result", *self._tab_lines()])
        if action == "new":
            self._page = self._context.new_page()
            if "url" in arguments:
                self._navigate(arguments)
            return None
        if index >= len(self._pages) or (action == "select" and "index" not in arguments):
            raise ChromiumRefusal(f"give the index of a tab, 0 to {len(self._pages) - 1}")
        if action == "select":
            self._page = self._pages[index]
            return None
        self._pages[index].close()
        if self._page not in self._pages:
            self._page = self._pages[min(index, len(self._pages) - 1)] if self._pages else self._context.new_page()
        return None

    def _find(self, arguments: Mapping[str, Any]) -> str:
        if ("text" in arguments) == ("regex" in arguments):
            raise ChromiumRefusal("give either text or regex")
        expression = compiled(arguments["regex"]) if "regex" in arguments else re.compile(
            re.escape(arguments["text"]), re.IGNORECASE)
        if isinstance(expression, str):
            raise ChromiumRefusal(expression)
        lines = self.lines()
        numbers = [number for number, line in enumerate(lines) if expression.search(line)]
        shown = arguments.get("regex") or repr(arguments["text"])
        if not numbers:
            return f"### Result\nNo matches found for {shown}."
        chosen = numbers[:int(arguments.get("maxResults", len(numbers)))]
        windows = "\n\n----\n\n".join("\n".join(window) for window in windows_around(lines, chosen))
        return f"### Result\nFound {len(numbers)} match{'es' if len(numbers) != 1 else ''} for {shown}:\n\n{windows}"

    def _screenshot(self, arguments: Mapping[str, Any]) -> str:
        kind = arguments.get("type", "png")
        if "target" in arguments:
            return b64encode(self._locate(arguments["target"]).screenshot(type=kind)).decode()
        return b64encode(self._page.screenshot(type=kind, full_page=bool(arguments.get("fullPage")))).decode()

    def _locate(self, target: str) -> Locator:
        number = self._refs.number(target)
        if number is not None:
            if f"e{number}" not in self._known_refs:
                raise ChromiumRefusal(f"Ref {target} not found in the current page snapshot. Try capturing new snapshot.")
            return self._page.locator(f"aria-ref=e{number}")
        if not target.startswith("role="):
            raise ChromiumRefusal(f'invalid target {target[:200]!r} (expected a ref such as e12, or role=ROLE[name="NAME"])')
        return self._page.locator(target)

    def _settle(self, n_navigations: int = -1) -> None:
        """Wait until the navigations that an action began have ended; if none began (`n_navigations`), until the page rests."""
        if n_navigations == self._n_navigations and self._question is None and self._chooser is None:
            self._page.wait_for_timeout(_TRANSITION_MS)
        while True:
            n_before = self._n_navigations
            if self._scripts:
                self._page.wait_for_timeout(_SETTLE_MS)
            self._page.wait_for_load_state("load")
            if self._n_navigations == n_before:
                return

    def _refused_field(self) -> list[str]:
        """Return the note that a field kept a form from being sent."""
        if not self._scripts:
            return []
        message = self._page.evaluate("() => { const said = window.__refused; window.__refused = null; return said }")
        return [f"The form was not sent: {message}"] if message else []

    def _check_modal(self, tool: str) -> None:
        if self._question is not None and tool not in ("browser_handle_dialog", "browser_snapshot"):
            raise ChromiumRefusal(f"a dialog is open ({self._question!r}); answer it with browser_handle_dialog")
        if self._chooser is not None and tool not in ("browser_file_upload", "browser_snapshot"):
            raise ChromiumRefusal("a file chooser is open; use browser_file_upload, without paths to cancel it")

    def _report(self) -> str:
        parts = ["### Result", *(f"- {note}" for note in self._notes)] if self._notes else []
        if len(self._pages) > 1:
            parts += ["### Open tabs", *self._tab_lines()]
        parts += ["### Page", f"- Page URL: {self._page.url}"]
        title = " ".join(self._page.title().split())
        parts += [f"- Page Title: {title}"] if title else []
        status = self._statuses.get(self._page, 200)
        parts += [f"- HTTP status: {status}"] if not 200 <= status < 400 else []
        if self._question is not None:
            parts += ["### Modal state", f'- ["confirm" dialog with message "{self._question}"]: can be handled by '
                                         "browser_handle_dialog"]
        elif self._chooser is not None:
            parts += ["### Modal state", "- [File chooser]: can be handled by browser_file_upload"]
        return "\n".join([*parts, "### Snapshot", "```yaml", *self.lines(), "```"])

    def _tab_lines(self) -> list[str]:
        return [f"- {number}:{' (current)' if page == self._page else ''} [{' '.join(page.title().split())}]({page.url})"
                for number, page in enumerate(self._pages)]


def _never() -> Any:
    raise ValueError("the site has no address")


_TOOLS: dict[str, Callable[[ChromiumBrowser, Mapping[str, Any]], str | None]] = {
    "browser_navigate": ChromiumBrowser._navigate, "browser_navigate_back": ChromiumBrowser._back,
    "browser_snapshot": ChromiumBrowser._snapshot, "browser_click": ChromiumBrowser._click,
    "browser_type": ChromiumBrowser._type, "browser_fill_form": ChromiumBrowser._fill_form,
    "browser_select_option": ChromiumBrowser._select_option, "browser_press_key": ChromiumBrowser._press,
    "browser_wait_for": ChromiumBrowser._wait_for, "browser_file_upload": ChromiumBrowser._upload,
    "browser_handle_dialog": ChromiumBrowser._handle_dialog, "browser_tabs": ChromiumBrowser._tabs,
    "browser_find": ChromiumBrowser._find, "browser_take_screenshot": ChromiumBrowser._screenshot}
