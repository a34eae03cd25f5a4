"""A page and its template in, what stands in the template's places out; and the template as the runtime reads it.

A filling has a value for each place: a text, an attribute (None: the page has none), or optional children and rows, as JSON.
Only pages that fit their template have one, so the runtime's `PageTemplate(plain_template(template)).fill(extract(template,
page))` gives each such page again.
"""

from __future__ import annotations

from typing import Any, TypeAlias

from env_builder.runtime.site.trees import Element, encode
from env_builder.runtime.site.visits import Place, Value
from env_builder.site.shapes import ChildShape, ElementShape, TextShape, assign

Filling: TypeAlias = dict[Place, Value]


def extract(template: ElementShape, page: Element) -> Filling | None:
    """Return what stands in the places of a page, None where the page doesn't fit its template."""
    filling: Filling = {}
    return filling if _extract(template, page, "", filling) else None


def _extract(shape: ElementShape, element: Element, path: str, filling: Filling) -> bool:
    """Take the values of an element's places; return whether these and the template give the element again."""
    own = {name: value for name, value in element.attributes.items() if name not in shape.places}
    filling.update({f"{path}{name}": element.attributes.get(name) for name in sorted(shape.places)})
    assigned = assign(shape.children, element.children)
    if element.tag != shape.tag or own != shape.constants or None in assigned:
        return False
    for index, child in enumerate(shape.children):
        nodes = [node for node, owner in zip(element.children, assigned, strict=True) if owner is child]
        place = f"{path}{index}"
        if child.number != "one":
            filling[place] = encode(nodes)   # whole: what rows have in common is no part of the template
        elif not nodes:
            return False
        elif isinstance(child.shape, ElementShape) and isinstance(nodes[0], Element):
            if not _extract(child.shape, nodes[0], f"{place}/", filling):
                return False
        elif isinstance(child.shape, TextShape) and isinstance(nodes[0], str):
            if child.shape.constant not in (None, nodes[0]):
                return False
            if child.shape.constant is None:
                filling[place] = nodes[0]
    return True


def plain_template(shape: ElementShape) -> dict[str, Any]:
    """Return a template as JSON, as `env_builder.runtime.site.templates` describes it."""
    plain: dict[str, Any] = {"tag": shape.tag}
    if shape.constants:
        plain["constants"] = shape.constants
    if shape.places:
        plain["places"] = sorted(shape.places)
        if shape.order != [*shape.constants, *sorted(shape.places)]:
            plain["order"] = shape.order
    if shape.children:
        plain["children"] = [_plain_child(child) for child in shape.children]
    return plain


def _plain_child(child: ChildShape) -> Any:
    if child.number != "one":
        return []
    return plain_template(child.shape) if isinstance(child.shape, ElementShape) else child.shape.constant
