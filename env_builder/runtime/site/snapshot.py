"""The accessibility snapshot of a page, in the lines of playwright-mcp: `- role "name" [checked] [ref=e12]: text`.

In: a flat page, its look, edits, which element has the focus, a draw of refs. Out: lines, and what a ref or a role with a name
stands for. Follows the W3C's mappings as Playwright's snapshot for agents shows them: elements without a role are `generic`,
those that only wrap another are left out. Passwords are shown as dots. Sees: what the page's HTML, edits and style sheets show.
Does not see: sizes (what has none counts as shown), which script listens where, what a frame holds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from ..canonical import digest
from ..exchanges import words_of
from . import forms
from .accessible_names import AccessibleNames, squeeze_text
from .flat import FlatPage
from .forms import Edits
from .roles import PRESENTATION, input_type, is_disabled
from .styling import Look

_CHECKED = frozenset({
    "checkbox", "menuitemcheckbox", "option", "radio", "switch", "menuitemradio", "treeitem"})
_SELECTED = frozenset({
    "gridcell", "option", "row", "tab", "rowheader", "columnheader", "treeitem"})
_EXPANDED = frozenset({
    "application", "button", "checkbox", "combobox", "gridcell", "link", "listbox", "menuitem", "row", "rowheader", "tab",
    "treeitem", "columnheader", "menuitemcheckbox", "menuitemradio", "switch"})
_DISABLED = frozenset({
    "application", "button", "composite", "gridcell", "group", "input", "link", "menuitem", "scrollbar", "separator",
    "tab", "checkbox", "columnheader", "combobox", "grid", "listbox", "menu", "menubar", "menuitemcheckbox",
    "menuitemradio", "option", "radio", "radiogroup", "row", "rowheader", "searchbox", "select", "slider", "spinbutton",
    "switch", "tablist", "textbox", "toolbar", "tree", "treegrid", "treeitem"})
_FIELDS = frozenset({"button", "checkbox", "combobox", "radio", "searchbox", "slider", "spinbutton", "switch", "textbox"})
_INVALID = frozenset({
    "application", "checkbox", "columnheader", "combobox", "gridcell", "listbox", "radiogroup", "rowheader", "searchbox",
    "slider", "spinbutton", "switch", "textbox", "tree"})
_IDENTIFYING = frozenset({
    "alertdialog", "dialog", "banner", "complementary", "contentinfo", "form", "main", "navigation", "region", "search",
    "application", "document", "figure", "group", "grid", "listbox", "menu", "menubar", "radiogroup", "tablist", "tabpanel",
    "toolbar", "tree", "treegrid", "table", "columnheader", "rowheader"})
"""Roles whose name stays, though what they hold says it again."""
SPOKEN = words_of(
    "active alert article author blockquote checked code content current definition depth disabled document downloaded edits "
    "emphasis error expanded false file files found generic heading hidden image invalid kind level list listitem main marquee "
    "members message messages mixed modified name names navigation none note open opened origin page paragraph path "
    "placeholder pressed reactions result selected separator showing size snapshot status stored strong tabs term text thread "
    "time timer title tooltip true unknown user users value waited").union(
        _CHECKED, _SELECTED, _EXPANDED, _DISABLED, _IDENTIFYING)
"""Words by which answers say what a page shows, whatever stands on it."""
_LEVELS = frozenset({"heading", "listitem", "row", "treeitem"})
_HEADINGS = {"h1": "1", "h2": "2", "h3": "3", "h4": "4", "h5": "5", "h6": "6"}
_QUOTED = re.compile(r"""^\s|\s$|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\r\n]|^-|:(?:\s|$)|\s\#|^[&*\],?!>|@"'\#%\[]|[{}`]"""
                     r"""|^(?:y|n|yes|no|true|false|on|off|null|[-+]?(?:0x[0-9a-fA-F]+|Infinity|\d+\.?\d*(?:[eE][-+]?\d+)?"""
                     r"""|\.\d+(?:[eE][-+]?\d+)?))$""", re.IGNORECASE).search
_STATEFUL = _CHECKED | _SELECTED | _EXPANDED | _DISABLED | _INVALID | _LEVELS
_BOXED = frozenset({"button", "hr", "iframe", "img", "input", "meter", "progress", "select", "svg", "textarea", "video"})
"""They have a box without any content."""
_HIDDEN = "aria-hidden"
_LONGEST_NAME = 900
Line: TypeAlias = tuple[str, int, str]
"""What stands before the ref, the element's number, what stands after it; -1: a line without a ref."""
_SELECTOR = re.compile(r'role=([a-z]+)(?:\[name=("(?:[^"\\]|\\.)*"|\'[^\']*\')\s*s?\])?(?:\s*>>\s*nth=(\d+))?').fullmatch


def random_of(seed: int, number: int) -> int:
    """Return the random number that a seed draws for a document."""
    return int(digest(f"{seed} {number}")[:24], 16)


def first_ref(seed: int) -> int:
    """Return where the refs of a browser begin."""
    return 1 + random_of(seed, -1) % 89


class RefDraw(NamedTuple):
    """How the elements of a document are numbered in snapshots: without regard to their order."""

    start: int
    """Refs of documents that were shown before are smaller."""
    factor: int
    shift: int
    size: int
    """A prime that is larger than the count of elements."""

    def ref(self, number: int) -> str:
        """Return the ref of an element."""
        return f"e{self.start + (self.factor * number + self.shift) % self.size}"

    def number(self, ref: str) -> int | None:
        """Return the element of a ref, None where this document cannot have it."""
        if not (ref.startswith("e") and ref[1:].isascii() and ref[1:].isdigit() and len(ref) < 16):
            return None
        place = int(ref[1:]) - self.start
        if not 0 <= place < self.size:
            return None
        return (place - self.shift) * pow(self.factor, -1, self.size) % self.size

    @classmethod
    def draw(cls, start: int, n_elements: int, random: int) -> RefDraw:
        """Draw the numbers of a document with so many elements from a random number."""
        size = _prime(max(n_elements, 97))
        return cls(start, 0, 0, size).drawn_by(random, start)

    def drawn_by(self, random: int, start: int) -> RefDraw:
        """Return the numbers of a document of this size that another random number draws."""
        return RefDraw(start, 1 + random % (self.size - 1), (random >> 32) % self.size, self.size)


def _prime(least: int) -> int:
    """Return the first prime that is larger."""
    number = least + 1
    while any(number % each == 0 for each in range(2, int(number ** .5) + 1)):
        number += 1
    return number


class AccessNode:
    """An element as assistive technology sees it."""

    __slots__ = ("children", "is_repeated", "name", "number", "properties", "role", "states")

    def __init__(self, role: str, name: str, number: int) -> None:
        self.role = role
        self.name = name
        self.number = number
        self.children: list[AccessNode | str] = []
        self.properties: list[tuple[str, str]] = []
        self.states = ""
        self.is_repeated = False
        """Whether the nodes within say all that the name says, so that the snapshot leaves it out."""

    def is_text(self) -> bool:
        """Whether the node has no role and holds nothing but text."""
        return self.role == "generic" and all(isinstance(child, str) for child in self.children)


class PageView:
    """What a page shows before any edit, and how edits change that; shared by all who look at the page."""

    def __init__(self, page: FlatPage, look: Look, opened: Mapping[int, bool]) -> None:
        self.page = page
        self.look = look
        self._opened = opened
        self._names = AccessibleNames(page, look, lambda number: forms.shown_value(page, {}, number))
        self._has_aria_disabled = any("aria-disabled" in attributes for attributes in page.attributes)
        self.nodes: dict[int, AccessNode] = {}
        """Element to node, in the page's order, of all that is shown."""
        self._spans: dict[int, tuple[int, int, int]] = {}
        """Control to (first line, line after its last, depth)."""
        body = page.first("body")
        top = AccessNode("fragment", "", -1)
        self._visit(top, 0 if body is None else body)
        self._distil(top, None, set())
        self._lines: list[Line] = []
        for child in top.children:
            self._lines += self._rendered(child, 0, len(self._lines))

    def lines(self, edits: Edits, focus: int | None, refs: RefDraw) -> list[str]:
        """Return the lines of the snapshot."""
        lines = self._lines
        if edits:
            lines = list(lines)
            for number in sorted((each for each in edits if each in self._spans), key=lambda each: -self._spans[each][0]):
                start, stop, depth = self._spans[number]
                lines[start:stop] = self._rendered(self._edited(number, edits), depth)
        start, factor, shift, size = refs
        texts = [f"{head}[ref=e{start + (factor * number + shift) % size}]{tail}" if number >= 0 else head
                 for head, number, tail in lines]
        if focus is not None and focus in self.nodes:
            place = next((place for place, line in enumerate(lines) if line[1] == focus), None)
            if place is not None:
                head, number, tail = lines[place]
                texts[place] = f"{head}[active] [ref={refs.ref(number)}]{tail}"
        return texts

    def select(self, selector: str) -> list[int] | None:
        """Return the shown elements that a selector `role=ROLE[name="NAME"] >> nth=N` names; None: it is no such selector."""
        match = _SELECTOR(selector.strip())
        if match is None:
            return None
        role, quoted, place = match.groups()
        name = None if quoted is None else re.sub(r"\\(.)", r"\1", quoted[1:-1])
        numbers = [number for number, node in self.nodes.items() if node.role == role and name in (None, node.name)
                   and not self._names.is_hidden(number)]
        return numbers if place is None else numbers[int(place):int(place) + 1]

    def label(self, number: int) -> str:
        """Return how a sentence names an element: its role and name."""
        node = self.nodes.get(number)
        if node is None:
            return f"<{self.page.tags[number]}>"
        return f'{node.role} "{node.name}"' if node.name else node.role

    def name(self, number: int) -> str:
        """Return the accessible name of an element, shown or not."""
        node = self.nodes.get(number)
        return self._names.name(number) if node is None else node.name

    def _visit(self, parent: AccessNode, number: int) -> None:
        page, look = self.page, self.look
        if look.removed[number]:
            return
        shown = look.shown[number] and not self._is_folded_group(number)
        node = self._node(number) if shown else None
        into = node or parent
        if not look.inline[number] or page.tags[number] == "br":
            into.children.append(" ")
        is_folded = page.tags[number] == "details" and not self._opened.get(number, "open" in page.attributes[number])
        if number in look.before:
            into.children.append(look.before[number])
        for child in page.children[number] if page.tags[number] != "iframe" else ():
            if not isinstance(child, str):
                self._visit(into, child)
            elif shown and into.role != "textbox" and not is_folded:
                into.children.append(child)
        if number in look.after:
            into.children.append(look.after[number])
        if not look.inline[number] or page.tags[number] == "br":
            into.children.append(" ")
        if node is not None:
            parent.children.append(node)

    def _is_folded_group(self, number: int) -> bool:
        """Whether an element is a group of options in a closed list: browsers show the options alone."""
        if self.page.tags[number] != "optgroup":
            return False
        select = self.page.closest(number, "select")
        return select is not None and self._names.roles[select] == "combobox"

    def _node(self, number: int) -> AccessNode | None:
        """Return an element's node without its children, None where its texts belong to the element around it."""
        page, tag, attributes = self.page, self.page.tags[number], self.page.attributes[number]
        role = "iframe" if tag == "iframe" else self._names.roles[number] or "generic"
        if role in PRESENTATION:
            return None
        if role == "generic" and self.look.inline[number] and len(page.children[number]) == 1 and isinstance(
                page.children[number][0], str):
            return None
        node = self.nodes[number] = AccessNode(role, "" if role == "iframe" else self._names.name(number), number)
        node.states = self._states(node, {})
        if role == "link" and "href" in attributes:
            reference = attributes["href"]
            is_data = reference[:5].lower() == "data:" and "," in reference
            node.properties.append(("url", f"{reference.partition(',')[0]},…" if is_data else reference))
        if attributes.get(_HIDDEN, "").lower() == "true":
            node.properties.append((_HIDDEN, "true"))
        placeholder = attributes.get("placeholder")
        if role == "textbox" and placeholder is not None and placeholder != node.name:
            node.properties.append(("placeholder", placeholder))
        node.children += self._value(number, {})
        return node

    def _value(self, number: int, edits: Edits) -> list[str]:
        """Return what stands in a field, as the children of its node."""
        page = self.page
        if page.tags[number] not in ("input", "textarea"):
            return []
        kind = forms.kind_of(page, number)
        if kind in ("checkbox", "file", "radio"):
            return []
        text = forms.value(page, edits, number)
        return ["•" * len(text) if kind == "password" else text]

    def _distil(self, node: AccessNode, parent: AccessNode | None, pending: set[int]) -> list[AccessNode | str]:
        """Join texts and drop what says nothing new, from the inside out; return what stands in the node's place.

        `pending`: elements that gave a name to one around them and that no line shows yet.
        """
        sources = self._names.sources(node.number) if node.number >= 0 and node.name else ()
        sources = [each for each in sources if each in self.nodes and each not in self.look.untouched]
        pending.update(sources)
        if not node.is_text():
            pending.discard(node.number)
        children: list[AccessNode | str] = []
        for child in node.children:
            children += [child] if isinstance(child, str) else self._distil(child, node, pending)
        node.children = _joined(children)
        if node.children == [node.name]:
            node.children = []
        if not node.children and parent is not None and self._is_nothing(node):
            return self._without(node)
        if sources:
            node.is_repeated = node.role not in _IDENTIFYING and not pending.intersection(sources)
            pending.difference_update(sources)
        if node.role != "generic" or parent is None:
            return [node]
        if len(node.children) == 1 and isinstance(inner := node.children[0], AccessNode) and inner.is_text() and not (
                inner.name) and len(inner.children) == 1 and not inner.properties and not node.properties:
            self._without(inner)
            node.children = inner.children
        repeats = node.children == [parent.name] if not node.name else not node.children and node.name == parent.name
        if parent.name and repeats and not node.properties:
            pending.add(node.number)
            return self._without(node)
        if node.name or len(node.children) > 1 or any(
                isinstance(child, str) or child.number in self.look.untouched for child in node.children):
            return [node]
        self._without(node)
        return node.children

    def _is_nothing(self, node: AccessNode) -> bool:
        """Whether a node without content shows nothing: a nameless picture, or what assistive technology is not to know."""
        if node.role == "img" and not node.name:
            return True
        return self._names.is_hidden(node.number) and self.page.tags[node.number] not in _BOXED

    def _without(self, node: AccessNode) -> list[AccessNode | str]:
        """Take a node out of what is shown."""
        self.nodes.pop(node.number, None)
        return []

    def _edited(self, number: int, edits: Edits) -> AccessNode:
        """Return the node of a control as edits leave it."""
        node = self.nodes[number]
        edited = AccessNode(node.role, node.name, number)
        edited.properties, edited.states = node.properties, self._states(node, edits)
        edited.is_repeated = node.is_repeated
        if self.page.tags[number] == "select" or node.role not in _FIELDS:
            edited.children = [self._edited(child.number, edits) if isinstance(child, AccessNode) else child
                               for child in node.children]
        else:
            texts = map(squeeze_text, self._value(number, edits))
            edited.children = [text for text in texts if text and text != node.name]
        return edited

    def _states(self, node: AccessNode, edits: Edits) -> str:
        """Return the states of a node as the snapshot writes them, each with a space before it."""
        page, number, role = self.page, node.number, node.role
        if role not in _STATEFUL:
            return ""
        tag, attributes = page.tags[number], page.attributes[number]
        states = ""
        if role in _CHECKED:
            if tag == "input" and input_type(attributes) in ("checkbox", "radio"):
                states += " [checked]" if forms.is_checked(page, edits, number) else ""
            else:
                states += {"true": " [checked]", "mixed": " [checked=mixed]"}.get(attributes.get("aria-checked", ""), "")
        if role in _DISABLED and (is_disabled(page, number) or self._is_aria_disabled(number)):
            states += " [disabled]"
        if role in _EXPANDED and self._opened.get(number, attributes.get("aria-expanded") == "true"):
            states += " [expanded]"
        if role in _INVALID and attributes.get("aria-invalid", "").strip().lower() not in ("", "false"):
            invalid = attributes["aria-invalid"]
            states += f" [invalid={invalid}]" if invalid in ("grammar", "spelling") else " [invalid]"
        if role in _LEVELS:
            level = _HEADINGS.get(tag) or attributes.get("aria-level", "")
            states += f" [level={level}]" if level.isdigit() else ""
        if role == "button":
            states += {"true": " [pressed]", "mixed": " [pressed=mixed]"}.get(attributes.get("aria-pressed", ""), "")
        if role in _SELECTED and self._is_selected(number, edits):
            states += " [selected]"
        return states

    def _is_selected(self, number: int, edits: Edits) -> bool:
        if self.page.tags[number] != "option":
            return self.page.attributes[number].get("aria-selected", "").lower() == "true"
        select = self.page.closest(number, "select")
        return select is not None and number in forms.selection(self.page, edits, select)

    def _is_aria_disabled(self, number: int) -> bool:
        while number >= 0 and self._has_aria_disabled:
            text = self.page.attributes[number].get("aria-disabled", "").lower()
            if text in ("true", "false"):
                return text == "true"
            number = self.page.parents[number]
        return False

    def _rendered(self, child: AccessNode | str, depth: int, first: int | None = None) -> list[Line]:
        """Return the lines of a node. `first`: the number of its first line in the unedited page, whose spans it enters."""
        indent = "  " * depth
        if isinstance(child, str):
            return [(f"{indent}- text: {_as_value(child)}", -1, "")]
        head, tail = self._key(child, indent)
        number = child.number
        if number in self.look.untouched:
            head, number, tail = f"{head.rstrip()}{tail}", -1, ""
        children = child.children
        properties = [each for each in child.properties if each[0] != _HIDDEN]
        if not children and not properties:
            lines = [(head, number, tail)]
        elif len(children) == 1 and isinstance(children[0], str) and not properties:
            lines = [_with_tail((head, number, tail), f": {_as_value(children[0])}")]
        else:
            lines = [_with_tail((head, number, tail), ":")]
            lines += [(f"{indent}  - /{name}: {_as_value(text)}", -1, "") for name, text in properties]
            for each in children:
                lines += self._rendered(each, depth + 1, None if first is None else first + len(lines))
        if first is not None and self.page.tags[child.number] in ("input", "select", "textarea"):
            self._spans[child.number] = first, first + len(lines), depth
        return lines

    @staticmethod
    def _key(node: AccessNode, indent: str) -> tuple[str, str]:
        """Return what stands before and after the ref."""
        is_named = node.name and len(node.name) <= _LONGEST_NAME and not node.is_repeated
        name = f" {json.dumps(node.name, ensure_ascii=False)}" if is_named else ""
        hidden = f" [{_HIDDEN}]" if (_HIDDEN, "true") in node.properties else ""
        key = f"{node.role}{name}{node.states}{hidden} "
        if name and not node.name.replace(" ", "").isalnum() and _QUOTED(f"{key}[ref=e1]"):
            return f"{indent}- '{key.replace(chr(39), chr(39) * 2)}", "'"
        return f"{indent}- {key}", ""


def _with_tail(line: Line, tail: str) -> Line:
    return (line[0], line[1], line[2] + tail) if line[1] >= 0 else (line[0] + tail, -1, "")


def _joined(children: list[AccessNode | str]) -> list[AccessNode | str]:
    """Return children with texts that stand side by side as one, blank ones left out."""
    joined: list[AccessNode | str] = []
    texts: list[str] = []
    for child in [*children, None]:
        if isinstance(child, str):
            texts.append(child)
            continue
        text = squeeze_text("".join(texts)) if texts else ""
        texts = []
        joined += [text] if text else []
        joined += [child] if child is not None else []
    return joined


def _as_value(text: str) -> str:
    """Return a text as a value of YAML."""
    if text and ((text[0] == "/" and text.replace("/", "").replace("-", "").isalnum()) or not _QUOTED(text)):
        return text
    return json.dumps(text, ensure_ascii=False)
