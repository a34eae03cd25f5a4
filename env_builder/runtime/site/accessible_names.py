"""Accessible names, as the W3C's "Accessible Name and Description Computation" defines them and Chromium follows it.

In: a flat page, its look, values of controls. Out: the name of an element. Sees: labels, ARIA attributes, contents, `alt`,
`title`, `placeholder`, text that styles put before and after. Does not see: names that scripts set; contents of frames.
"""

from __future__ import annotations

from collections.abc import Callable

from .flat import FlatPage
from .roles import PRESENTATION, input_type, role_of
from .styling import Look

_FROM_CONTENT = frozenset({
    "button", "cell", "checkbox", "columnheader", "gridcell", "heading", "link", "menuitem", "menuitemcheckbox",
    "menuitemradio", "option", "radio", "row", "rowheader", "switch", "tab", "tooltip", "treeitem"})
"""Roles that are named by what they hold."""
_PASSES_CONTENT = _FROM_CONTENT | frozenset({
    "caption", "code", "contentinfo", "definition", "deletion", "emphasis", "insertion", "list", "listitem", "mark",
    "none", "paragraph", "presentation", "region", "row", "rowgroup", "section", "strong", "subscript", "superscript",
    "table", "term", "time", ""})
"""Roles that hand what they hold to the element around them."""
_NAMELESS = frozenset({
    "caption", "code", "definition", "deletion", "emphasis", "generic", "insertion", "mark", "paragraph", "presentation",
    "strong", "subscript", "suggestion", "superscript", "term", "time"})
_NAMING = frozenset({"aria-label", "aria-labelledby", "title"})
"""Attributes that name even an element without a role."""
_RANGES = frozenset({"progressbar", "scrollbar", "slider", "spinbutton", "meter"})
_WITH_PLACEHOLDER = frozenset({"text", "password", "number", "search", "tel", "email", "url"})
_LABELLED = frozenset({"button", "input", "meter", "output", "progress", "select", "textarea"})
_TITLED = {"fieldset": "legend", "figure": "figcaption", "table": "caption"}
"""Elements that one of their own elements names."""
_IGNORED = frozenset({"style", "script", "noscript", "template"})
SELF, WITHIN, REFERENCE, LABEL, NATIVE = "self", "within", "reference", "label", "native"
"""Why an element's text is taken: for its own name, for that of one around it, as aria-labelledby, label or caption says."""


class AccessibleNames:
    """The names of one page."""

    def __init__(self, page: FlatPage, look: Look, value_of: Callable[[int], str]) -> None:
        """`value_of` gives what stands in a control: of a select the texts of its options, joined."""
        self._page = page
        self._look = look
        self._value_of = value_of
        self.roles = [role_of(page, number) for number in range(len(page.tags))]
        self._hidden = list(look.removed)
        """Not for assistive technology: not shown, or aria-hidden with everything in it."""
        covered = [False] * len(page.tags)
        for number, parent in enumerate(page.parents):
            is_covered = page.attributes[number].get("aria-hidden", "").lower() == "true"
            covered[number] = is_covered or (parent >= 0 and covered[parent])
            self._hidden[number] = covered[number] or not look.shown[number] or page.tags[number] in _IGNORED
        self._labels: dict[int, list[int]] | None = None
        self._within: dict[int, str] = {}

    def name(self, number: int) -> str:
        """Return an element's name, spaces collapsed."""
        role, attributes = self.roles[number], self._page.attributes[number]
        if role in _NAMELESS or (role is None and self._page.tags[number] != "summary" and not (_NAMING & attributes.keys())):
            return ""
        return squeeze_text(self._text(number, SELF, False, -1))

    def sources(self, number: int) -> list[int]:
        """Return the elements within one whose texts made up its name, if it was named by what it holds."""
        if (self.roles[number] or "") not in _FROM_CONTENT or self._page.attributes[number].get("aria-label", "").strip():
            return []
        sources: list[int] = []
        waiting = [number]
        while waiting:
            for child in self._page.elements_of(waiting.pop()):
                is_closed_list = self._page.tags[child] == "select" and self.roles[child] == "combobox"
                if self._within.get(child) and not is_closed_list:   # its options speak for it, and have no ref
                    sources.append(child)
                    waiting.append(child)
        return sources

    def is_hidden(self, number: int) -> bool:
        """Whether assistive technology is not to know of an element."""
        return self._hidden[number]

    def labels(self, number: int) -> list[int]:
        """Return the labels of a control, in the page's order."""
        if self._labels is None:
            self._labels = {}
            for label in self._page.of_tag.get("label", ()):
                name = self._page.attributes[label].get("for")
                target = self._page.by_id.get(name) if name is not None else next(
                    (each for each in self._page.below(label) if self._is_labelled(each)), None)
                if target is not None and self._is_labelled(target):
                    self._labels.setdefault(target, []).append(label)
        return self._labels.get(number, [])

    def _is_labelled(self, number: int) -> bool:
        tag = self._page.tags[number]
        return tag in _LABELLED and not (tag == "input" and input_type(self._page.attributes[number]) == "hidden")

    def _text(self, number: int, why: str, hidden_too: bool, origin: int) -> str:
        """Return what an element gives to a name. `origin`: the control that is being named, which its label passes over."""
        if why == WITHIN and number in self._within:
            return self._within[number]
        text = self._reckon(number, why, hidden_too, origin)
        if why == WITHIN:
            self._within[number] = text
        return text

    def _reckon(self, number: int, why: str, hidden_too: bool, origin: int) -> str:
        attributes, tag = self._page.attributes[number], self._page.tags[number]
        if number == origin or tag in _IGNORED or (self._hidden[number] and not hidden_too):
            return ""
        labelling = self._references(attributes.get("aria-labelledby")) if why != REFERENCE else []
        if labelling:
            text = " ".join(self._text(each, REFERENCE, self._hidden[each], -1) for each in labelling)
            if text.strip():
                return text
        role = self.roles[number] or ""
        if why != SELF:
            embedded = self._embedded(number, role)
            if embedded is not None:
                return embedded
        if attributes.get("aria-label", "").strip():
            return attributes["aria-label"]
        if role not in PRESENTATION:
            native = self._native(number, why, bool(labelling))
            if native is not None:
                return native
        takes_content = role in (_PASSES_CONTENT if why == WITHIN else _FROM_CONTENT) or why in (REFERENCE, LABEL, NATIVE)
        if takes_content or (tag == "summary" and role not in PRESENTATION):
            text = self._contents(number, WITHIN if why == SELF else why, hidden_too, origin)
            if text.strip() if why == SELF else text:
                return text
        if role not in PRESENTATION or tag in ("iframe", "frame"):
            return attributes.get("title", "") if attributes.get("title", "").strip() else ""
        return ""

    def _contents(self, number: int, why: str, hidden_too: bool, origin: int) -> str:
        page, look = self._page, self._look
        parts = [look.before.get(number, "")]
        for child in page.children[number]:
            if isinstance(child, str):
                parts.append(child)
            else:
                text = self._text(child, why, hidden_too, origin)
                parts.append(text if look.inline[child] and page.tags[child] != "br" else f" {text} ")
        parts.append(look.after.get(number, ""))
        return "".join(parts)

    def _embedded(self, number: int, role: str) -> str | None:
        """Return what a control gives to the name of the element around it; None: it is no control."""
        attributes = self._page.attributes[number]
        if role in ("textbox", "combobox", "listbox"):
            return self._value_of(number)
        if role in _RANGES:
            return attributes.get("aria-valuetext", attributes.get("aria-valuenow", attributes.get("value", "")))
        return "" if role == "menu" else None

    def _native(self, number: int, why: str, has_labelling: bool) -> str | None:
        """Return the name that HTML itself gives an element; None: it gives none, and what it holds decides."""
        tag, attributes = self._page.tags[number], self._page.attributes[number]
        if tag in ("img", "area"):
            return attributes.get("alt", "") if attributes.get("alt", "").strip() else attributes.get("title", "")
        if tag == "input":
            named = self._input(number, why, input_type(attributes))
            if named is not None or has_labelling:
                return named
        if has_labelling:
            return None
        if tag in ("button", "input", "output", "select", "textarea"):
            labels = self.labels(number)
            if labels and why != REFERENCE:
                return self._by_labels(number, labels)
            return None if tag == "button" else self._own(number)
        if tag in _TITLED:
            title = next((each for each in self._page.elements_of(number) if self._page.tags[each] == _TITLED[tag]), None)
            if title is not None:
                return self._text(title, NATIVE, self._hidden[title], -1)
            return (attributes.get("summary") or None) if tag == "table" else attributes.get("title", "")
        if tag == "svg":
            title = next((each for each in self._page.elements_of(number) if self._page.tags[each] == "title"), None)
            return self._contents(title, REFERENCE, True, -1) if title is not None else None
        return None

    def _input(self, number: int, why: str, kind: str) -> str | None:
        """Return the name of an input that is a button."""
        attributes = self._page.attributes[number]
        if kind in ("button", "submit", "reset"):
            if attributes.get("value", "").strip():
                return attributes["value"]
            return {"submit": "Submit", "reset": "Reset"}.get(kind, attributes.get("title", ""))
        if kind in ("file", "image"):
            labels = self.labels(number)
            if labels and why != REFERENCE:
                return self._by_labels(number, labels)
            if kind == "file":
                return "Choose File"
            return next((attributes[name] for name in ("alt", "title") if attributes.get(name, "").strip()), "Submit")
        return None

    def _by_labels(self, number: int, labels: list[int]) -> str:
        texts = [self._text(label, LABEL, self._hidden[label], number) for label in labels]
        return " ".join(text for text in texts if text)

    def _own(self, number: int) -> str:
        """Return the name of a control without a label."""
        tag, attributes = self._page.tags[number], self._page.attributes[number]
        has_placeholder = tag == "textarea" or (tag == "input" and input_type(attributes) in _WITH_PLACEHOLDER)
        return attributes.get("title", "") or (attributes.get("placeholder", "") if has_placeholder else "")

    def _references(self, text: str | None) -> list[int]:
        """Return the elements that an attribute names by their ids."""
        return list(dict.fromkeys(self._page.by_id[name] for name in (text or "").split() if name in self._page.by_id))


def squeeze_text(text: str) -> str:
    """Return a text without invisible characters, runs of spaces as one."""
    return " ".join(text.replace("\u200b", "").replace("\u00ad", "").split())
