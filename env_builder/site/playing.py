"""Do a recorded piece of work again with the tools of an environment: as links, forms, files and messages, not as requests.

In: a piece of work, the environment's apps. Out: the calls that do it, with the refs of that very play. A link of the page that
leads where the person went is clicked, a form is filled and sent; where the page offers neither, the address is typed. Stops
where a form is not there that was posted. Does not see: what the person read before going on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from env_builder.runtime.apps import AppState
from env_builder.runtime.apps.site import SiteState
from env_builder.runtime.site import forms
from env_builder.runtime.site.addresses import resolve
from env_builder.runtime.site.browser import SiteBrowser
from env_builder.runtime.site.flat import FlatPage
from env_builder.runtime.site.session import one_form
from env_builder.site.choices import PageItem, observed, page_items
from env_builder.site.form_laws import accepted
from env_builder.site.recorded import SECRET, RecordedRequest, login_of
from env_builder.site.work import ChatMessage, FileEvent, PieceOfWork

_CONTROLS = frozenset({"input", "select", "textarea"})


class PlayedCall(NamedTuple):
    """A call and its answer."""

    tool: str
    arguments: dict[str, Any]
    content: str
    is_error: bool
    tier: str
    at: datetime
    """When the person did on record what the call does again."""
    observation: str
    """The page as a snapshot showed it before the call."""
    items: tuple[PageItem, ...]
    """What could be acted on there."""


class PlayStopped(Exception):
    """The work cannot be done again; its text says why."""


def tree_path(path: str) -> str:
    """Return a path of a log as files apps have it: names joined by /."""
    return "/".join(name for name in path.replace("\\", "/").split("/") if name)


class WorkPlayer:
    """Plays one piece of work."""

    def __init__(self, state: AppState, site: SiteState, passwords: Mapping[str, str]) -> None:
        """`state`: of all apps together; `site`: the site's own in it; `passwords`: login -> the environment's password."""
        self._state = state
        self._site = site
        self._passwords = passwords
        self._at = datetime.min
        self.calls: list[PlayedCall] = []

    @property
    def _browser(self) -> SiteBrowser:
        return self._site.browser

    def play(self, piece: PieceOfWork, note: bool = True) -> None:
        """Do everything in the order of time. Errors: PlayStopped where it cannot go on."""
        for at, step in sorted(self._steps(piece, note), key=lambda each: each[0]):
            self._at = at
            if isinstance(step, int):
                self._request(piece, step)
            elif isinstance(step, FileEvent):
                self._file(step)
            else:
                self._call("chat_post", channel=step.channel, text=step.text)

    def _steps(self, piece: PieceOfWork, note: bool) -> Iterator[tuple[datetime, int | FileEvent | ChatMessage]]:
        target: str | None = None
        for place, request in enumerate(piece.session.requests):
            if target is None or not _leads(target, request):
                yield request.at, place
            target = request.location
        yield from ((event.at, event) for event in piece.files if event.operation in ("rename", "copy", "delete"))
        yield from ((message.at, message) for message in piece.notes if note and message.channel and message.thread is None)

    def _call(self, tool: str, **arguments: Any) -> PlayedCall:
        observation, items = observed(self._site), tuple(page_items(self._browser, tool, arguments))
        result = self._state.call(tool, arguments)
        call = PlayedCall(tool, arguments, result.content, result.is_error, result.tier, self._at, observation, items)
        self.calls.append(call)
        if result.is_error:
            raise PlayStopped(f"{tool} was refused: {result.content.splitlines()[0]}")
        return call

    def _file(self, event: FileEvent) -> None:
        if event.operation == "delete":
            self._call("files_delete", path=tree_path(event.path))
        else:
            tool = "files_move" if event.operation == "rename" else "files_copy"
            source, destination = tree_path(event.path), tree_path(event.to or "")
            if not self._state.call("files_hash", {"path": destination}).is_error:   # what is renamed over a file replaces it
                self._call("files_delete", path=destination)
            self._call(tool, source=source, destination=destination)

    def _request(self, piece: PieceOfWork, place: int) -> None:
        request = piece.session.requests[place]
        if request.method == "POST":
            self._post(request, accepted(piece.session, place))
            return
        link = self._link(request.url)
        if link is not None:
            self._call("browser_click", target=link)
        elif not self._search(request):
            self._call("browser_navigate", url=request.url)

    def _link(self, url: str) -> str | None:
        """Return the ref of a link that leads to an address, and that people see."""
        page, wanted = self._browser.page, one_form(url)
        if page is None:
            return None
        flat, nodes = self._flat(), self._browser.view(page).nodes
        for number, tag in enumerate(flat.tags):
            if tag == "a" and number in nodes and "href" in flat.attributes[number]:
                address = resolve(page.address, flat.attributes[number]["href"])
                if address is not None and one_form(address.target) == wanted:
                    return page.refs.ref(number)
        return None

    def _search(self, request: RecordedRequest) -> bool:
        """Send the form of the page that makes such a request; return whether there is one."""
        address = urlsplit(request.url)
        pairs = parse_qsl(address.query, keep_blank_values=True)
        form = self._form("get", address.path, pairs) if pairs else None
        if form is None:
            return False
        return self._send(form, tuple(pairs), request.url)

    def _post(self, request: RecordedRequest, is_taken: bool) -> None:
        pairs, login = request.form or (), login_of(request)
        if self._form("post", request.url, list(pairs)) is None:   # its page was not recorded: it may stand where it is sent to
            self._call("browser_navigate", url=request.url)
        if login is not None:
            password = self._passwords.get(login, "") if is_taken else "wrong"
            pairs = tuple((name, password if self._is_password(name) else value) for name, value in pairs)
        form = self._form("post", request.url, list(pairs))
        if form is None or not self._send(form, pairs, request.url):
            raise PlayStopped(f"the page has no form that is posted to {request.url}")

    def _is_password(self, name: str) -> bool:
        flat = self._flat()
        return any(attributes.get("name") == name and attributes.get("type", "").lower() == "password"
                   for attributes in flat.attributes)

    def _flat(self) -> FlatPage:
        page = self._browser.page
        if page is None:
            raise PlayStopped("no page is open")
        return self._site.shelf.flat(page.tree)

    def _form(self, method: str, url: str, pairs: list[tuple[str, str]]) -> int | None:
        """Return the form that is sent to an address, with the fields most like these."""
        page = self._browser.page
        if page is None:
            return None
        flat, names = self._flat(), {name for name, _ in pairs}
        best: tuple[int, int] | None = None
        for number, tag in enumerate(flat.tags):
            attributes = flat.attributes[number]
            if tag != "form" or (attributes.get("method", "get").lower() or "get") != method:
                continue
            address = resolve(page.address, attributes.get("action") or page.address)
            target = one_form(address.target) if address is not None else ""
            if (target.partition("?")[0] if method == "get" else target) != one_form(url):
                continue
            own = {flat.attributes[each].get("name", "") for each in forms.controls(flat, number)} - {""}
            agreeing = sum(dict(pairs).get(flat.attributes[each].get("name", "")) == flat.attributes[each].get("value")
                           for each in forms.controls(flat, number) if flat.attributes[each].get("type") == "hidden")
            score = 100 * (len(names & own) - len(own - names)) + agreeing
            if best is None or score > best[0]:
                best = score, number
        return None if best is None else best[1]

    def _send(self, form: int, pairs: tuple[tuple[str, str], ...], url: str) -> bool:
        """Fill in a form what differs, and send it by the button that was pressed."""
        page = self._browser.page
        assert page is not None
        flat, nodes = self._flat(), self._browser.view(page).nodes
        wanted: dict[str, list[str]] = {}
        for name, value in pairs:
            wanted.setdefault(name, []).append(value)
        controls = list(forms.controls(flat, form))
        for number in controls:
            name = flat.attributes[number].get("name", "")
            if name and number in nodes and flat.tags[number] in _CONTROLS:
                self._fill(number, wanted.get(name, []))
        buttons = [each for each in forms.submit_buttons(flat, form) if each in nodes]
        pressed = next((each for each in buttons if (
            flat.attributes[each].get("name", ""), flat.attributes[each].get("value", "")) in pairs), None)
        plain = next((each for each in buttons if not flat.attributes[each].get("name")), buttons[0] if buttons else None)
        chosen = pressed if pressed is not None else plain
        now = self._browser.page
        assert now is not None
        if chosen is not None:
            self._call("browser_click", target=now.refs.ref(chosen))
            return True
        text = next((each for each in controls if each in nodes and forms.takes_text(flat, each)), None)
        if text is None:
            return False
        self._call("browser_click", target=now.refs.ref(text))
        self._call("browser_press_key", key="Enter")
        return True

    def _fill(self, number: int, values: list[str]) -> None:
        """Put recorded values into a control, if something else stands there."""
        page = self._browser.page
        assert page is not None
        flat, ref, kind = self._flat(), page.refs.ref(number), forms.kind_of(self._flat(), number)
        if kind in ("checkbox", "radio"):
            own = flat.attributes[number].get("value", "on")
            if forms.is_checked(flat, page.edits, number) != (own in values) and (kind == "checkbox" or own in values):
                self._call("browser_click", target=ref)
        elif flat.tags[number] == "select":
            chosen = [forms.option_value(flat, each) for each in forms.selection(flat, page.edits, number)]
            if values and chosen != values:
                labels = [forms.option_label(flat, each) for each in forms.options(flat, number)
                          if forms.option_value(flat, each) in values]
                self._call("browser_select_option", target=ref, values=labels)
        elif forms.takes_text(flat, number) and values and values[0] != SECRET and (
                forms.value(flat, page.edits, number) != values[0]):
            self._call("browser_type", target=ref, text=values[0])


def _leads(target: str, request: RecordedRequest) -> bool:
    """Return whether a redirect led to this request."""
    return request.method == "GET" and one_form(target) == one_form(request.url)
