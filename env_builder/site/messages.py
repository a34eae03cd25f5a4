"""Templates of a site's pages in, the box on them in which it says once what a form did, opened; and what it says after which.

A box is an element with the same tag and attributes, an `id` among them, that stands once on pages of several routes: empty on
some routes, filled on others, and what fills it stood there after a form nearly always. On a route whose pages all came after
one form, what it says is no part of the template then; on a route where it was always empty, it may say something.
Does not see: boxes without an `id`, messages that stay until they are closed, boxes that one route's pages alone have.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from env_builder.runtime.site.trees import Element, Node, decode, encode
from env_builder.runtime.site.visits import SiteVisit, Value
from env_builder.site.shapes import ANY, ChildShape, ElementShape, TextShape

__all__ = ["MessageBox", "after_forms", "box_value", "boxes_by_kind", "open_boxes"]

_Signature: TypeAlias = tuple[str, tuple[tuple[str, str], ...]]
_LEAST_ROUTES, _LEAST_FILLED, _AFTER_FORMS = 3, 3, 0.95
"""Routes whose pages have a box; pages on which it says something; share of these that came after a form."""


class MessageBox(NamedTuple):
    """Where the pages of a route have a box of messages."""

    path: str
    """Way to its children from the template's root."""
    n_children: int
    """Children that its template has: places, each of which holds nodes as JSON."""
    is_open: bool
    """Whether one place holds all that it says."""


def open_boxes(templates: Mapping[tuple[str, int], ElementShape],
               pages: Iterable[tuple[tuple[str, int], Element, bool]]) -> dict[tuple[str, int], MessageBox]:
    """Open the boxes of messages in templates by route and status; return where they are.

    `pages`: recorded pages with their template's key, and whether a form was sent since the page before or for this one."""
    shapes: dict[_Signature, dict[tuple[str, int], tuple[str, ElementShape]]] = defaultdict(dict)
    for key, template in templates.items():
        for signature, own in _named(template).items():
            shapes[signature][key] = own
    candidates = {signature: own for signature, own in shapes.items() if len({route for (route, _) in own}) >= _LEAST_ROUTES
                  and len({bool(shape.children) for _, shape in own.values()}) > 1}
    filled: dict[_Signature, list[bool]] = defaultdict(list)
    for key, page, is_after in pages:
        for signature in [signature for signature, own in candidates.items() if key in own]:
            if any(_signature(each) == signature and each.children for each in page.elements()):
                filled[signature].append(is_after)
    boxes: dict[tuple[str, int], MessageBox] = {}
    for signature, afterwards in filled.items():
        if len(afterwards) >= _LEAST_FILLED and sum(afterwards) >= _AFTER_FORMS * len(afterwards):
            boxes |= {key: _opened(path, shape) for key, (path, shape) in candidates[signature].items() if key not in boxes}
    return boxes


def _opened(path: str, shape: ElementShape) -> MessageBox:
    is_open = all(child.number == "one" for child in shape.children)
    if is_open:
        shape.children = [ChildShape(ANY, "rows", TextShape(None))]
    return MessageBox(path, len(shape.children), is_open or len(shape.children) == 1)


def _named(template: ElementShape) -> dict[_Signature, tuple[str, ElementShape]]:
    """Return the elements with an `id` that a template has once, by what they are, with the way to their children."""
    elements: dict[_Signature, list[tuple[str, ElementShape]]] = defaultdict(list)
    for path, shape in _elements(template, ""):
        if "id" in shape.constants and not shape.places:
            elements[shape.tag, tuple(sorted(shape.constants.items()))].append((path, shape))
    return {signature: own[0] for signature, own in elements.items() if len(own) == 1}


def _elements(shape: ElementShape, path: str) -> Iterator[tuple[str, ElementShape]]:
    yield path, shape
    for index, child in enumerate(shape.children):
        if child.number == "one" and isinstance(child.shape, ElementShape):
            yield from _elements(child.shape, f"{path}{index}/")


def _signature(element: Element) -> _Signature | None:
    return (element.tag, tuple(sorted(element.attributes.items()))) if "id" in element.attributes else None


def box_value(visit: SiteVisit, box: MessageBox) -> Value:
    """Return what the box on a visit's page says, as JSON."""
    nodes: list[Node] = []
    for index in range(box.n_children):
        value = visit.values.get(f"{box.path}{index}")
        if not value or value[0] != "[":
            return None
        nodes += decode(value)
    return encode(nodes)


def boxes_by_kind(boxes: Mapping[tuple[str, int], MessageBox]) -> dict[tuple[str, Value], MessageBox]:
    """Return boxes by route and kind of answer."""
    return {(route, f"{status} page"): box for (route, status), box in boxes.items()}


def after_forms(sessions: Iterable[Sequence[tuple[bool, bool]]]) -> Iterator[list[bool]]:
    """Yield of each session's requests (whether a form, whether a page came back) which came after a form or are one."""
    for session in sessions:
        has_posted, marks = False, []
        for is_write, is_page in session:
            has_posted |= is_write
            marks.append(has_posted)
            has_posted &= not is_page
        yield marks
