"""Acts of an episode: calls that may have changed the world, and did not fail."""

from __future__ import annotations

from typing import NamedTuple

from .programs import Program
from .world import Name, Overlay

ACTING = ("write", "outside", "unknown")
"""Effects of tools that may change the world, or something outside of it."""
UNKNOWN: Program = {"effect": "unknown", "rules": [], "relation": {}}


class Act(NamedTuple):
    """A call that may have changed the world."""

    tool: str
    key: str
    names: frozenset[str]
    """What it names, in its arguments and its answer."""
    documents: frozenset[Name]
    """Documents whose new text is known."""
    known: bool
    """Was it answered? An unanswered act may have done anything to what it names."""
    told: bool = False
    """Did the real tool answer it?"""
    named: Name | None = None
    """The new thing that it made under a name that hangs on chance, or on what others made before."""


class Asked(NamedTuple):
    """The call that was answered last, and what stood before it."""

    tool: str
    key: str
    acts: tuple[Act, ...]
    overlay: Overlay
