"""Kinds of checks: ours, a family a module, and those of installed packages (entry point group `traceroom.checks`).

An entry point's name is the kind's name, its value a `Kind`; the room and its grader need nothing installed for our own. A
module is loaded when a rubric first names one of its kinds.
"""

from __future__ import annotations

import json
from functools import cache, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..canonical import canonical
from ..schemas import refusal
from .kind import Ask, Found, Kind, Schema, Seen

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints

__all__ = ["GROUP", "Ask", "Found", "Kind", "Schema", "Seen", "kind_of", "kinds", "prepared"]

GROUP = "traceroom.checks"
KEPT = 512
"""Checks that are kept as they were read."""
OWN = {
    "state": "states", "untouched": "states", "must_not_write": "states", "said": "telling", "spoke": "telling",
    "not_said": "telling", "promised": "telling", "call": "calling", "order": "calling", "honeypot": "calling",
    "sql": "querying", "file": "producing", "process": "producing", "judge": "judging", "combine": "combining",
}
"""Kind -> the module here that holds it."""


def kinds() -> tuple[str, ...]:
    """Names of all kinds that there are, those of installed packages among them."""
    return tuple(sorted({*OWN, *(point.name for point in _points())}))


def _points() -> EntryPoints:
    from importlib.metadata import entry_points  # only where a kind is not ours: a room starts sooner without it

    return entry_points(group=GROUP)


@cache
def kind_of(name: str) -> Kind:
    """The kind of this name: ours before anybody's. ValueError where there is none, or an entry point holds no `Kind`."""
    if name in OWN:
        found: Kind = import_module(f".{OWN[name]}", __name__).KINDS[name]
        return found
    point = next((point for point in _points() if point.name == name), None)
    if point is None:
        raise ValueError(f"no kind {name!r}; there are: {', '.join(kinds())}")
    loaded = point.load()
    if not all(hasattr(loaded, field) for field in Kind._fields):
        raise ValueError(f"the entry point {point.value} of the kind {name!r} is no Kind; see docs/rewards.md")
    return Kind(*(getattr(loaded, field) for field in Kind._fields))


def prepared(name: str, parameters: Any) -> tuple[Kind, Any]:
    """The kind, and the parameters as it takes them. ValueError with one sentence where it refuses them."""
    kind = kind_of(name)
    try:
        text = canonical(parameters)
    except (ValueError, TypeError, RecursionError) as error:
        raise ValueError("parameters cannot be written as JSON, or go too deep") from error
    return kind, _prepared(name, text)


@lru_cache(maxsize=KEPT)
def _prepared(name: str, parameters: str) -> Any:
    """From the text, so that nobody can change what is kept: the same check of the same task is often met again."""
    kind, given = kind_of(name), json.loads(parameters)
    wrong = refusal({"type": "object", **kind.parameters}, given, "parameters")
    if wrong:
        raise ValueError(wrong)
    return kind.prepare(given)
