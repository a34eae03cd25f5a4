"""A page and its template in, what stands in the template's places out; and from that the page again.

A filling has a value for each place: a text, an attribute (None: the page has none), or optional children and rows, as JSON.
Only pages that fit their template have one, so `fill(template, extract(template, page)) == page` holds for each that does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from env_builder.runtime.site.trees import Element, decode, encode
from env_builder.site.shapes import ElementShape, TextShape, assign, fit

Place: TypeAlias = tuple[int | str, ...]
"""The ordinals of children from the root of the template down, then the attribute's name if it is one."""
Value: TypeAlias = str | None
Filling: TypeAlias = dict[Place, Value]


def extract(template: ElementShape, page: Element) -> Filling | None:
    """Return what stands in the places of a squeezed page, None where the page doesn't fit its template."""
    if not fit(template, page).fits:
        return None
    filling: Filling = {}
    _extract(template, page, (), filling)
    return filling


def _extract(shape: ElementShape, element: Element, path: Place, filling: Filling) -> None:
    filling.update({(*path, name): element.attributes.get(name) for name in shape.places})
    assigned = assign(shape.children, element.children)
    for index, child in enumerate(shape.children):
        nodes = [node for node, owner in zip(element.children, assigned, strict=True) if owner is child]
        place = (*path, index)
        if child.number != "one":
            filling[place] = encode(nodes)
        elif isinstance(child.shape, ElementShape) and isinstance(nodes[0], Element):
            _extract(child.shape, nodes[0], place, filling)
        elif isinstance(child.shape, TextShape) and child.shape.constant is None and isinstance(nodes[0], str):
            filling[place] = nodes[0]


def fill(template: ElementShape, filling: Mapping[Place, Value]) -> Element:
    """Return the page of a template with these values. Errors: KeyError for a place without a value."""
    return _fill(template, (), filling)


def _fill(shape: ElementShape, path: Place, filling: Mapping[Place, Value]) -> Element:
    element = Element(shape.tag, dict(shape.constants))
    for name in sorted(shape.places):
        if (value := filling[(*path, name)]) is not None:
            element.attributes[name] = value
    for index, child in enumerate(shape.children):
        place = (*path, index)
        if child.number != "one":
            element.children += decode(filling[place] or "[]")
        elif isinstance(child.shape, ElementShape):
            element.children.append(_fill(child.shape, place, filling))
        else:
            constant = child.shape.constant
            element.children.append((filling[place] or "") if constant is None else constant)
    return element
