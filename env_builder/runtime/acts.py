"""Acts of an episode: calls that may have changed the world, and did not fail."""

from __future__ import annotations

from typing import NamedTuple

from .known import Place
from .programs import Ready
from .relevance import ids_in, may_hold, names_in
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
        return names_in(self.key) | ids_in(self.said) if isinstance(self.said, str) else self.said

    def may_name(self, words: frozenset[str]) -> bool:
        """Does it name one of the words, as far as its text tells without being read?"""
        if not isinstance(self.said, str):
            return not words.isdisjoint(self.said)
        return may_hold(self.key, words) or may_hold(self.said, words)

    def matters(self, relation: str | None, words: frozenset[str]) -> bool:
        """May it change what names these words? `relation`: what was seen of the two: keeps, changes or None (nothing)."""
        return relation != "keeps" and (not words or self._meets(words))

    def _meets(self, words: frozenset[str]) -> bool:
        """Does it name one of the words? Its answer is read only where its arguments do not."""
        if not isinstance(self.said, str):
            return not words.isdisjoint(self.said)
        return not words.isdisjoint(names_in(self.key)) or not words.isdisjoint(ids_in(self.said))


Asked = tuple[str, str, tuple[Act, ...], Overlay]
"""The call that was answered last: tool, canonical arguments; and what stood before it: acts, overlay."""


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
FEW = 16
"""Acts that are gone through one by one; of more an index is made."""


Mark = tuple[Overlay, tuple[Act, ...], Naming, Asked | None, int, Place | None]
"""All of an episode's state that a call changes: overlay, acts, naming, the last call, how many there were, and where calls of
former episodes are kept (known.py)."""
