"""Which elements of a page its style sheets hide, what kind of box they make, and which text they put before or after it.

In: rules of style sheets as `env_builder/site/styles.py` compiles them (JSON), the viewport's size, a flat page. Out: a `Look`.
Sees: `display`, `visibility` and the `content` of ::before and ::after, from linked sheets, `<style>` and the attribute
`style`, with the cascade of CSS (importance, specificity, order) and media queries of the viewport; what browsers hide anyway.
Does not see: boxes and their sizes, scripts, states such as :hover, @container, @supports, shadow trees.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ..canonical import digest
from .flat import FlatPage
from .media import holds, media_query
from .roles import input_type, is_disabled

PROPERTIES = ("display", "visibility", "content", "float", "position", "pointer-events")
_NONE = frozenset({
    "area", "base", "basefont", "datalist", "head", "link", "meta", "noembed", "noframes", "noscript", "param", "rp",
    "script", "style", "template", "title"})
_BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "center", "dd", "details", "dialog", "dir", "div", "dl", "dt",
    "fieldset", "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hgroup", "hr",
    "html", "legend", "li", "listing", "main", "menu", "nav", "ol", "optgroup", "option", "p", "plaintext", "pre",
    "search", "section", "summary", "ul", "xmp"})
_BOXES = frozenset({
    "button", "caption", "col", "colgroup", "input", "meter", "progress", "select", "table", "tbody", "td", "textarea",
    "tfoot", "th", "thead", "tr"})
"""Their boxes are neither blocks nor part of a line."""
_REPLACED = frozenset({"audio", "canvas", "iframe", "meter", "progress", "video"})
"""What they hold is for browsers that do not know them."""
_LAYOUTS = frozenset({"flex", "inline-flex", "grid", "inline-grid"})
"""Their children are boxes of their own."""
_VALUES = {"initial": "inline", "unset": "inline"}
Winner = tuple[tuple[int, int, int, tuple[int, ...], int], Any]
"""(importance, whether inline, layer, specificity, order) and the value."""


class Look(NamedTuple):
    """How a page's elements look, by number."""

    shown: list[bool]
    """False: the element's own text is hidden; an element within may be shown all the same."""
    removed: list[bool]
    """True: neither the element nor anything in it has a box."""
    inline: list[bool]
    """Whether its box is part of a line, so that no space parts it from the text around it."""
    before: dict[int, str]
    """Text that a style puts before the content."""
    after: dict[int, str]
    untouched: set[int]
    """Elements that a click passes through."""


class StyleRule(NamedTuple):
    """A selector and what it sets."""

    compounds: tuple[tuple[str, Mapping[str, Any]], ...]
    """From the element outwards: how it stands to the one before (" ", ">", "+", "~"; of the first "") and what it must be."""
    pseudo: str
    """`before`, `after`, or empty for the element itself."""
    declarations: tuple[tuple[str, Any, int], ...]
    """Property, value, importance."""
    specificity: tuple[int, ...]
    layer: int
    """Of cascade layers; of two rules the later layer's wins, and what is in none is in the last."""
    around: frozenset[str]
    """Ids, classes and tags that must stand around the element: most rules fail by these."""


class Styles:
    """The style sheets of a site, for one viewport."""

    def __init__(self, plain: Mapping[str, Any] | None = None, width: int = 1280, height: int = 720) -> None:
        self._size: dict[str, float] = {"width": width, "height": height}
        self._sheets: dict[str, list[StyleRule]] = {
            key: [_style_rule(rule) for rule in rules if holds(rule["media"], self._size)]
            for key, rules in (plain or {}).get("sheets", {}).items()}
        self._indexes: dict[tuple[str, ...], _RuleIndex] = {}

    def look(self, page: FlatPage, opened: Mapping[int, bool] | None = None) -> Look:
        """Return how a page looks. `opened`: details and toggled elements whose state differs from the page's."""
        keys = tuple(self._keys(page))
        if keys not in self._indexes:
            self._indexes[keys] = _RuleIndex([rule for key in keys for rule in self._sheets[key]])
        return _look(page, self._indexes[keys], opened or {})

    def _keys(self, page: FlatPage) -> list[str]:
        """Return the keys of a page's style sheets that are on record, in order."""
        keys = []
        for number in sorted([*page.of_tag.get("link", ()), *page.of_tag.get("style", ())]):
            attributes = page.attributes[number]
            media = "all" if "media" in attributes.get("onload", "") else attributes.get("media", "")
            if not holds(media_query(media), self._size) or page.closest(number, "noscript", "template") is not None:
                continue
            if page.tags[number] == "link":
                kinds = attributes.get("rel", "").lower().split()
                address = attributes.get("href", "").strip()
                if "stylesheet" in kinds and "alternate" not in kinds and "disabled" not in attributes:
                    keys += [key for key in (address, urlsplit(address).path) if key in self._sheets][:1]
            else:
                key = sheet_key(page.text(number))
                keys += [key] if key in self._sheets else []
        return keys


def sheet_key(text: str) -> str:
    """Return the key under which the rules of a `<style>` are stored."""
    return f"text:{digest(text)[:16]}"


def _style_rule(plain: Mapping[str, Any]) -> StyleRule:
    compounds = _pairs(plain["selector"])
    around = frozenset(_mark(what) for how, what in compounds[1:] if how in (" ", ">"))
    return StyleRule(compounds, plain["pseudo"], tuple((name, value, heavy) for name, value, heavy in plain["set"]),
                     tuple(plain["specificity"]), plain["layer"], around - {"*"})


def _mark(what: Mapping[str, Any]) -> str:
    """Return what an element must have to be a compound selector, as one word."""
    classes = what.get("classes")
    return f"#{what['id']}" if "id" in what else f".{classes[0]}" if classes else str(what.get("tag", "*"))


class _RuleIndex:
    """Rules by what the element itself must be, and for each kind of element (tag, id, classes) those that may match."""

    def __init__(self, rules: list[StyleRule]) -> None:
        self._by: dict[str, list[tuple[int, StyleRule]]] = {}
        for order, rule in enumerate(rules):
            self._by.setdefault(_mark(rule.compounds[0][1]), []).append((order, rule))
        self._memo: dict[tuple[str, str, str], tuple[list[tuple[int, StyleRule]], dict[str, Winner]]] = {}

    def of(self, page: FlatPage, number: int, around: dict[int, frozenset[str]]) -> dict[str, Winner]:
        """Return what the sheets set for an element: property -> winner; of ::before and ::after under `before content` etc.

        `around` keeps the marks of an element and of all around it, by its number.
        """
        attributes = page.attributes[number]
        key = page.tags[number], attributes.get("id", ""), attributes.get("class", "")
        if key not in self._memo:
            self._memo[key] = self._kind(page, number, *key)
        maybe, winners = self._memo[key]
        if maybe:
            winners = dict(winners)
            marks = self._marks(page, page.parents[number], around)
            for order, rule in maybe:
                if rule.around <= marks and _matches(page, number, rule.compounds):
                    _enter(winners, rule, order)
        return winners

    def _marks(self, page: FlatPage, number: int, around: dict[int, frozenset[str]]) -> frozenset[str]:
        marks = around.get(number)
        if marks is None:
            attributes = page.attributes[number]
            own = [page.tags[number], f"#{attributes.get('id', '')}"]
            own += [f".{each}" for each in attributes.get("class", "").split()]
            marks = around[number] = self._marks(page, page.parents[number], around).union(own)
        return marks

    def _kind(self, page: FlatPage, number: int, tag: str, name: str, classes: str) -> tuple[
            list[tuple[int, StyleRule]], dict[str, Winner]]:
        keys = dict.fromkeys([f"#{name}", *(f".{each}" for each in classes.split()), tag, "*"])
        maybe, winners = [], dict[str, Winner]()
        for order, rule in (each for key in keys for each in self._by.get(key, ())):
            what = rule.compounds[0][1]
            if not _is_kind(page, number, what):
                continue
            if len(rule.compounds) > 1 or "attributes" in what or "pseudos" in what:
                maybe.append((order, rule))
            else:
                _enter(winners, rule, order)
        return maybe, winners


def _enter(winners: dict[str, Winner], rule: StyleRule, order: int) -> None:
    for name, value, heavy in rule.declarations:
        key = f"{rule.pseudo} {name}" if rule.pseudo else name
        rank = heavy, 0, -rule.layer if heavy else rule.layer, rule.specificity, order
        if key not in winners or winners[key][0] <= rank:
            winners[key] = rank, value


def _is_kind(page: FlatPage, number: int, what: Mapping[str, Any]) -> bool:
    """Whether tag, id and classes are those of a compound selector."""
    attributes = page.attributes[number]
    if what.get("tag", page.tags[number]) != page.tags[number] or ("id" in what and attributes.get("id") != what["id"]):
        return False
    classes = what.get("classes")
    return not classes or set(classes) <= set(attributes.get("class", "").split())


def _is(page: FlatPage, number: int, what: Mapping[str, Any]) -> bool:
    attributes = page.attributes[number]
    return _is_kind(page, number, what) and all(
        name in attributes and _compares(attributes[name], how, value)
        for name, how, value in what.get("attributes", ())) and all(
        _PSEUDOS[name](page, number, argument) for name, argument in what.get("pseudos", ()))


def _compares(own: str, how: str, value: str) -> bool:
    """Whether an attribute's value stands to another as an operator says; with an `i` after it case does not matter."""
    return _HOW[how[:-1]](own.lower(), value.lower()) if how.endswith("i") else _HOW[how](own, value)


def _matches(page: FlatPage, number: int, compounds: tuple[tuple[str, Mapping[str, Any]], ...]) -> bool:
    """Whether an element is the first compound, and others stand around it as the rest says."""
    if not _is(page, number, compounds[0][1]):
        return False
    if len(compounds) == 1:
        return True
    how, rest = compounds[1][0], compounds[1:]
    if how in (" ", ">"):
        around = list(page.ancestors(number))
        return any(_matches(page, each, rest) for each in (around[:1] if how == ">" else around))
    before = _before(page, number)
    return any(_matches(page, each, rest) for each in (before[-1:] if how == "+" else before))


def _siblings(page: FlatPage, number: int) -> list[int]:
    return page.elements_of(page.parents[number]) if page.parents[number] >= 0 else [number]


def _before(page: FlatPage, number: int) -> list[int]:
    siblings = _siblings(page, number)
    return siblings[:siblings.index(number)]


def _place(page: FlatPage, number: int, of_tag: bool, from_end: bool) -> int:
    """Return the place among the siblings, from 1 on."""
    siblings = [each for each in _siblings(page, number) if not of_tag or page.tags[each] == page.tags[number]]
    return (siblings[::-1] if from_end else siblings).index(number) + 1


def _nth(of_tag: bool, from_end: bool) -> Callable[[FlatPage, int, Any], bool]:
    def holds(page: FlatPage, number: int, step: Any) -> bool:
        each, start = step
        distance = _place(page, number, of_tag, from_end) - start
        return distance == 0 if each == 0 else bool(distance % each == 0 and distance // each >= 0)
    return holds


_HOW: dict[str, Callable[[str, str], bool]] = {
    "": lambda own, value: True, "=": lambda own, value: own == value, "~=": lambda own, value: value in own.split(),
    "|=": lambda own, value: own == value or own.startswith(f"{value}-"),
    "^=": lambda own, value: bool(value) and own.startswith(value),
    "$=": lambda own, value: bool(value) and own.endswith(value),
    "*=": lambda own, value: bool(value) and value in own}
_PSEUDOS: dict[str, Callable[[FlatPage, int, Any], bool]] = {
    "root": lambda page, number, _: page.parents[number] < 0,
    "empty": lambda page, number, _: not any(page.children[number]),
    "checked": lambda page, number, _: "checked" in page.attributes[number] or "selected" in page.attributes[number],
    "disabled": lambda page, number, _: is_disabled(page, number),
    "enabled": lambda page, number, _: page.tags[number] in ("button", "input", "select", "textarea", "option")
    and not is_disabled(page, number),
    "required": lambda page, number, _: "required" in page.attributes[number],
    "link": lambda page, number, _: page.tags[number] in ("a", "area") and "href" in page.attributes[number],
    "not": lambda page, number, each: not any(_matches(page, number, _pairs(selector)) for selector in each),
    "is": lambda page, number, each: any(_matches(page, number, _pairs(selector)) for selector in each),
    "nth-child": _nth(of_tag=False, from_end=False), "nth-last-child": _nth(of_tag=False, from_end=True),
    "nth-of-type": _nth(of_tag=True, from_end=False), "nth-last-of-type": _nth(of_tag=True, from_end=True)}
PSEUDOS = frozenset(_PSEUDOS)
"""Pseudo-classes that a rule may hold; a rule with another never matches an untouched page."""


def _pairs(selector: list[list[Any]]) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    return tuple((how, what) for how, what in selector)


def _look(page: FlatPage, index: _RuleIndex, opened: Mapping[int, bool]) -> Look:
    n = len(page.tags)
    displays, visibilities = [""] * n, ["visible"] * n
    look = Look([False] * n, [False] * n, [True] * n, {}, {}, set())
    around: dict[int, frozenset[str]] = {-1: frozenset()}
    for number in range(n):
        parent = page.parents[number]
        if parent >= 0 and (look.removed[parent] or _folded(page, number, parent, opened)):
            look.removed[number] = True
            continue
        winners = _with_inline(index.of(page, number, around), page.attributes[number].get("style"))
        default = _default(page, number)
        display = winners["display"][1] if "display" in winners else default
        if display in ("inherit", "revert", "revert-layer"):
            display = displays[parent] if display == "inherit" and parent >= 0 else default
        display = _VALUES.get(display, display)
        if number in opened and page.tags[number] != "details":
            display = ("block" if display == "none" else display) if opened[number] else "none"
        visibility = winners["visibility"][1] if "visibility" in winners else "inherit"
        if opened.get(number):
            visibility = "visible"
        elif visibility in ("inherit", "unset", "revert"):
            visibility = visibilities[parent] if parent >= 0 else "visible"
        if display == "inline" and (_is_taken_out(winners, "") or (parent >= 0 and displays[parent] in _LAYOUTS)):
            display = "block"
        displays[number], visibilities[number] = display, visibility
        pointer = winners["pointer-events"][1] if "pointer-events" in winners else "inherit"
        if pointer == "none" or (pointer == "inherit" and parent in look.untouched):
            look.untouched.add(number)
        look.removed[number] = display == "none"
        look.inline[number] = display == "inline"
        look.shown[number] = display != "none" and (visibility in ("visible", "initial") or (
            page.tags[number] == "option" and page.closest(number, "select") is not None))
        if look.shown[number]:
            for pseudo, texts in (("before", look.before), ("after", look.after)):
                if text := _pseudo_text(winners, pseudo, page.attributes[number], display in _LAYOUTS):
                    texts[number] = text
    return look


def _folded(page: FlatPage, number: int, parent: int, opened: Mapping[int, bool]) -> bool:
    """Whether an element is the content of closed details, or stands where a browser that knows its parent shows nothing."""
    if page.tags[parent] in _REPLACED:
        return True
    if page.tags[parent] != "details" or opened.get(parent, "open" in page.attributes[parent]):
        return False
    summary = next((each for each in page.elements_of(parent) if page.tags[each] == "summary"), None)
    return number != summary


def _default(page: FlatPage, number: int) -> str:
    """Return the `display` that browsers give an element by themselves."""
    tag, attributes = page.tags[number], page.attributes[number]
    if tag in _NONE or "hidden" in attributes or (tag == "input" and input_type(attributes) == "hidden") or (
            tag == "dialog" and "open" not in attributes) or "popover" in attributes:
        return "none"
    return "block" if tag in _BLOCKS else "inline-block" if tag in _BOXES else "inline"


def _with_inline(winners: dict[str, Winner], text: str | None) -> dict[str, Winner]:
    """Add what the attribute `style` sets."""
    if not text:
        return winners
    winners = dict(winners)
    for declaration in text.split(";"):
        name, _, value = declaration.partition(":")
        name, value = name.strip().lower(), value.strip().lower()
        heavy = value.endswith("!important")
        rank = int(heavy), 1, 0, (0, 0, 0), 0
        if name in PROPERTIES and name != "content" and value and (name not in winners or winners[name][0] <= rank):
            winners[name] = rank, value.removesuffix("!important").strip()
    return winners


def _is_taken_out(winners: dict[str, Winner], prefix: str) -> bool:
    """Whether a box is taken out of its line, which makes it a block."""
    return winners.get(f"{prefix}float", (None, "none"))[1] in ("left", "right", "inline-start", "inline-end") or winners.get(
        f"{prefix}position", (None, "static"))[1] in ("absolute", "fixed")


def _pseudo_text(winners: dict[str, Winner], pseudo: str, attributes: dict[str, str], is_in_layout: bool) -> str | None:
    """Return the text that ::before or ::after shows, spaces around it if its box is no part of a line."""
    content = winners.get(f"{pseudo} content", (None, None))[1]
    if content is None:
        return None
    display = winners.get(f"{pseudo} display", (None, "inline"))[1]
    if display == "inline" and (is_in_layout or _is_taken_out(winners, f"{pseudo} ")):
        display = "block"
    if display == "none" or winners.get(f"{pseudo} visibility", (None, "visible"))[1] == "hidden":
        return None
    text = "".join(value if kind == "text" else attributes.get(value, "") for kind, value in content)
    return text if display == "inline" else f" {text} "
