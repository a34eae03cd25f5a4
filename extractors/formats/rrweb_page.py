"""The page of a session recording: its tree as rrweb writes it, the changes that scripts made of it, and its HTML.

In: the node of a full snapshot and the mutations after it. Out: HTML, and what a node is to a person (tag, id, name, type,
text, address, path). Styles that the recorder copied into attributes, its own attributes and documents in frames are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from extractors.formats.values import list_under, object_of

Node = dict[str, Any]
_DOCUMENT, _DOCTYPE, _ELEMENT, _TEXT, _CDATA, _COMMENT = range(6)
_VOID = frozenset(("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source", "track",
                   "wbr"))
_RAW = frozenset(("script", "style", "noscript"))
_MOST_TEXT = 200


class RecordedPage:
    """A page's tree, kept as it stands after each mutation."""

    def __init__(self, node: Any) -> None:
        self._root = _copied(object_of(node))
        self._nodes: dict[int, Node] = {}
        self._parents: dict[int, Node] = {}
        self.n_missed = 0
        """Changes of nodes that the recording never showed."""
        self._enter(self._root, None)

    def apply(self, mutation: Node) -> None:
        """Change the tree as one mutation says: what goes, what comes, texts, attributes."""
        for each in list_under(mutation, "removes"):
            self._remove(each["id"])
        waiting = list_under(mutation, "adds")
        while waiting:   # a node may come before the one that it lies in, or next to
            later = [each for each in waiting if not self._add(each)]
            if len(later) == len(waiting):
                self.n_missed += len(later)
                break
            waiting = later
        for each in list_under(mutation, "texts"):
            if node := self._node(each["id"]):
                node["textContent"] = each.get("value") or ""
        for each in list_under(mutation, "attributes"):
            if node := self._node(each["id"]):
                _change(node.setdefault("attributes", {}), object_of(each.get("attributes")))

    def html(self) -> str:
        """Return the page as HTML."""
        return "".join(_written(self._root))

    def title(self) -> str | None:
        """Return the page's title, None where it has none."""
        tagged = next((node for node in self._nodes.values() if node.get("tagName") == "title"), None)
        return _text(tagged) or None if tagged is not None else None

    def is_password(self, node_id: Any) -> bool:
        """Whether a node is a field for a password, also while the page shows what is typed."""
        attributes = object_of(self._nodes.get(node_id, {}).get("attributes"))
        return str(attributes.get("type")).lower() == "password" or "data-rr-is-password" in attributes

    def target(self, node_id: Any) -> Node:
        """Return what a node is, without what it holds; nothing of a node that the recording never showed."""
        node = self._nodes.get(node_id)
        if node is None:
            return {}
        attributes = object_of(node.get("attributes"))
        stated = {name: attributes.get(name) for name in ("id", "name", "type", "href")}
        if self.is_password(node_id):
            stated["type"] = "password"
        made = {"tag": str(node.get("tagName") or "").upper(), **stated, "text": _text(node)[:_MOST_TEXT],
                "xpath": self._path(node)}
        return {name: value for name, value in made.items() if value not in (None, "")}

    def _node(self, node_id: Any) -> Node | None:
        node = self._nodes.get(node_id)
        self.n_missed += node is None
        return node

    def _enter(self, node: Node, parent: Node | None) -> None:
        waiting: list[tuple[Node, Node | None]] = [(node, parent)]
        while waiting:
            each, above = waiting.pop()
            if "id" in each:
                self._nodes[each["id"]] = each
                if above is not None:
                    self._parents[each["id"]] = above
            waiting += [(inner, each) for inner in reversed(_children(each))]

    def _remove(self, node_id: Any) -> None:
        parent, node = self._parents.pop(node_id, None), self._nodes.pop(node_id, None)
        if parent is None or node is None:
            self.n_missed += 1
            return
        parent["childNodes"] = [each for each in _children(parent) if each is not node]
        waiting = _children(node)
        while waiting:
            each = waiting.pop()
            self._nodes.pop(each.get("id", -1), None)
            self._parents.pop(each.get("id", -1), None)
            waiting += _children(each)

    def _add(self, change: Node) -> bool:
        parent, node, next_id = self._nodes.get(change["parentId"]), _copied(object_of(change["node"])), change.get("nextId")
        if parent is None:
            return False
        if node.get("type") == _DOCUMENT:   # a frame's
            return True
        siblings = _children(parent)
        place = len(siblings)
        if next_id is not None:
            place = next((n for n, each in enumerate(siblings) if each.get("id") == next_id), -1)
            if place < 0:
                return False
        if node.get("id") in self._nodes:   # it moved
            self._remove(node["id"])
            siblings = _children(parent)
            place = next((n for n, each in enumerate(siblings) if each.get("id") == next_id), len(siblings))
        parent["childNodes"] = [*siblings[:place], node, *siblings[place:]]
        self._enter(node, parent)
        return True

    def _path(self, node: Node) -> str:
        steps: list[str] = []
        at: Node | None = node
        while at is not None:
            above = self._parents.get(at.get("id", -1))
            if at.get("type") == _ELEMENT:
                same = [each for each in _children(above or {}) if each.get("tagName") == at.get("tagName")]
                number = next((n for n, each in enumerate(same, 1) if each is at), 1)
                steps.append(f"/{at.get('tagName')}[{number}]")
            at = above
        return "".join(reversed(steps))


def _copied(root: Node) -> Node:
    """Return a copy of a tree: the record that it lies in stays as it is."""
    copy = {**root}
    waiting = [copy]
    while waiting:
        node = waiting.pop()
        if isinstance(node.get("attributes"), dict):
            node["attributes"] = {**node["attributes"]}
        if isinstance(node.get("childNodes"), list):
            node["childNodes"] = [{**each} if isinstance(each, dict) else each for each in node["childNodes"]]
            waiting += _children(node)
    return copy


def _children(node: Node) -> list[Node]:
    return [each for each in list_under(node, "childNodes") if isinstance(each, dict)]


def _change(attributes: Node, changed: Node) -> None:
    for name, value in changed.items():
        if value is None:
            attributes.pop(name, None)
        elif name == "style" and isinstance(value, dict):
            attributes[name] = _restyled(str(attributes.get(name) or ""), value)
        else:
            attributes[name] = value


def _restyled(style: str, changed: Node) -> str:
    """Return a style with properties changed: a text, a text with its priority, or false for one that is gone."""
    stated = dict(part.split(":", 1) for part in style.split(";") if ":" in part)
    stated = {name.strip(): value.strip() for name, value in stated.items()}
    for name, value in changed.items():
        if value is False or value is None:
            stated.pop(name, None)
        else:
            words = value if isinstance(value, list) else [value]
            stated[name] = " ".join(f"!{word}" if n else str(word) for n, word in enumerate(words) if word)
    return " ".join(f"{name}: {value};" for name, value in stated.items())


def _text(node: Node) -> str:
    parts: list[str] = []
    waiting = [node]
    while waiting:
        each = waiting.pop()
        if each.get("type") == _TEXT and not each.get("isStyle"):
            parts.append(str(each.get("textContent") or ""))
        elif each.get("tagName") not in _RAW:
            waiting += reversed(_children(each))
    return " ".join("".join(parts).split())


def _written(root: Node) -> Iterator[str]:
    waiting: list[tuple[Node | str, str]] = [(root, "")]
    while waiting:
        node, above = waiting.pop()
        if isinstance(node, str):
            yield node
            continue
        kind, text = node.get("type"), str(node.get("textContent") or "")
        if kind == _DOCTYPE:
            yield f"<!DOCTYPE {node.get('name') or 'html'}>"
        elif kind in (_TEXT, _CDATA):
            yield text if above in _RAW else escape(text, quote=False)
        elif kind == _COMMENT:
            yield f"<!--{text}-->"
        elif kind == _ELEMENT:
            tag, attributes = str(node.get("tagName") or "div").lower(), object_of(node.get("attributes"))
            yield f"<{tag}{''.join(_attributes(tag, attributes))}>"
            if tag not in _VOID:
                waiting.append((f"</{tag}>", ""))
                waiting += _inside(tag, node, attributes)
        elif kind == _DOCUMENT:
            waiting += [(each, "") for each in reversed(_children(node))]


def _inside(tag: str, node: Node, attributes: Node) -> list[tuple[Node | str, str]]:
    """Return what lies in an element, last first."""
    if tag == "iframe":
        return []
    children = _children(node)
    if tag == "textarea" and attributes.get("value"):
        return [(escape(str(attributes["value"]), quote=False), "")]
    if tag == "style" and not children and attributes.get("_cssText"):
        return [(str(attributes["_cssText"]), "")]
    return [(each, tag) for each in reversed(children)]


def _attributes(tag: str, attributes: Node) -> Iterator[str]:
    is_password = str(attributes.get("type")).lower() == "password" or "data-rr-is-password" in attributes
    for name, value in attributes.items():
        if value is None or value is False or name == "_cssText" or name.startswith(("rr_", "data-rr-")):
            continue
        if name == "value" and (is_password or tag in ("textarea", "select")):
            continue
        yield f" {name}" if value is True else f' {name}="{escape(str(value))}"'
