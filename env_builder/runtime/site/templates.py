"""Values of a template's places in, the page's tree out. Parts of the page without places are shared by all its pages.

A template as JSON: an element is `{"tag", "constants", "places", "order", "children"}`, of which all but the tag may be absent
(`order`: names of attributes, where places do not follow the constants); a child is an element, a constant text, `null` (a text
that is a place) or `[]` (optional children or rows, a place whose value holds them as JSON). What stands for a secret is
replaced in attributes, whose value it is alone. Of an unknown place, an attribute is left away, a text reads `[unknown]`, and
rows, which are shown as they were known last, get one more that reads so; its element's attribute `data-unknown` holds the
attributes' names, `text` and `rows`, and that of each such row is `row`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from .trees import Element, Node, decode
from .visits import Place, Value, rows_of

__all__ = ["SECRET", "UNKNOWN", "PageTemplate", "decoded_rows"]

SECRET = "[secret]"
"""What stands in recordings for a secret."""

UNKNOWN = "[unknown]"
_MARK = "data-unknown"
_ROWS = {"table": ("tbody", "tr", "td"), "tbody": ("tr", "td"), "tr": ("td",), "ul": ("li",), "ol": ("li",),
         "select": ("option",), "dl": ("dd",)}
"""What a text must stand in to be a row of an element."""


class PageTemplate:
    """A template that makes pages."""

    __slots__ = ("_attributes", "_children", "_constants", "_is_made", "_order", "_secrets", "_tag", "places")

    def __init__(self, plain: Mapping[str, Any], path: str = "") -> None:
        """Compile a template from its JSON; `path` is its place in the page's template."""
        self._tag: str = plain["tag"]
        self._constants: dict[str, str] = plain.get("constants", {})
        self._secrets = [name for name, value in self._constants.items() if value == SECRET]
        self._order: list[str] = plain.get("order", [])
        self._attributes = [(name, f"{path}{name}") for name in plain.get("places", ())]
        self._children: list[str | Element | PageTemplate | tuple[Place, bool]] = []
        self.places: list[Place] = [place for _, place in self._attributes]
        self._is_made = bool(self._attributes or self._secrets)
        for index, child in enumerate(plain.get("children", ())):
            self._add_child(child, f"{path}{index}")

    def _add_child(self, child: Any, place: Place) -> None:
        if isinstance(child, str):
            self._children.append(child)
        elif not child:
            self._children.append((place, child is not None))
            self.places.append(place)
            self._is_made = True
        else:
            template = PageTemplate(child, f"{place}/")
            self.places += template.places
            self._is_made |= template._is_made
            self._children.append(template if template._is_made else template.fill({}, ""))

    def fill(self, values: Mapping[Place, Value], secret: str, unknown: frozenset[Place] = frozenset()) -> Element:
        """Return the page with these values, and this one for a secret. Errors: KeyError for a place without a value."""
        marks: list[str] = []
        attributes = self._constants
        if self._attributes or self._secrets:
            attributes = attributes.copy()
            for name in self._secrets:
                attributes[name] = secret
            for name, place in self._attributes:
                if place in unknown:
                    marks.append(name)
                elif (value := values[place]) is not None:
                    attributes[name] = secret if value == SECRET else value
            if self._order:
                attributes = {name: attributes[name] for name in self._order if name in attributes}
        children: list[Node] = []
        for child in self._children:
            if isinstance(child, PageTemplate):
                children.append(child.fill(values, secret, unknown))
            elif not isinstance(child, tuple):
                children.append(child)
            elif child[1]:
                rows = values[child[0]] or "[]"
                nodes = decoded_rows(rows.replace(f'"{SECRET}"', f'"{secret}"') if SECRET in rows else rows)
                if child[0] in unknown:
                    marks.append("rows")
                    nodes = [*map(_marked, nodes), _unknown_row(self._tag)]
                children += nodes
            elif child[0] in unknown:
                marks.append("text")
                children.append(UNKNOWN)
            else:
                children.append(values[child[0]] or "")
        if marks:
            attributes = {**attributes, _MARK: " ".join(dict.fromkeys(marks))}
        return Element(self._tag, attributes, children)


def _marked(row: Node) -> Node:
    return Element(row.tag, {**row.attributes, _MARK: "row"}, row.children) if isinstance(row, Element) else row


def _unknown_row(tag: str) -> Node:
    row: Node = UNKNOWN
    for name in reversed(_ROWS.get(tag, ())):
        row = Element(name, {}, [row])
    return row


@lru_cache(maxsize=4096)
def decoded_rows(text: str) -> Sequence[Node]:
    """Return the nodes of a value that holds children as JSON; they are shared. Of another value, as other pages may have in
    its place, none."""
    return tuple(decode(text)) if rows_of(text) is not None else ()
