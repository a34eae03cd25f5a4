"""A page of a site as HTML for a frame that shows it and does nothing: no script, no address, nothing loaded.

In: a page as an episode's browser holds it, or the HTML that a session recorded, and style sheets that were recorded. Out: HTML
with the elements and attributes of `_KEPT` alone, and one `<style>` (`frame_styles.py`), which the page's policy names by its
hash (`guard.policy`). A picture is its text in brackets, and a field holds what was typed. The frame is sandboxed besides.
Does not see: pictures, fonts, what a script would make of the page.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from html import escape
from typing import NamedTuple

from env_builder.runtime.site import forms
from env_builder.runtime.site.flat import FlatPage
from env_builder.runtime.site.shown_pages import ShownPage
from env_builder.runtime.site.snapshot import PageView
from env_builder.runtime.site.trees import Element, Node, render
from pipelines.browser.frame_styles import LINK, OPENED, STYLED, frame_style
from pipelines.browser.shown import visible

_DROPPED = frozenset({
    "applet", "audio", "base", "canvas", "embed", "frame", "frameset", "head", "iframe", "link", "math", "meta", "noscript",
    "object", "script", "source", "style", "svg", "template", "title", "track", "video"})
_ELEMENTS = frozenset({
    "a", "abbr", "address", "article", "aside", "b", "blockquote", "body", "br", "button", "caption", "cite", "code", "col",
    "colgroup", "dd", "del", "details", "dfn", "div", "dl", "dt", "em", "fieldset", "figcaption", "figure", "footer", "form",
    "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "html", "i", "input", "ins", "kbd", "label", "legend", "li", "main",
    "mark", "menu", "meter", "nav", "ol", "optgroup", "option", "output", "p", "pre", "progress", "q", "s", "samp", "section",
    "select", "small", "span", "strong", "sub", "summary", "sup", "table", "tbody", "td", "textarea", "tfoot", "th", "thead",
    "time", "tr", "u", "ul", "var"})
_KEPT = frozenset({
    "alt", "checked", "class", "colspan", "cols", "dir", "disabled", "hidden", "id", "label", "lang", "max", "min", "multiple",
    "open", "placeholder", "readonly", "reversed", "role", "rows", "rowspan", "scope", "selected", "size", "start",
    "type", "value"})
_SPOKEN = re.compile(r"aria-[a-z]+").fullmatch
"""Attributes that style sheets speak of, and that lead nowhere."""
_IMAGES = (("png", "iVBORw0KGgo"), ("jpeg", "/9j/"))
_BASE64 = re.compile(r"[A-Za-z0-9+/]+={0,2}").fullmatch
Change = Callable[[int, Element], Element | None]
NO_SHEETS: Mapping[str, str] = {}


class FramedPage(NamedTuple):
    """What a frame shows."""

    html: str
    style: str
    """The text of its `<style>`, for the policy."""
    n_sheets: int
    """Recorded style sheets that it has."""


def framed(page: ShownPage, view: PageView, sheets: Mapping[str, str] = NO_SHEETS) -> FramedPage:
    """Return a page as it stands in a browser, with what was typed, chosen and opened. `sheets`: CSS by path."""
    flat, look = view.page, view.look

    def changed(number: int, copy: Element) -> Element | None:
        if page.opened.get(number):
            copy.attributes[OPENED] = ""
        return None if look.removed[number] else _edited(flat, page, number, copy)

    return _document(flat, changed, page.address, sheets)


def framed_text(root: Element, address: str = "/", sheets: Mapping[str, str] = NO_SHEETS) -> FramedPage:
    """Return a recorded page. What stands in fields of passwords is left out."""
    flat = FlatPage(root)

    def changed(number: int, copy: Element) -> Element | None:
        if flat.tags[number] == "input" and forms.kind_of(flat, number) in ("hidden", "password"):
            copy.attributes.pop("value", None)
        return copy

    return _document(flat, changed, address, sheets)


def screenshot(content: str | None) -> str | None:
    """Return the address of an image that a tool answered with; None if the answer is none."""
    for kind, begin in _IMAGES:
        if content and content.startswith(begin) and len(content) % 4 == 0 and _BASE64(content):
            base64.b64decode(content, validate=True)
            return f"data:image/{kind};base64,{content}"
    return None


def _document(flat: FlatPage, changed: Change, address: str, sheets: Mapping[str, str]) -> FramedPage:
    body = flat.first("body")
    nodes = _copied(flat, 0 if body is None else body, changed)
    top = Element("body", {}, nodes)
    if len(nodes) == 1 and isinstance(first := nodes[0], Element):
        top = Element("body", first.attributes if first.tag == "body" else {}, first.children)
    lang, classes = flat.attributes[0].get("lang") or "en", flat.attributes[0].get("class", "")
    style, n_sheets = frame_style(flat, address, sheets)
    html = (f'<!DOCTYPE html><html lang="{escape(lang)}" class="{escape(classes)}"><head><meta charset="utf-8">'
            f'<meta name="color-scheme" content="light"><title>{escape(flat.title)}</title><style>{style}</style></head>'
            f'{render(top)}</html>')
    return FramedPage(visible(html), style, n_sheets)


def _copied(flat: FlatPage, number: int, changed: Change) -> list[Node]:
    """Return what stands for an element: a copy of what may be shown, its children where it may not, or nothing."""
    tag = flat.tags[number]
    if tag in _DROPPED:
        return []
    if tag == "img":
        alt = flat.attributes[number].get("alt", "")
        return [f"[{alt}]"] if alt else []
    own = flat.attributes[number]
    kept = {name: value for name, value in own.items() if name in _KEPT or _SPOKEN(name)}
    kept |= {LINK: ""} if tag in ("a", "area") and "href" in own else {}
    kept |= {STYLED: str(number)} if own.get("style") else {}
    copy = changed(number, Element(tag, kept))
    if copy is None or (tag == "input" and forms.kind_of(flat, number) == "hidden"):
        return []
    if not copy.children:
        for child in flat.children[number]:
            copy.children += [child] if isinstance(child, str) else _copied(flat, child, changed)
    return [copy] if tag in _ELEMENTS else copy.children


def _edited(flat: FlatPage, page: ShownPage, number: int, copy: Element) -> Element:
    """Return a copy with what was typed into it, chosen in it or opened."""
    tag, kind = flat.tags[number], forms.kind_of(flat, number)
    if tag == "input" and kind in ("checkbox", "radio"):
        copy.attributes.pop("checked", None)
        copy.attributes |= {"checked": ""} if forms.is_checked(flat, page.edits, number) else {}
    elif tag == "input" and kind not in ("hidden", "file", "submit", "button", "reset", "image"):
        text = forms.value(flat, page.edits, number)
        copy.attributes["value"] = "•" * len(text) if kind == "password" else text
    elif tag == "textarea":
        copy.children = [forms.value(flat, page.edits, number)]
    elif tag == "option":
        select = flat.closest(number, "select")
        copy.attributes.pop("selected", None)
        if select is not None and number in forms.selection(flat, page.edits, select):
            copy.attributes["selected"] = ""
    elif tag == "details":
        copy.attributes.pop("open", None)
        copy.attributes |= {"open": ""} if page.opened.get(number, "open" in flat.attributes[number]) else {}
    return copy
