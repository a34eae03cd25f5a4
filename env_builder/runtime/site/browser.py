"""A browser without a window: a client of a site's port that answers the tools of playwright-mcp.

In: a port, and the tools' calls. Out: answers with the page's address, title and accessibility snapshot. It follows links,
redirects and `<base>`, keeps tabs and a history, fills and checks forms and sends them as a browser does. It runs no script:
what answers a click is in `activation.py`. It loads no frame, image or font. A refused call changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from ..records import Result, Tier
from ..schemas import refusal
from . import activation, forms
from .addresses import PageAddress, resolve, typed_address, urlencoded
from .browser_report import changed_lines, report, tab_lines
from .browser_tools import TOOLS, WINDOWLESS, with_targets
from .finding import compiled, indent, subtree, windows_around
from .flat import FlatPage
from .forms import Edit
from .keys import typed_key
from .port import Delivery, PortRequest, SitePort
from .roles import is_disabled, is_focusable
from .shown_pages import BrowserState, BrowserTab, OpenDialog, ShownPage, ViewShelf, moved_edits, refresh_of, same_controls
from .snapshot import PageView, RefDraw, first_ref, random_of
from .styling import Styles
from .trees import Element

Deliver = Callable[[Delivery, str], "str | None"]
"""Takes a downloaded file and its address; returns where it was put."""
MOST_REDIRECTS = 20
_EMPTY = Element("html", {}, [Element("head"), Element("body")])


class BrowserRefusal(Exception):
    """A call that makes no sense here; its text is the answer."""


class SiteBrowser:
    """One person's browser in one episode."""

    def __init__(
        self, port: SitePort, origin: str, *, styles: Styles | None = None, seed: int = 0, snapshots: str = "full",
        deliver: Deliver | None = None, find_file: Callable[[str], bool] | None = None,
        wait: Callable[[float], None] | None = None, shelf: ViewShelf | None = None,
    ) -> None:
        """`origin`: the site's scheme and host; no other can be reached. `seed`: of the refs. `snapshots`: `full`,
        `incremental` (of the same page only what changed) or `none`. `deliver` takes downloads; `find_file` says whether a file
        to upload exists; `wait` lets seconds pass. `shelf`: views shared with other browsers of this site.
        """
        if snapshots not in ("full", "incremental", "none"):
            raise ValueError(f"invalid snapshots {snapshots!r} (expected full, incremental or none)")
        address = resolve(origin, "/")
        if address is None:
            raise ValueError(f"invalid origin {origin!r} (expected http://HOST or https://HOST)")
        self.port = port
        self._site = address
        self._shelf = shelf or ViewShelf(styles or Styles())
        self._seed = seed
        self._snapshots = snapshots
        self._deliver, self._find_file, self._wait = deliver, find_file, wait
        self._state = BrowserState(next_ref=first_ref(seed))
        self._tier: str | None = None
        """Of the last answer of the port in this call."""
        self._notes: list[str] = []
        self._events: list[str] = []

    def snapshot(self) -> BrowserState:
        """Return the browser's state, immutable and without the port's."""
        return self._state

    def restore(self, state: BrowserState) -> None:
        """Return to a state of a browser of the same site."""
        self._state = state

    def fork(self, port: SitePort, **options: Any) -> SiteBrowser:
        """Return the same state before another port (its fork), with other callbacks where they are given."""
        fork = SiteBrowser.__new__(SiteBrowser)
        fork.__dict__.update(self.__dict__)
        fork.port, fork._notes, fork._events = port, [], []
        for name, value in options.items():
            setattr(fork, f"_{name}", value)
        return fork

    @property
    def page(self) -> ShownPage | None:
        """Return the page of the current tab."""
        return self._state.tabs[self._state.current].page

    def call(self, tool: str, arguments: Mapping[str, Any], key: str | None = None) -> Result:
        """Answer a call of a tool. A refused one is an error of one sentence and leaves the browser as it was."""
        if tool not in WINDOWLESS:
            return Result(f"unknown tool {tool!r}; there are: {', '.join(WINDOWLESS)}", True, "derived")
        arguments = with_targets(arguments)
        wrong = refusal(TOOLS[tool][2], arguments, "the arguments")
        if wrong:
            return Result(wrong, True, "derived")
        before = self._state
        self._tier, self._notes, self._events = None, [], []
        try:
            self._check_modal(tool)
            whole = _ANSWERS[tool](self, arguments)
            text = self._report(whole is not False, tool == "browser_snapshot")
        except BrowserRefusal as refused:
            self._state = before
            return Result(str(refused), True, "derived")
        return Result(text, False, self._answer_tier())

    def view(self, page: ShownPage) -> PageView:
        """Return what a page shows."""
        return self._shelf.view(page.tree, page.opened)

    def lines(self) -> list[str]:
        """Return the lines of the current page's snapshot."""
        page = self.page
        return [] if page is None else self.view(page).lines(page.edits, page.focus, page.refs)

    # Tools: each returns whether the page is to be shown; None: it is.

    def _navigate(self, arguments: Mapping[str, Any]) -> None:
        address = self._on_site(self._site.text, typed_address(arguments["url"], self._site))
        page = self.page
        if page is not None and page.holds(address):
            self._to_fragment(page, address)
            return
        self._open(address, "GET", None)

    def _back(self, arguments: Mapping[str, Any]) -> None:
        tab = self._tab
        if tab.place < 1:
            raise BrowserRefusal("there is no page before this one in the tab's history")
        page, now = tab.pages[tab.place - 1], tab.pages[tab.place]
        if page.refs.start == now.refs.start:
            self._replace_tab(BrowserTab(tab.pages, tab.place - 1).changed(now._replace(address=page.address)))
            return
        if page.method != "GET":
            raise BrowserRefusal("the page before this one answered a form that was sent, and going back would send it again; "
                                 "use browser_navigate")
        fresh = self._load(self._on_site(page.address, page.address), "GET", None)
        if fresh is None:
            return
        one, other = self._shelf.flat(page.tree), self._shelf.flat(fresh.tree)
        if page.edits and same_controls(one, other):
            fresh = fresh._replace(edits=moved_edits(one, other, page.edits))
        self._replace_tab(BrowserTab(tab.pages, tab.place - 1).changed(fresh))

    def _snapshot_tool(self, arguments: Mapping[str, Any]) -> bool:
        page = self._page()
        lines = self.lines()
        if "target" in arguments:
            number = self._target(arguments["target"])
            start = next((at for at, line in enumerate(lines) if f"[ref={page.refs.ref(number)}]" in line), None)
            if start is None:
                raise BrowserRefusal(f"the snapshot does not show {arguments['target']!r}")
            lines = subtree(lines, start)
        if "depth" in arguments:
            lines = [line for line in lines if indent(line) <= 2 * (int(arguments["depth"]) - 1)]
        elif "target" not in arguments:
            return True
        self._events.append("\n".join(lines))
        return False

    def _click(self, arguments: Mapping[str, Any]) -> None:
        number = self._target(arguments["target"])
        if arguments.get("button") == "right":
            return
        in_new_tab = arguments.get("button") == "middle" or bool({"Control", "ControlOrMeta", "Meta"} & set(
            arguments.get("modifiers", ())))
        self._activate(number, in_new_tab)
        if arguments.get("doubleClick") and self.page is not None and self._state.dialog is None:
            page = self._shelf.flat(self.page.tree)
            if number < len(page.tags) and page.tags[number] == "input" and forms.kind_of(page, number) == "checkbox":
                self._activate(number, in_new_tab)

    def _type(self, arguments: Mapping[str, Any]) -> None:
        number = self._target(arguments["target"])
        page = self._page()
        text = arguments["text"]
        if arguments.get("slowly"):
            text = forms.value(self._shelf.flat(page.tree), page.edits, number) + text
        self._fill(number, text)
        if arguments.get("submit"):
            self._press({"key": "Enter"})

    def _fill_form(self, arguments: Mapping[str, Any]) -> None:
        for each in arguments["fields"]:
            number, kind, text = self._target(each["target"]), each["type"], each["value"]
            flat = self._flat()
            if kind in ("checkbox", "radio"):
                if text not in ("true", "false"):
                    raise BrowserRefusal(f"invalid value {text!r} for {self._label(number)} (expected true or false)")
                if flat.tags[number] != "input" or forms.kind_of(flat, number) not in ("checkbox", "radio"):
                    raise BrowserRefusal(f"{self._label(number)} is no checkbox and no radio button")
                if forms.is_checked(flat, self._page().edits, number) != (text == "true"):
                    if text == "false" and forms.kind_of(flat, number) == "radio":
                        raise BrowserRefusal(f"{self._label(number)} cannot be unchecked; choose another one of its group")
                    self._activate(number, False)
            elif kind == "combobox" and flat.tags[number] == "select":
                self._choose(number, [text])
            else:
                self._fill(number, text)

    def _select_option(self, arguments: Mapping[str, Any]) -> None:
        self._choose(self._target(arguments["target"]), arguments["values"])

    def _press(self, arguments: Mapping[str, Any]) -> None:
        page, flat, key = self._page(), self._flat(), arguments["key"]
        number = page.focus
        if key == "Tab":
            self._focus_next(1)
        elif key == "Shift+Tab":
            self._focus_next(-1)
        elif number is None:
            return
        elif key in ("Enter", "NumpadEnter") and flat.tags[number] != "textarea":
            self._enter(number)
        elif key in (" ", "Space") and not forms.takes_text(flat, number):
            if flat.tags[number] in ("button", "summary") or forms.kind_of(flat, number) in (
                    "checkbox", "radio", "submit", "button", "reset", "image", "file"):
                self._activate(number, False)
        elif forms.takes_text(flat, number):
            text = typed_key(forms.value(flat, page.edits, number), "Enter" if key == "NumpadEnter" else key)
            if text is not None and "readonly" not in flat.attributes[number]:
                self._fill(number, text)
        elif key in ("ArrowDown", "ArrowUp", "ArrowLeft", "ArrowRight"):
            self._arrow(number, 1 if key in ("ArrowDown", "ArrowRight") else -1)

    def _wait_for(self, arguments: Mapping[str, Any]) -> None:
        if not {"time", "text", "textGone"} & arguments.keys():
            raise BrowserRefusal("give at least one of time, text and textGone")
        wanted, gone = arguments.get("text"), arguments.get("textGone")
        if wanted is None and gone is None:
            self._pass_time(arguments["time"])
            self._notes.append(f"Waited for {arguments['time']:g} s")
            return
        if not self._has_come(wanted, gone):
            refresh = self.page.refresh if self.page is not None else None
            longest = arguments.get("time", 30)
            self._pass_time(min(longest, refresh[0]) if refresh else longest)
            if not self._has_come(wanted, gone):
                what = f"{wanted!r} did not appear" if wanted is not None else f"{gone!r} did not disappear"
                self._notes.append(f"Waited for {longest:g} s: {what}")
                return
        self._notes.append(f"Waited for {wanted if wanted is not None else gone!r}")

    def _upload(self, arguments: Mapping[str, Any]) -> None:
        number = self._state.chooser
        if number is None:
            raise BrowserRefusal("no field waits for files; click the field first")
        self._state = self._state._replace(chooser=None)
        if "paths" not in arguments:
            return
        paths, flat = arguments["paths"], self._flat()
        if len(paths) > 1 and "multiple" not in flat.attributes[number]:
            raise BrowserRefusal(f"{self._label(number)} takes one file, not {len(paths)}")
        for path in paths:
            if not path or (self._find_file is not None and not self._find_file(path)):
                raise BrowserRefusal(f"no file {path!r}")
        names = tuple(path.replace("\\", "/").rpartition("/")[2] for path in paths)
        self._edit(number, names)
        self._notes.append(f"Chose {', '.join(names) or 'no file'} for {self._label(number)}")

    def _handle_dialog(self, arguments: Mapping[str, Any]) -> None:
        dialog = self._state.dialog
        if dialog is None:
            raise BrowserRefusal("no dialog is open")
        self._state = self._state._replace(dialog=None)
        if not arguments["accept"]:
            return
        if dialog.is_form:
            self._send(dialog.element, dialog.submitter, is_confirmed=True)
        else:
            self._act(dialog.element, False)

    def _tabs_tool(self, arguments: Mapping[str, Any]) -> bool | None:
        state, action = self._state, arguments["action"]
        index = int(arguments.get("index", state.current))
        if action == "list":
            self._events.append("\n".join(tab_lines(self._shelf, self._state)))
            return False
        if action == "new":
            self._state = state._replace(tabs=(*state.tabs, BrowserTab()), current=len(state.tabs))
            if "url" in arguments:
                self._navigate(arguments)
            return None
        if index >= len(state.tabs) or (action == "select" and "index" not in arguments):
            raise BrowserRefusal(f"give the index of a tab, 0 to {len(state.tabs) - 1}")
        if action == "select":
            self._state = state._replace(current=index)
            return None
        tabs = state.tabs[:index] + state.tabs[index + 1:] or (BrowserTab(),)
        current = state.current - (index < state.current)
        self._state = state._replace(tabs=tabs, current=min(current, len(tabs) - 1))
        return None

    def _find(self, arguments: Mapping[str, Any]) -> bool:
        if ("text" in arguments) == ("regex" in arguments):
            raise BrowserRefusal("give either text or regex")
        lines = self.lines()
        if "text" in arguments:
            needle, shown = arguments["text"].lower(), repr(arguments["text"])
            numbers = [number for number, line in enumerate(lines) if needle in line.lower()]
        else:
            shown = arguments["regex"]
            expression = compiled(shown)
            if isinstance(expression, str):
                raise BrowserRefusal(expression)
            numbers = [number for number, line in enumerate(lines) if expression.search(line)]
        chosen = numbers[:int(arguments.get("maxResults", len(numbers)))]
        if not chosen:
            self._events.append(f"No matches found for {shown}.")
            return False
        windows = "\n\n----\n\n".join("\n".join(window) for window in windows_around(lines, chosen))
        part = f" (showing first {len(chosen)})" if len(chosen) < len(numbers) else ""
        self._events.append(f"Found {len(numbers)} match{'es' if len(numbers) != 1 else ''} for {shown}{part}:\n\n{windows}")
        return False

    # What the tools do to a page.

    def _activate(self, number: int, in_new_tab: bool) -> None:
        """Click an element. `in_new_tab`: a link is to open in a new tab."""
        flat = self._flat()
        target = activation.answering(flat, number)
        if target is not None and is_disabled(flat, target):
            raise BrowserRefusal(f"{self._label(target)} is disabled")
        self._focus(next((each for each in (number, *flat.ancestors(number)) if is_focusable(flat, each)), None))
        for each in (number, *flat.ancestors(number)) if target is not None else ():
            message = activation.question(flat, each, "onclick")
            if message is not None:
                self._state = self._state._replace(dialog=OpenDialog(message, cast(int, target), None, False))
                return
            if each == target:
                break
        if target is not None:
            self._act(target, in_new_tab)

    def _act(self, number: int, in_new_tab: bool) -> None:
        """Do what an element does when it is clicked."""
        page, flat = self._page(), self._flat()
        tag = flat.tags[number]
        opened = activation.toggled(flat, self.view(page).look, page.opened, number)
        if opened is not None:
            self._change(page._replace(opened=opened, focus=number))
        elif tag in ("a", "area"):
            self._follow(number, flat.attributes[number]["href"], in_new_tab)
        elif tag == "label":
            control = activation.labelled_control(flat, number)
            if control is not None and not is_disabled(flat, control):
                self._activate(control, in_new_tab)
        elif tag == "summary":
            details = flat.parents[number]
            is_open = page.opened.get(details, "open" in flat.attributes[details])
            self._change(page._replace(opened={**page.opened, details: not is_open}))
        elif tag == "option":
            select = flat.closest(number, "select")
            if select is None or self.view(page).nodes[select].role != "listbox":
                raise BrowserRefusal(f"{self._label(number)} is part of a closed list; use browser_select_option")
            self._edit(select, (number,))
        elif tag in ("button", "input"):
            self._press_control(number, forms.kind_of(flat, number))

    def _press_control(self, number: int, kind: str) -> None:
        page, flat = self._page(), self._flat()
        form = forms.owner(flat, number)
        if kind in ("submit", "image") and form is not None:
            self._send(form, number)
        elif kind == "reset" and form is not None:
            own = set(forms.controls(flat, form))
            self._change(page._replace(edits={each: edit for each, edit in page.edits.items() if each not in own}))
        elif kind == "checkbox":
            self._edit(number, not forms.is_checked(flat, page.edits, number))
        elif kind == "radio":
            group = {each: each == number for each in forms.radio_group(flat, number)}
            self._change(page._replace(edits={**page.edits, **group}))
            self._after_change(number)
        elif kind == "file":
            self._state = self._state._replace(chooser=number)

    def _enter(self, number: int) -> None:
        """Press Enter in an element that is no textarea: a button or link is clicked, a field sends its form."""
        flat = self._flat()
        if flat.tags[number] not in ("input", "select") or forms.kind_of(flat, number) in (
                "submit", "image", "button", "reset", "file"):
            self._activate(number, False)
            return
        form = forms.owner(flat, number)
        if form is None:
            return
        buttons = forms.submit_buttons(flat, form)
        if not buttons:
            if forms.sends_by_enter(flat, number) and forms.blocking_fields(flat, form) == 1:
                self._send(form, None)
        elif not is_disabled(flat, buttons[0]):
            message = activation.question(flat, buttons[0], "onclick")
            if message is not None:
                self._state = self._state._replace(dialog=OpenDialog(message, buttons[0], None, False))
            else:
                self._send(form, buttons[0])

    def _send(self, form: int, submitter: int | None, is_confirmed: bool = False, is_checked: bool = True) -> None:
        """Send a form, unless the browser refuses a field or the page asks first."""
        page, flat = self._page(), self._flat()
        attributes = flat.attributes[form]
        own = flat.attributes[submitter] if submitter is not None else {}
        if is_checked and not is_confirmed and "novalidate" not in attributes and "formnovalidate" not in own:
            wrong = forms.first_refusal(flat, page.edits, form)
            if wrong is not None:
                self._focus(wrong[0])
                hidden = "" if wrong[0] in self.view(page).nodes else " (the page does not show this field)"
                self._notes.append(f"The form was not sent. {self._label(wrong[0])}{hidden}: {wrong[1]}")
                return
        message = None if is_confirmed else activation.question(flat, form, "onsubmit")
        if message is not None:
            self._state = self._state._replace(dialog=OpenDialog(message, form, submitter, True))
            return
        method = own.get("formmethod", attributes.get("method", "")).strip().lower()
        if method == "dialog":
            return
        action = own.get("formaction") or attributes.get("action", "").strip() or page.address
        address = self._on_site(self._base(page), action)
        pairs = forms.entries(flat, page.edits, form, submitter)
        in_new = self._in_new_tab(flat, own.get("formtarget", attributes.get("target")))
        if method == "post":
            self._open(address, "POST", tuple(pairs), in_new)
        else:
            target = f"{address.target.partition('?')[0]}?{urlencoded(pairs)}"
            self._open(address._replace(target=target), "GET", None, in_new)

    def _follow(self, number: int, reference: str, in_new_tab: bool) -> None:
        page, flat = self._page(), self._flat()
        address = resolve(self._base(page), reference)
        if address is None:
            if reference.strip().lower().startswith(("mailto:", "tel:", "sms:", "javascript:")):
                self._notes.append(f"{reference.strip()[:200]!r} leads to no page; nothing changed")
                return
            raise BrowserRefusal(f"the link leads to no page: {reference[:200]!r}")
        address = self._on_site(page.address, address.text)
        in_new = in_new_tab or self._in_new_tab(flat, flat.attributes[number].get("target"))
        if not in_new and page.holds(address):
            self._to_fragment(page, address)
        elif "download" in flat.attributes[number]:
            self._load(address, "GET", None)
        else:
            self._open(address, "GET", None, in_new)

    def _to_fragment(self, page: ShownPage, address: PageAddress) -> None:
        if address.text != page.address:
            self._replace_tab(self._tab.opened(page._replace(address=address.text)))

    def _open(
        self, address: PageAddress, method: str, form: tuple[tuple[str, str], ...] | None, in_new_tab: bool = False,
    ) -> None:
        """Ask for a page and show it; a file goes to `deliver`, and the page stays."""
        page = self._load(address, method, form)
        if page is None:
            return
        state, now = self._state, self.page
        if in_new_tab:
            self._state = state._replace(tabs=(*state.tabs, BrowserTab((page,), 0)))
            self._notes.append(f"Opened tab {len(state.tabs)}; select it with browser_tabs")
        elif now is not None and method == "GET" and now.address == address.text:
            self._replace_tab(BrowserTab(self._tab.pages[:self._tab.place + 1], self._tab.place).changed(page))
        else:
            self._replace_tab(self._tab.opened(page))

    def _load(self, address: PageAddress, method: str, form: tuple[tuple[str, str], ...] | None) -> ShownPage | None:
        """Ask the port, follow redirects, and return the page; None: what came is no page."""
        for _ in range(MOST_REDIRECTS + 1):
            answer = self.port.ask(PortRequest(method, address.target, form))
            self._tier = answer.tier
            if answer.location is not None and 300 <= answer.status < 400:
                further = self._on_site(address.text, answer.location)
                address = further if further.fragment is not None else further._replace(fragment=address.fragment)
                if answer.status == 303 or (answer.status in (301, 302) and method == "POST"):
                    method, form = "GET", None
                continue
            if answer.file is not None:
                where = self._deliver(answer.file, address.origin + address.target) if self._deliver is not None else None
                self._notes.append(f"Downloaded file {answer.file.name}" + (f' to "{where}"' if where else ""))
                return None
            if answer.status in (204, 205):
                return None
            tree = answer.page if answer.page is not None else _EMPTY
            refresh = refresh_of(self._shelf.flat(tree), answer.headers)
            if refresh is not None and refresh[0] == 0 and refresh[1]:
                address, method, form = self._on_site(address.text, refresh[1]), "GET", None
                continue
            return self._new_page(address, method, answer.status, answer.tier, tree, refresh)
        raise BrowserRefusal(f"the site redirected more than {MOST_REDIRECTS} times, last to {address.text}")

    def _new_page(self, address: PageAddress, method: str, status: int, tier: str, tree: Element,
                  refresh: tuple[float, str] | None) -> ShownPage:
        state = self._state
        refs = RefDraw.draw(state.next_ref, len(self._shelf.flat(tree).tags), random_of(self._seed, state.n_draws))
        self._state = state._replace(n_draws=state.n_draws + 1, next_ref=refs.start + refs.size)
        start = refs.start - first_ref(self._seed) + first_ref(0)
        recorded = refs.drawn_by(random_of(0, state.n_draws), start) if self._seed else None
        return ShownPage(address.text, method, status, tier, tree, refs, refresh=refresh, recorded_refs=recorded)

    def _fill(self, number: int, text: str) -> None:
        """Put a text into a field, in the place of what stands there."""
        page, flat = self._page(), self._flat()
        kind = forms.kind_of(flat, number)
        if flat.tags[number] == "label":
            control = activation.labelled_control(flat, number)
            if control is not None:
                self._fill(control, text)
                return
        if not forms.takes_text(flat, number) and kind not in ("range", "color"):
            hint = "; use browser_select_option" if kind == "select" else ""
            raise BrowserRefusal(f"{self._label(number)} is no field that takes text{hint}")
        if is_disabled(flat, number) or "readonly" in flat.attributes[number]:
            raise BrowserRefusal(f"{self._label(number)} is {'disabled' if is_disabled(flat, number) else 'read-only'}")
        try:
            text = forms.fit_text(flat, number, text)
        except ValueError as error:
            raise BrowserRefusal(f"{self._label(number)}: {error}") from None
        if text != forms.value(flat, page.edits, number):
            self._edit(number, text)
        self._focus(number)

    def _choose(self, number: int, values: Sequence[str]) -> None:
        """Select options by their values or texts."""
        flat = self._flat()
        if flat.tags[number] != "select":
            raise BrowserRefusal(f"{self._label(number)} is no list of options")
        if is_disabled(flat, number):
            raise BrowserRefusal(f"{self._label(number)} is disabled")
        every = forms.options(flat, number)
        chosen = []
        for text in values:
            fitting = [each for each in every if text in (forms.option_value(flat, each), forms.option_label(flat, each))]
            if not fitting:
                labels = ", ".join(repr(forms.option_label(flat, each)) for each in every[:50])
                raise BrowserRefusal(f"{self._label(number)} has no option {text!r}; there are: {labels}")
            if is_disabled(flat, fitting[0]):
                raise BrowserRefusal(f"the option {text!r} of {self._label(number)} is disabled")
            chosen.append(fitting[0])
        several = forms.is_multiple(flat, number)
        if not several and not chosen:
            raise BrowserRefusal(f"{self._label(number)} needs one of its options")
        self._edit(number, tuple(sorted(set(chosen))) if several else (chosen[0],))

    def _arrow(self, number: int, step: int) -> None:
        """Move the choice of a list or of a group of radio buttons."""
        page, flat = self._page(), self._flat()
        if flat.tags[number] == "select" and not forms.is_multiple(flat, number):
            every = [each for each in forms.options(flat, number) if not is_disabled(flat, each)]
            now = forms.selection(flat, page.edits, number)
            place = every.index(now[0]) + step if now and now[0] in every else 0
            if 0 <= place < len(every):
                self._edit(number, (every[place],))
        elif flat.tags[number] == "input" and forms.kind_of(flat, number) == "radio":
            group = [each for each in forms.radio_group(flat, number) if not is_disabled(flat, each)]
            self._activate(group[(group.index(number) + step) % len(group)], False)

    def _edit(self, number: int, edit: Edit) -> None:
        page = self._page()
        self._change(page._replace(edits={**page.edits, number: edit}))
        self._after_change(number)

    def _after_change(self, number: int) -> None:
        flat = self._flat()
        form = forms.owner(flat, number)
        if form is not None and not forms.takes_text(flat, number) and activation.sends_on_change(flat, number):
            self._send(form, None, is_checked=False)

    def _focus(self, number: int | None) -> None:
        page = self._page()
        if page.focus != number:
            self._change(page._replace(focus=number))

    def _focus_next(self, step: int) -> None:
        page, flat = self._page(), self._flat()
        view = self.view(page)
        every = [number for number in view.nodes if is_focusable(flat, number) and flat.tags[number] != "details"
                 and not flat.attributes[number].get("tabindex", "").startswith("-")]
        if every:
            place = every.index(page.focus) + step if page.focus in every else 0 if step > 0 else -1
            self._focus(every[place] if -1 <= place < len(every) else None)

    # State.

    def _answer_tier(self) -> Tier:
        return cast(Tier, self._tier or "derived")

    def _report(self, with_page: bool, explicit: bool) -> str:
        """Return the answer of the call."""
        if not with_page:
            return "\n".join(["### Result", *self._events])
        state = self._state
        lines: Sequence[str] | None = self.lines() if self._snapshots != "none" or explicit else None
        if lines is not None and self._snapshots == "incremental":
            self._state = state._replace(reported=self.page)
            if not explicit:
                lines = changed_lines(self._shelf, state.reported, self.page, lines)
        return report(self._shelf, state, self._notes, lines)

    @property
    def _tab(self) -> BrowserTab:
        return self._state.tabs[self._state.current]

    def _page(self) -> ShownPage:
        page = self.page
        if page is None:
            raise BrowserRefusal("no page is open; use browser_navigate")
        return page

    def _flat(self) -> FlatPage:
        return self._shelf.flat(self._page().tree)

    def _change(self, page: ShownPage) -> None:
        self._replace_tab(self._tab.changed(page))

    def _replace_tab(self, tab: BrowserTab) -> None:
        tabs, current = self._state.tabs, self._state.current
        self._state = self._state._replace(tabs=(*tabs[:current], tab, *tabs[current + 1:]))

    def _target(self, target: str) -> int:
        """Return the element that a ref or selector names, on the page that is shown."""
        page = self._page()
        view = self.view(page)
        numbers = view.select(target)
        if numbers is not None:
            if len(numbers) != 1:
                raise BrowserRefusal(f"{target!r} names {len(numbers) or 'no'} elements of the current page snapshot"
                                     + ("; add >> nth=0, >> nth=1 and so on" if numbers else ""))
            return numbers[0]
        number = page.refs.number(target)
        if number is not None and number in view.nodes:
            return number
        if re.fullmatch(r"e\d{1,15}", target):
            older = (int(target[1:]) < page.refs.start and " It belongs to a page that was shown before.") or ""
            raise BrowserRefusal(f"Ref {target} not found in the current page snapshot.{older} Try capturing new snapshot.")
        raise BrowserRefusal(f'invalid target {target[:200]!r} (expected a ref such as e12, or role=ROLE[name="NAME"])')

    def _label(self, number: int) -> str:
        return self.view(self._page()).label(number)

    def _base(self, page: ShownPage) -> str:
        flat = self._shelf.flat(page.tree)
        reference = next((flat.attributes[each]["href"] for each in flat.of_tag.get("base", ())
                          if "href" in flat.attributes[each]), None)
        address = resolve(page.address, reference) if reference is not None else None
        return address.text if address is not None else page.address

    def _in_new_tab(self, flat: FlatPage, target: str | None) -> bool:
        if target is None:
            target = next((flat.attributes[each]["target"] for each in flat.of_tag.get("base", ())
                           if "target" in flat.attributes[each]), "")
        return bool(target) and target.lower() not in ("_self", "_parent", "_top")

    def _on_site(self, base: str, reference: str) -> PageAddress:
        """Return an address of this site, under its own scheme. Errors: `BrowserRefusal` for any other."""
        address = resolve(base, reference)
        if address is None:
            raise BrowserRefusal(f"invalid address {reference[:200]!r} (expected a page of {self._site.origin})")
        if address.host != self._site.host:
            raise BrowserRefusal(f"cannot reach {address.origin}; only {self._site.origin} is there")
        return address._replace(origin=self._site.origin)

    def _check_modal(self, tool: str) -> None:
        dialog, chooser = self._state.dialog, self._state.chooser
        if dialog is not None and tool not in ("browser_handle_dialog", "browser_snapshot"):
            raise BrowserRefusal(f"a dialog is open ({dialog.message!r}); answer it with browser_handle_dialog")
        if chooser is not None and tool not in ("browser_file_upload", "browser_snapshot"):
            raise BrowserRefusal("a file chooser is open; use browser_file_upload, without paths to cancel it")

    def _pass_time(self, seconds: float) -> None:
        if self._wait is not None:
            self._wait(seconds)
        page = self.page
        if page is None or page.refresh is None:
            return
        remaining = page.refresh[0] - seconds
        if remaining > 0:
            self._change(page._replace(refresh=(remaining, page.refresh[1])))
            return
        fresh = self._load(self._on_site(page.address, page.refresh[1] or page.address), "GET", None)
        if fresh is not None:
            self._change(fresh)

    def _has_come(self, wanted: str | None, gone: str | None) -> bool:
        text = "\n".join(self.lines())
        return (wanted is not None and wanted in text) or (gone is not None and gone not in text)


_ANSWERS: dict[str, Callable[[SiteBrowser, Mapping[str, Any]], bool | None]] = {
    "browser_navigate": SiteBrowser._navigate, "browser_navigate_back": SiteBrowser._back,
    "browser_snapshot": SiteBrowser._snapshot_tool, "browser_click": SiteBrowser._click, "browser_type": SiteBrowser._type,
    "browser_fill_form": SiteBrowser._fill_form, "browser_select_option": SiteBrowser._select_option,
    "browser_press_key": SiteBrowser._press, "browser_wait_for": SiteBrowser._wait_for,
    "browser_file_upload": SiteBrowser._upload, "browser_handle_dialog": SiteBrowser._handle_dialog,
    "browser_tabs": SiteBrowser._tabs_tool, "browser_find": SiteBrowser._find}
