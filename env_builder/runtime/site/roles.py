"""Roles of elements, as "ARIA in HTML" and "HTML Accessibility API Mappings" of the W3C define them and Chromium follows them.

In: a flat page and the number of an element. Out: its role, None where it has none. Sees: tags, attributes, an element's
surroundings. Does not see: roles that scripts set.
"""

from __future__ import annotations

from collections.abc import Callable

from .flat import FlatPage

PRESENTATION = frozenset({"presentation", "none"})
_BY_TAG = {
    "article": "article", "aside": "complementary", "blockquote": "blockquote", "button": "button", "caption": "caption",
    "code": "code", "datalist": "listbox", "dd": "definition", "del": "deletion", "details": "group", "dfn": "term",
    "dialog": "dialog", "dt": "term", "em": "emphasis", "fieldset": "group", "figure": "figure", "h1": "heading",
    "h2": "heading", "h3": "heading", "h4": "heading", "h5": "heading", "h6": "heading", "hr": "separator", "html": "document",
    "ins": "insertion", "li": "listitem", "main": "main", "mark": "mark", "math": "math", "menu": "list", "meter": "meter",
    "nav": "navigation", "ol": "list", "optgroup": "group", "option": "option", "output": "status", "p": "paragraph",
    "progress": "progressbar", "search": "search", "strong": "strong", "sub": "subscript", "sup": "superscript", "svg": "img",
    "table": "table", "tbody": "rowgroup", "textarea": "textbox", "tfoot": "rowgroup", "thead": "rowgroup", "time": "time",
    "tr": "row", "ul": "list"}
_BY_TYPE = {
    "button": "button", "checkbox": "checkbox", "file": "button", "image": "button", "number": "spinbutton", "radio": "radio",
    "range": "slider", "reset": "button", "submit": "button"}
_TYPES = frozenset({
    "button", "checkbox", "color", "date", "datetime-local", "email", "file", "hidden", "image", "month", "number", "password",
    "radio", "range", "reset", "search", "submit", "tel", "text", "time", "url", "week"})
_WITH_LISTS = frozenset({"email", "search", "tel", "text", "url"})
ROLES = frozenset({
    "alert", "alertdialog", "application", "article", "banner", "blockquote", "button", "caption", "cell", "checkbox",
    "code", "columnheader", "combobox", "complementary", "contentinfo", "definition", "deletion", "dialog", "directory",
    "document", "emphasis", "feed", "figure", "form", "generic", "grid", "gridcell", "group", "heading", "img",
    "insertion", "link", "list", "listbox", "listitem", "log", "main", "mark", "marquee", "math", "meter", "menu",
    "menubar", "menuitem", "menuitemcheckbox", "menuitemradio", "navigation", "none", "note", "option", "paragraph",
    "presentation", "progressbar", "radio", "radiogroup", "region", "row", "rowgroup", "rowheader", "scrollbar", "search",
    "searchbox", "separator", "slider", "spinbutton", "status", "strong", "subscript", "superscript", "switch", "tab",
    "table", "tablist", "tabpanel", "term", "textbox", "time", "timer", "toolbar", "tooltip", "tree", "treegrid",
    "treeitem"})
_GLOBAL = ("aria-atomic", "aria-busy", "aria-controls", "aria-current", "aria-describedby", "aria-details", "aria-dropeffect",
           "aria-flowto", "aria-grabbed", "aria-hidden", "aria-keyshortcuts", "aria-live", "aria-owns", "aria-relevant",
           "aria-roledescription")
"""Attributes that give even a decorative element a role."""
_UNNAMED = frozenset({"caption", "code", "deletion", "emphasis", "generic", "insertion", "paragraph", "presentation", "strong",
                      "subscript", "superscript"})
_INHERITS = {
    "dd": ("dl", "div"), "div": ("dl",), "dt": ("dl", "div"), "li": ("ol", "ul"), "tbody": ("table",), "td": ("tr",),
    "tfoot": ("table",), "th": ("tr",), "thead": ("table",), "tr": ("thead", "tbody", "tfoot", "table")}
"""Tags that lose their role if an element around them is decorative, and which that is."""
_SECTIONS = frozenset({"article", "aside", "main", "nav", "section"})
_SECTION_ROLES = frozenset({"article", "complementary", "main", "navigation", "region"})


def input_type(attributes: dict[str, str]) -> str:
    """Return the type of an input; an unknown one is a text."""
    name = attributes.get("type", "").strip().lower()
    return name if name in _TYPES else "text"


def role_of(page: FlatPage, number: int) -> str | None:
    """Return an element's role."""
    role = explicit_role(page.attributes[number])
    if role is None:
        return _implicit(page, number)
    if role in PRESENTATION:
        implicit = _implicit(page, number)
        if _counts_all_the_same(page, number, implicit):
            return implicit
    return role


def explicit_role(attributes: dict[str, str]) -> str | None:
    """Return the first known role of the attribute `role`."""
    text = attributes.get("role")
    return next((role for role in text.split() if role in ROLES), None) if text else None


def is_focusable(page: FlatPage, number: int) -> bool:
    """Whether an element takes the focus, by its tag or by a tabindex; disabled controls do not."""
    tag, attributes = page.tags[number], page.attributes[number]
    if is_disabled(page, number):
        return False
    return (tag in ("button", "details", "select", "textarea") or (tag in ("a", "area") and "href" in attributes)
            or (tag == "input" and "hidden" not in attributes) or _has_tabindex(attributes))


def is_disabled(page: FlatPage, number: int) -> bool:
    """Whether a control is disabled: itself, its group of options, or the fieldset around it (its legend aside)."""
    tag = page.tags[number]
    if tag not in ("button", "input", "select", "textarea", "option", "optgroup"):
        return False
    if "disabled" in page.attributes[number]:
        return True
    inner = number
    for outer in page.ancestors(number):
        if "disabled" in page.attributes[outer]:
            if page.tags[outer] == "optgroup" and tag == "option":
                return True
            if page.tags[outer] == "fieldset":
                legend = next((each for each in page.elements_of(outer) if page.tags[each] == "legend"), None)
                if inner != legend:
                    return True
        inner = outer
    return False


def _has_tabindex(attributes: dict[str, str]) -> bool:
    return attributes.get("tabindex", "").strip().lstrip("-").isdigit()


def _counts_all_the_same(page: FlatPage, number: int, role: str | None) -> bool:
    """Whether a decorative element has something that makes it count: a global attribute, or the focus."""
    return _has_global(page.attributes[number], role) or is_focusable(page, number)


def _has_global(attributes: dict[str, str], role: str | None) -> bool:
    return any(name in attributes for name in _GLOBAL) or (
        role not in _UNNAMED and ("aria-label" in attributes or "aria-labelledby" in attributes))


def _implicit(page: FlatPage, number: int) -> str | None:
    tag = page.tags[number]
    role = _BY_TAG.get(tag) or (_IMPLICIT[tag](page, number) if tag in _IMPLICIT else None)
    if role is None or tag not in _INHERITS:
        return role
    inner = number
    for outer in page.ancestors(number):
        if page.tags[outer] not in _INHERITS.get(page.tags[inner], ()):
            break
        explicit = explicit_role(page.attributes[outer])
        if explicit in PRESENTATION and not _counts_all_the_same(page, outer, explicit):
            return explicit
        inner = outer
    return role


def _link(page: FlatPage, number: int) -> str | None:
    return "link" if "href" in page.attributes[number] else None


def _landmark(role: str, page: FlatPage, number: int) -> str | None:
    """Return the role of a header or footer, which counts only for the whole page."""
    for outer in (number, *page.ancestors(number)):
        explicit = page.attributes[outer].get("role")
        if explicit in _SECTION_ROLES if explicit is not None else page.tags[outer] in _SECTIONS:
            return None
    return role


def _if_named(role: str, page: FlatPage, number: int) -> str | None:
    attributes = page.attributes[number]
    return role if "aria-label" in attributes or "aria-labelledby" in attributes else None


def _picture(page: FlatPage, number: int) -> str | None:
    attributes = page.attributes[number]
    decorative = attributes.get("alt") == "" and not attributes.get("title") and not _has_global(attributes, None)
    return "presentation" if decorative and not _has_tabindex(attributes) else "img"


def _input(page: FlatPage, number: int) -> str | None:
    attributes = page.attributes[number]
    kind = input_type(attributes)
    if kind == "hidden":
        return None
    if kind in _WITH_LISTS:
        listed = page.by_id.get(attributes.get("list", ""))
        if listed is not None and page.tags[listed] == "datalist":
            return "combobox"
        return "searchbox" if kind == "search" else "textbox"
    return _BY_TYPE.get(kind, "textbox")


def _select(page: FlatPage, number: int) -> str | None:
    attributes = page.attributes[number]
    size = attributes.get("size", "").strip()
    return "listbox" if "multiple" in attributes or (size.isdigit() and int(size) > 1) else "combobox"


def _data_cell(page: FlatPage, number: int) -> str | None:
    table = page.closest(number, "table")
    return "gridcell" if table is not None and explicit_role(page.attributes[table]) in ("grid", "treegrid") else "cell"


def _header_cell(page: FlatPage, number: int) -> str | None:
    """Return the role of a `th` as Chromium guesses it: its scope, else its neighbours."""
    scope = page.attributes[number].get("scope", "").lower()
    if scope in ("col", "colgroup"):
        return "columnheader"
    if scope in ("row", "rowgroup"):
        return "rowheader"
    siblings = page.elements_of(page.parents[number]) if page.parents[number] >= 0 else [number]
    place = siblings.index(number)
    around = [each for each in siblings[max(place - 1, 0):place + 2] if each != number]
    if not around:
        table = page.closest(number, "table")
        is_alone = table is not None and sum(page.tags[each] == "tr" for each in page.below(table)) <= 1
        return None if is_alone and page.tags[page.parents[number]] == "tr" else "columnheader"
    if len(around) == 2 and all(page.tags[each] == "th" for each in around):
        return "columnheader"
    if any(page.tags[each] == "td" and (page.elements_of(each) or page.text(each).strip()) for each in around):
        return "rowheader"
    return "columnheader"


_IMPLICIT: dict[str, Callable[[FlatPage, int], str | None]] = {
    "a": _link, "area": _link, "img": _picture, "input": _input, "select": _select, "td": _data_cell, "th": _header_cell,
    "footer": lambda page, number: _landmark("contentinfo", page, number),
    "header": lambda page, number: _landmark("banner", page, number),
    "form": lambda page, number: _if_named("form", page, number),
    "section": lambda page, number: _if_named("region", page, number)}
