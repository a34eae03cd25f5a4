"""A map of sizes: rectangles whose areas are as the sizes, as near to squares as can be.

Squarified treemaps, Bruls, Huizing and van Wijk 2000: the largest first, in rows along the shorter side, each row as long as
that makes its worst rectangle better.
"""

from __future__ import annotations

from typing import NamedTuple


class Box(NamedTuple):
    """A rectangle, in the units of the whole."""

    x: float
    y: float
    width: float
    height: float


def squarified(sizes: list[float], width: float, height: float) -> list[Box]:
    """A box for each size; sizes are above 0, and fall where boxes shall be near to squares."""
    scale = width * height / sum(sizes) if sizes else 0.0
    areas, boxes, free = [size * scale for size in sizes], list[Box](), Box(0.0, 0.0, width, height)
    while areas:
        side = min(free.width, free.height)
        n = 1
        while n < len(areas) and _worst(areas[: n + 1], side) <= _worst(areas[:n], side):
            n += 1
        row, free = _laid(areas[:n], free)
        boxes += row
        areas = areas[n:]
    return boxes


def _worst(areas: list[float], side: float) -> float:
    """The worst ratio of sides in a row along `side`."""
    total = sum(areas)
    return max(side**2 * max(areas) / total**2, total**2 / (side**2 * min(areas)))


def _laid(areas: list[float], free: Box) -> tuple[list[Box], Box]:
    total, row = sum(areas), list[Box]()
    if free.width >= free.height:
        thick, y = total / free.height, free.y
        for area in areas:
            row.append(Box(free.x, y, thick, area / thick))
            y += area / thick
        return row, Box(free.x + thick, free.y, max(free.width - thick, 1e-9), free.height)
    thick, x = total / free.width, free.x
    for area in areas:
        row.append(Box(x, free.y, area / thick, thick))
        x += area / thick
    return row, Box(free.x, free.y + thick, free.width, max(free.height - thick, 1e-9))
