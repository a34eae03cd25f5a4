"""Acts of an episode: calls that may have changed the world, and did not fail."""

from __future__ import annotations

from typing import NamedTuple

from .known import Place
from .programs import Ready
from .relevance import names_in
from .world import Name, Overlay

UNKNOWN = Ready({"effect": "unknown", "rules": [], "relation": {}})


class Act(NamedTuple):
    """A call that may have changed the world."""

    tool: str
    key: str
    said: str | frozenset[str]
    """Its answer; of one that was not answered, what it may have touched."""
    documents: frozenset[Name]
    """Documents whose new text is known."""
    known: bool
    """Was it answered? An unanswered act may have done anything to what it names."""
    told: bool = False
    """Did the real tool answer it?"""
    named: Name | None = None
    """The new thing that it made under a name that hangs on chance, or on what others made before."""

    @property
    def names(self) -> frozenset[str]:
        """What it names, in its arguments and its answer; of one that was not answered, what it may have touched."""
        return names_in(self.key, self.said) if isinstance(self.said, str) else self.said


class Asked(NamedTuple):
    """The call that was answered last, and what stood before it."""

    tool: str
    key: str
    acts: tuple[Act, ...]
    overlay: Overlay


class Naming(NamedTuple):
    """Which acts name what, of those that were gone through."""

    places: dict[str, tuple[int, ...]]
    """Word -> places among the acts."""
    n_acts: int

    def through(self, acts: tuple[Act, ...]) -> Naming:
        """The same with the acts since then."""
        if self.n_acts == len(acts):
            return self
        places = dict(self.places)
        for place in range(self.n_acts, len(acts)):
            for word in acts[place].names:
                places[word] = (*places.get(word, ()), place)
        return Naming(places, len(acts))

    def of(self, words: frozenset[str]) -> list[int]:
        """Places of the acts that may name one of the words, in order."""
        return sorted({place for word in words for place in self.places.get(word, ())})


NOTHING_NAMED = Naming({}, 0)


class Mark(NamedTuple):
    """All of an episode's state that a call changes."""

    overlay: Overlay
    acts: tuple[Act, ...]
    naming: Naming
    last: Asked | None
    n_calls: int
    place: Place | None
    """Where calls of former episodes are kept (known.py)."""
