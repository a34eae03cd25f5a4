"""HTML in, a tree of elements and texts out. For build time: the runtime never parses HTML.

Sees: elements, attributes, texts, the content of scripts and styles, as a browser's parser repairs them (HTML 5). Does not see:
comments, the doctype, the inert content of `<template>`, what scripts make of the page, and which spaces a style shows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from env_builder.runtime.site.trees import Element, rewrite
from warehouse.errors import Unavailable

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

_TEXT = "-text"


def parse(page: str) -> Element:
    """Return the page's root element. Errors: `Unavailable` where the extra `browser` is not installed."""
    try:
        from selectolax.lexbor import LexborHTMLParser
    except ImportError as error:
        raise Unavailable("reading pages needs the package selectolax",
                          hint='install it: pip install "traceroom[browser]"') from error
    root = LexborHTMLParser(page).root
    return _element(root) if root is not None else Element("html")


def _element(root: LexborNode) -> Element:
    tree = Element(root.tag or "", _attributes(root))
    waiting = [(root, tree)]
    while waiting:
        node, element = waiting.pop()
        child = node.first_child
        while child is not None:
            tag = child.tag or ""
            if tag == _TEXT:
                _append_text(element, child.text_content or "")
            elif not tag.startswith(("-", "!")):
                below = Element(tag, _attributes(child))
                element.children.append(below)
                waiting.append((child, below))
            child = child.next
    return tree


def _append_text(element: Element, text: str) -> None:
    """Add a text; texts that only a comment separated become one."""
    if element.children and isinstance(last := element.children[-1], str):
        element.children[-1] = last + text
    elif text:
        element.children.append(text)


def _attributes(node: LexborNode) -> dict[str, str]:
    return {name: value or "" for name, value in node.attributes.items()}


_KEEPS_SPACES = frozenset({"pre", "textarea", "script", "style"})


def collapse(root: Element) -> Element:
    """Return a copy as people see it: runs of spaces are one, and blank texts are dropped; texts keep a space at their ends.

    `squeeze` makes the same of the copy as of the page."""
    return rewrite(root, _collapsed)


def _collapsed(tag: str, text: str) -> str:
    words = text.split()
    if not words or tag in _KEEPS_SPACES:
        return text if words else ""
    return f"{' ' * text[0].isspace()}{' '.join(words)}{' ' * text[-1].isspace()}"
