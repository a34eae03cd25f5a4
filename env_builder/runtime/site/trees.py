"""A page as a tree of elements and texts; the tree as HTML and as JSON. Pages are parsed at build time, never here."""

from __future__ import annotations

import html
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

_VOID = frozenset({
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track", "wbr"})
_RAW = frozenset({"script", "style", "xmp", "iframe", "noembed", "noframes"})
"""Elements whose text is written as it is, without entities."""
_EATS_A_NEWLINE = frozenset({"pre", "textarea", "listing"})
"""Elements whose first newline a parser drops."""


@dataclass(slots=True)
class Element:
    """An element of a page."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    """Name to value, as they come; an attribute without a value has the empty one."""
    children: list[Node] = field(default_factory=list)
    """Elements and texts, in the page's order."""

    def elements(self) -> Iterator[Element]:
        """Yield the element and every element below it, in the page's order."""
        waiting = [self]
        while waiting:
            element = waiting.pop()
            yield element
            waiting += [child for child in reversed(element.children) if isinstance(child, Element)]


Node: TypeAlias = Element | str


def render(root: Element) -> str:
    """Return the page's HTML; parsing it gives the same tree again."""
    parts = ["<!DOCTYPE html>"] if root.tag == "html" else []
    waiting: list[tuple[Node, bool]] = [(root, False)]
    raw = False
    while waiting:
        node, is_end = waiting.pop()
        if isinstance(node, str):
            parts.append(node if raw else html.escape(node, quote=False))
        elif is_end:
            parts.append(f"</{node.tag}>")
            raw = False
        else:
            parts.append(_opening(node))
            if node.tag not in _VOID:
                raw = node.tag in _RAW
                waiting.append((node, True))
                waiting += [(child, False) for child in reversed(node.children)]
    return "".join(parts)


def _opening(element: Element) -> str:
    attributes = "".join(f' {name}="{html.escape(value)}"' for name, value in element.attributes.items())
    first = element.children[0] if element.children else ""
    newline = "\n" if element.tag in _EATS_A_NEWLINE and isinstance(first, str) and first.startswith("\n") else ""
    return f"<{element.tag}{attributes}>{newline}"


def encode(nodes: Sequence[Node]) -> str:
    """Return nodes as JSON text: a text as it is, an element as [tag, attributes, children]."""
    return json.dumps([_plain(node) for node in nodes], ensure_ascii=False, separators=(",", ":"))


def _plain(node: Node) -> Any:
    return node if isinstance(node, str) else [node.tag, node.attributes, [_plain(child) for child in node.children]]


def decode(text: str) -> list[Node]:
    """Return the nodes that `encode` wrote. Errors: ValueError for other text."""
    return [_node(plain) for plain in json.loads(text)]


def _node(plain: Any) -> Node:
    if isinstance(plain, str):
        return plain
    tag, attributes, children = plain
    return Element(tag, attributes, [_node(child) for child in children])


def rewrite(root: Element, text_of: Callable[[str, str], str], value_of: Callable[[str], str] = str) -> Element:
    """Return a copy with other texts, by tag and text, and other attribute values; a text that becomes empty is dropped."""
    def copied(element: Element) -> Element:
        return Element(element.tag, {name: value_of(value) for name, value in element.attributes.items()})

    copy = copied(root)
    waiting = [(root, copy)]
    while waiting:
        element, target = waiting.pop()
        for child in element.children:
            if isinstance(child, Element):
                below = copied(child)
                target.children.append(below)
                waiting.append((child, below))
            elif text := text_of(element.tag, child):
                target.children.append(text)
    return copy


def squeeze(root: Element) -> Element:
    """Return a copy for comparing: runs of spaces are one, none stand at a text's ends, and blank texts are dropped."""
    return rewrite(root, lambda _, text: " ".join(text.split()), lambda value: " ".join(value.split()))
