"""Open what repeats a request in a template whose pages were all requested with the same values.

In: the template of a route's pages, the values of their requests. Out: the same template, in which texts and attributes that
hold such a value are places, so that a page of another value does not show this one. Sees: values that all pages have in
common, of three characters and more, with a digit or as a path. Does not see: names in words, as these stand in texts anyway.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from env_builder.runtime.site.sources import bounded
from env_builder.site.shapes import ElementShape, TextShape

_LEAST = 3


def repeated_values(arguments: Sequence[Mapping[str, str]], names: Iterable[str]) -> list[str]:
    """Return the values of these names that all requests have in common, and that a page may repeat; the longest first."""
    values = {name: {each.get(name, "") for each in arguments} for name in names}
    common = {value for own in values.values() if len(own) == 1 for value in own}
    return sorted((value for value in common if len(value) >= _LEAST and (value[0] == "/" or any(map(str.isdigit, value)))),
                  key=lambda value: (-len(value), value))


def open_echoes(shape: ElementShape, values: Sequence[str]) -> None:
    """Make places of the texts and attributes that hold one of the values."""
    if values:
        _open(shape, re.compile("|".join(map(bounded, values))))


def _open(shape: ElementShape, values: re.Pattern[str]) -> None:
    for name in [name for name, value in shape.constants.items() if values.search(value)]:
        del shape.constants[name]
        shape.places.add(name)
    for child in shape.children:
        if isinstance(child.shape, ElementShape):
            _open(child.shape, values)
        elif isinstance(child.shape, TextShape) and child.shape.constant is not None and values.search(child.shape.constant):
            child.shape.constant = None
