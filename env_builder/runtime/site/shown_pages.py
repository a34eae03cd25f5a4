"""What a browser holds: tabs with a history of shown pages, and the views of pages that all browsers of a site share.

Everything here but the shelf is an immutable tuple, so that a browser's state is a reference.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from . import forms
from .addresses import PageAddress
from .flat import FlatPage
from .forms import Edits
from .snapshot import PageView, RefDraw
from .styling import Styles
from .trees import Element

NO_EDITS: Edits = {}
NOTHING_OPENED: Mapping[int, bool] = {}
_REFRESH = re.compile(r"\s*(\d+(?:\.\d*)?|\.\d+)\s*(?:[;,]\s*(?:url\s*=\s*)?['\"]?([^'\"]*))?", re.IGNORECASE).match
MOST_PAGES = 512
"""Pages whose views are kept; the longest unused one goes first."""


class ShownPage(NamedTuple):
    """A page in a tab, as a person has left it so far."""

    address: str
    method: str
    status: int
    tier: str
    tree: Element
    refs: RefDraw
    edits: Edits = NO_EDITS
    opened: Mapping[int, bool] = NOTHING_OPENED
    """Details and toggled elements that differ from what the page says: whether they are open."""
    focus: int | None = None
    refresh: tuple[float, str] | None = None
    """Seconds until the page leads on by itself, and where to."""
    recorded_refs: RefDraw | None = None
    """Its refs where no seed draws them, as known solutions have them; None: `refs`."""

    def holds(self, address: PageAddress) -> bool:
        """Return whether an address is a place on this page."""
        return address.fragment is not None and self.address.partition("#")[0] == address.text.partition("#")[0]


class BrowserTab(NamedTuple):
    """A tab: the pages of its history."""

    pages: tuple[ShownPage, ...] = ()
    place: int = -1
    """Of the page that is shown; -1: none was ever opened."""

    @property
    def page(self) -> ShownPage | None:
        """Return the page that is shown."""
        return self.pages[self.place] if self.place >= 0 else None

    def changed(self, page: ShownPage) -> BrowserTab:
        """Return the tab with the shown page as it is now."""
        return BrowserTab((*self.pages[:self.place], page, *self.pages[self.place + 1:]), self.place)

    def opened(self, page: ShownPage) -> BrowserTab:
        """Return the tab with another page after the shown one."""
        return BrowserTab((*self.pages[:self.place + 1], page), self.place + 1)


class OpenDialog(NamedTuple):
    """A question that the page asks before it goes on."""

    message: str
    element: int
    """What was clicked, or the form that is to be sent."""
    submitter: int | None
    is_form: bool


class BrowserState(NamedTuple):
    """All that a browser holds."""

    tabs: tuple[BrowserTab, ...] = (BrowserTab(),)
    current: int = 0
    n_draws: int = 0
    """Pages that were shown so far."""
    next_ref: int = 1
    dialog: OpenDialog | None = None
    chooser: int | None = None
    """The field that waits for files."""
    reported: ShownPage | None = None
    """The page as the last answer showed it."""


class ViewShelf:
    """Views of pages by the identity of their trees, for one site and viewport."""

    def __init__(self, styles: Styles) -> None:
        self._styles = styles
        self._pages: dict[int, tuple[FlatPage, dict[tuple[tuple[int, bool], ...], PageView]]] = {}

    def flat(self, tree: Element) -> FlatPage:
        """Return a page's tree as lists."""
        return self._entry(tree)[0]

    def view(self, tree: Element, opened: Mapping[int, bool] = NOTHING_OPENED) -> PageView:
        """Return what a page shows with such elements open."""
        page, views = self._entry(tree)
        key = tuple(sorted(opened.items())) if opened else ()
        view = views.get(key)
        if view is None:
            view = views[key] = PageView(page, self._styles.look(page, opened), opened)
        return view

    def _entry(self, tree: Element) -> tuple[FlatPage, dict[tuple[tuple[int, bool], ...], PageView]]:
        entry = self._pages.pop(id(tree), None)
        if entry is None or entry[0].root is not tree:
            if len(self._pages) >= MOST_PAGES:
                del self._pages[next(iter(self._pages))]
            entry = FlatPage(tree), {}
        self._pages[id(tree)] = entry
        return entry


def same_controls(one: FlatPage, other: FlatPage) -> bool:
    """Whether two pages have the same controls in the same order, so that a browser puts back what was typed."""
    return [_control(one, each) for each in one.controls] == [_control(other, each) for each in other.controls]


def moved_edits(one: FlatPage, other: FlatPage, edits: Edits) -> Edits:
    """Return edits of a page for another with the same controls; a choice of options goes by their places."""
    place = dict(zip(one.controls, other.controls, strict=True))
    moved: dict[int, forms.Edit] = {}
    for number, edit in edits.items():
        if one.tags[number] == "select" and isinstance(edit, tuple):
            before, after = forms.options(one, number), forms.options(other, place[number])
            if len(before) == len(after):
                moved[place[number]] = tuple(after[before.index(each)] for each in edit if isinstance(each, int))
        elif forms.kind_of(one, number) != "password":
            moved[place[number]] = edit
    return moved


def _control(page: FlatPage, number: int) -> tuple[str, str, str]:
    return page.tags[number], forms.kind_of(page, number), page.attributes[number].get("name", "")


def refresh_of(page: FlatPage, headers: Sequence[tuple[str, str]]) -> tuple[float, str] | None:
    """Return after how many seconds a page leads on by itself, and where to; empty: to itself."""
    texts = [value for name, value in headers if name.lower() == "refresh"]
    texts += [page.attributes[each].get("content", "") for each in page.of_tag.get("meta", ())
              if page.attributes[each].get("http-equiv", "").strip().lower() == "refresh"]
    match = _REFRESH(texts[0]) if texts else None
    return (float(match[1]), (match[2] or "").strip()) if match is not None else None
