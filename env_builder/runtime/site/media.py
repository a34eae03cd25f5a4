"""Media queries for the screen of a desktop browser: read once, then asked for each viewport.

Sees: media types, `width` and `height` (min-, max- and ranges), `orientation`, preferences of somebody who set none, a mouse.
Does not see: other features; a query that needs one does not hold.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeAlias

Condition: TypeAlias = "list[str | float]"
"""A bound (`min-width`, `max-height`, …) with pixels, or `orientation` with its value."""
Media: TypeAlias = "list[list[Condition]] | None"
"""Alternatives, each a list of conditions that hold together; None: it always holds, []: never."""
_TYPE = re.compile(r"(not\s+|only\s+)?(screen|all|print|speech|tty|tv|projection|handheld|braille|embossed|aural)\b")
_LENGTH = r"([\d.]+)(px|em|rem)?"
_BOUND = re.compile(rf"(min|max)-(?:device-)?(width|height)\s*:\s*{_LENGTH}")
_RANGE = re.compile(rf"(?:{_LENGTH}\s*([<>]=?)\s*)?(width|height)\s*(?:([<>]=?|=|:)\s*{_LENGTH})?")
_OPPOSITE = {"min": "max", "max": "min"}
_USUAL = frozenset({
    "prefers-color-scheme: light", "prefers-reduced-motion: no-preference", "prefers-contrast: no-preference", "hover: hover",
    "hover", "any-hover: hover", "pointer: fine", "pointer", "any-pointer: fine", "forced-colors: none", "color",
    "prefers-reduced-transparency: no-preference", "inverted-colors: none", "scripting: enabled", "update: fast", "grid: 0"})
"""What holds for somebody at a desk who has set no preference."""
_CLOSELY = 0.01
"""How much less is less, in pixels."""


def media_query(text: str) -> Media:
    """Return what a media query asks for."""
    alternatives: list[list[Condition]] = []
    for each in re.split(r",(?![^(]*\))", text.lower()):
        conditions = _alternative(each.strip())
        if conditions == []:
            return None
        if conditions is not None:
            alternatives.append(conditions)
    return alternatives


def both(one: Media, other: Media) -> Media:
    """Return what holds if both do."""
    if one is None or other is None:
        return other if one is None else one
    return [first + second for first in one for second in other]


def holds(media: Media, size: Mapping[str, float]) -> bool:
    """Whether a query holds on a screen of such `width` and `height`."""
    return media is None or any(all(_holds(condition, size) for condition in each) for each in media)


def _holds(condition: Condition, size: Mapping[str, float]) -> bool:
    name, value = condition
    if isinstance(value, str):
        return (value == "landscape") == (size["width"] > size["height"])
    bound, _, what = str(name).partition("-")
    return size[what] >= value if bound == "min" else size[what] <= value


def _alternative(text: str) -> list[Condition] | None:
    """Return the conditions of one alternative; None: it never holds."""
    kind = _TYPE.match(text)
    negated, fits = False, True
    if kind is not None:
        negated, fits = bool(kind[1]) and kind[1].strip() == "not", kind[2] in ("screen", "all")
        text = re.sub(r"^\s*and\b", "", text[kind.end():])
    elif text.startswith("not"):
        negated, text = True, text[3:]
    conditions: list[Condition] = []
    for part in re.split(r"\band\b", text):
        features = _feature(re.sub(r"\s*:\s*", ": ", part.strip().strip("()").strip())) if part.strip() else []
        if features is None:
            return [] if negated else None
        conditions += features
    if not negated:
        return conditions if fits else None
    if not fits:
        return []
    if len(conditions) == 1 and not isinstance(conditions[0][1], str):
        bound, _, what = str(conditions[0][0]).partition("-")
        off = -_CLOSELY if bound == "min" else _CLOSELY
        return [[f"{_OPPOSITE[bound]}-{what}", float(conditions[0][1]) + off]]
    return None


def _feature(text: str) -> list[Condition] | None:
    """Return what a feature asks for; None: what a screen does not have or this module does not know."""
    if text in _USUAL:
        return []
    if text.startswith("orientation: "):
        return [["orientation", text.removeprefix("orientation: ")]]
    bound = _BOUND.fullmatch(text)
    if bound is not None:
        return [[f"{bound[1]}-{bound[2]}", _pixels(bound[3], bound[4])]]
    ranged = _RANGE.fullmatch(text)
    if ranged is None or not (ranged[1] or ranged[6]):
        return None
    conditions: list[Condition] = []
    if ranged[1]:
        turned = {"<": ">", ">": "<"}[ranged[3][0]] + ranged[3][1:]
        conditions.append(_compared(ranged[4], turned, _pixels(ranged[1], ranged[2])))
    if ranged[6] and ranged[5] in ("=", ":"):
        exact = _pixels(ranged[6], ranged[7])
        conditions += [[f"min-{ranged[4]}", exact], [f"max-{ranged[4]}", exact]]
    elif ranged[6]:
        conditions.append(_compared(ranged[4], ranged[5], _pixels(ranged[6], ranged[7])))
    return conditions


def _compared(what: str, how: str, pixels: float) -> Condition:
    off = 0.0 if how.endswith("=") else _CLOSELY
    return [f"min-{what}", pixels + off] if how[0] == ">" else [f"max-{what}", pixels - off]


def _pixels(number: str, unit: str | None) -> float:
    try:
        return float(number) * (16 if unit in ("em", "rem") else 1)
    except ValueError:
        return float("inf")
