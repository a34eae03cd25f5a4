"""Do a recorded piece of work again with the tools of an environment: as links, forms, files and messages, not as requests.

In: a piece of work, the environment's apps. Out: the calls that do it, with the refs of that very play. A link of the page that
leads where the person went is clicked, a form is filled and sent; where the page offers neither, the address is typed. Left
out is what says no more than that the work is done, for nothing depends on it, and how somebody came in again whose session
was lost. Stops where a form is not there that was posted. Does not see: what the person read before going on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

from env_builder.runtime.apps import AppState
from env_builder.runtime.apps.site import SiteState
from env_builder.runtime.site import activation, forms
from env_builder.runtime.site.addresses import resolve
from env_builder.runtime.site.browser import SiteBrowser
from env_builder.runtime.site.flat import FlatPage
from env_builder.runtime.site.session import one_form
from env_builder.runtime.site.shown_pages import ShownPage
from env_builder.site.choices import PageItem, observed, page_items
from env_builder.site.form_laws import accepted
from env_builder.site.recorded import SECRET, RecordedRequest, login_of, lost_requests
from env_builder.site.work import ChatMessage, FileEvent, PieceOfWork

FEW_FIELDS = 5
"""Of a form with so few fields, what was chosen before is said as well."""
_NO_FIELDS = frozenset({"hidden", "submit", "button", "reset", "image"})
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


class Deed(NamedTuple):
    """What a person did on a page, in words of the page."""

    page: str
    """Heading or title."""
    path: str
    fields: tuple[tuple[str, str], ...]
    """(name of a control, what was put into it)."""
    button: str | None
    """Name of what sent the form; None: it has none, or a file was downloaded."""


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
        self._filled: list[tuple[str, str]] = []
        """(name, value) of what was put into the form that is being sent."""
        self._button: str | None = None
        self.deeds: list[Deed] = []
        """Forms that were posted, but logins, and files that were downloaded."""

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
        lost = lost_requests(piece.session)
        for place, request in enumerate(piece.session.requests):
            if (target is None or not _leads(target, request)) and place not in lost:
                yield request.at, place
            target = request.location if place not in lost else None
        yield from ((event.at, event) for event in piece.files if event.operation in ("rename", "copy", "delete"))
        names = [tree_path(path).rpartition("/")[2] for path in (*piece.filed, *(each.filed or "" for each in piece.downloads))]
        yield from ((message.at, message) for message in piece.notes if note and message.channel and message.thread is None
                    and any(name and name in message.text for name in names))

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
        link, heading = self._link(request.url), self._heading()
        if request.file is not None:
            self.deeds.append(Deed(heading, urlsplit(request.url).path, (), None))
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
        form, heading = self._form("post", request.url, list(pairs)), self._heading()
        if form is None or not self._send(form, pairs, request.url):
            raise PlayStopped(f"the page has no form that is posted to {request.url}")
        if login is None and is_taken:
            self.deeds.append(Deed(heading, urlsplit(request.url).path, tuple(self._filled), self._button))

    def _is_password(self, name: str) -> bool:
        flat = self._flat()
        return any(attributes.get("name") == name and attributes.get("type", "").lower() == "password"
                   for attributes in flat.attributes)

    def _heading(self) -> str:
        """Return what the page is called: its first heading, else its title."""
        page = self._browser.page
        flat = self._site.shelf.flat(page.tree) if page is not None else None
        for tag in ("h1", "h2", "title"):
            number = flat.first(tag) if flat is not None else None
            if flat is not None and number is not None and (text := " ".join(flat.text(number).split())):
                return text
        return ""

    def _flat(self) -> FlatPage:
        return self._site.shelf.flat(self._page().tree)

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
        flat = self._flat()
        wanted: dict[str, list[str]] = {}
        for name, value in pairs:
            wanted.setdefault(name, []).append(value)
        controls = list(forms.controls(flat, form))
        self._filled, self._button = [], None
        fields = [each for each in controls if forms.kind_of(flat, each) not in _NO_FIELDS]
        for number in controls:
            name = flat.attributes[number].get("name", "")
            if name and flat.tags[number] in _CONTROLS and flat.attributes[number].get("type", "").lower() != "hidden":
                n_filled = len(self._filled)
                self._fill(number, wanted.get(name, []))
                if flat.tags[number] == "select" and len(self._filled) == n_filled and len(fields) <= FEW_FIELDS:
                    self._filled += self._chosen(number)   # what was chosen already is a part of what was done
        for button in self._buttons(form, pairs):
            if self._reveal(button):
                self._button = self._browser.view(self._page()).name(button) or None
                self._call("browser_click", target=self._page().refs.ref(button))
                return True
        text = next((each for each in controls if forms.takes_text(flat, each) and self._reveal(each)), None)
        if text is None:
            return False
        self._call("browser_click", target=self._page().refs.ref(text))
        self._call("browser_press_key", key="Enter")
        return True

    def _chosen(self, number: int) -> list[tuple[str, str]]:
        """Return (name, label) of what is chosen in a list that people see."""
        page, flat = self._page(), self._flat()
        view = self._browser.view(page)
        labels = [forms.option_label(flat, each) for each in forms.selection(flat, page.edits, number)]
        return [(view.name(number), ", ".join(labels))] if number in view.nodes and any(labels) else []

    def _buttons(self, form: int, pairs: tuple[tuple[str, str], ...]) -> list[int]:
        """Return the buttons that may have sent a form: the one whose name was posted, else those without a name, else all."""
        flat = self._flat()
        buttons = forms.submit_buttons(flat, form)
        pressed = [each for each in buttons if (
            flat.attributes[each].get("name", ""), flat.attributes[each].get("value", "")) in pairs]
        return pressed or [each for each in buttons if not flat.attributes[each].get("name")] or buttons

    def _reveal(self, number: int) -> bool:
        """Open what hides an element (a tab, a menu), by one click or two; return whether people see it then."""
        page = self._page()
        flat, view = self._flat(), self._browser.view(page)
        if number in view.nodes:
            return True
        inner: list[tuple[int, int]] = []
        for toggle in _toggles(flat, view.nodes):
            opened = activation.toggled(flat, view.look, page.opened, toggle)
            after = self._site.shelf.view(page.tree, opened) if opened is not None else None
            if opened is None or after is None:
                continue
            if number in after.nodes:
                self._call("browser_click", target=page.refs.ref(toggle))
                return True
            for second in _toggles(flat, after.nodes.keys() - view.nodes.keys()):
                further = activation.toggled(flat, after.look, opened, second)
                if further is not None and number in self._site.shelf.view(page.tree, further).nodes:
                    inner.append((toggle, second))
        for toggle in inner[0] if inner else ():
            self._call("browser_click", target=page.refs.ref(toggle))
        return bool(inner)

    def _page(self) -> ShownPage:
        page = self._browser.page
        if page is None:
            raise PlayStopped("no page is open")
        return page

    def _fill(self, number: int, values: list[str]) -> None:
        """Put recorded values into a control, if something else stands there and people can get at it."""
        flat, edits = self._flat(), self._page().edits
        kind = forms.kind_of(flat, number)
        change: tuple[str, dict[str, Any], str] | None = None
        if kind in ("checkbox", "radio"):
            own = flat.attributes[number].get("value", "on")
            if forms.is_checked(flat, edits, number) != (own in values) and (kind == "checkbox" or own in values):
                change = "browser_click", {}, "on" if values else "off"
        elif flat.tags[number] == "select":
            chosen = [forms.option_value(flat, each) for each in forms.selection(flat, edits, number)]
            labels = [forms.option_label(flat, each) for each in forms.options(flat, number)
                      if forms.option_value(flat, each) in values]
            if values and chosen != values:
                change = "browser_select_option", {"values": labels}, ", ".join(labels)
        elif forms.takes_text(flat, number) and values and values[0] != SECRET and (
                forms.value(flat, edits, number) != values[0]):
            change = "browser_type", {"text": values[0]}, values[0]
        if change is not None and self._reveal(number):
            name = self._browser.view(self._page()).name(number) or flat.attributes[number].get("name", "")
            self._call(change[0], target=self._page().refs.ref(number), **change[1])
            self._filled.append((name, change[2]))


def _toggles(flat: FlatPage, numbers: Iterable[int]) -> list[int]:
    """Return those of the elements that may show others."""
    return [each for each in sorted(numbers) if activation.is_toggle(flat, each)
            or "aria-expanded" in flat.attributes[each] or "aria-haspopup" in flat.attributes[each]]


def _leads(target: str, request: RecordedRequest) -> bool:
    """Return whether a redirect led to this request."""
    return request.method == "GET" and one_form(target) == one_form(request.url)
