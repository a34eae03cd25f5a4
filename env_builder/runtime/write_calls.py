"""The calls of an episode that may have changed the world, what they name, and an index of that.

A call names the ids of its arguments and of its answer; one that was not answered, whatever it may have touched.
"""

from __future__ import annotations

from typing import NamedTuple

from .answers import parsed
from .confirmations import EpisodeWrite
from .relevance import fields_in, ids_in, leaves, may_hold, names_in
from .world import Name


class WriteCall(NamedTuple):
    """A call that may have changed the world."""

    tool: str
    key: str
    touched: str | frozenset[str]
    """Its answer; of one that was not answered, what it may have touched."""
    documents: frozenset[Name]
    """Documents whose new text is known."""
    answered: bool
    """Was it answered? An unanswered write call may have done anything to what it names."""
    is_real: bool = False
    """Did the real tool answer it?"""
    named: Name | None = None
    """The new entity that it made under a name that depends on chance, or on what others made before."""
    before: str | None = None
    """Text of the document that it names, as it was just before, where a rule asks for it."""

    @property
    def names(self) -> frozenset[str]:
        """What it names, in its arguments and its answer; of one that was not answered, what it may have touched."""
        return names_in(self.key) | ids_in(self.touched) if isinstance(self.touched, str) else self.touched

    @property
    def whole_names(self) -> frozenset[str]:
        """The same without words inside of a text that it was given: prose may mention what it leaves alone."""
        mentioned = frozenset(word for leaf in leaves(parsed(self.key)) if isinstance(leaf, str) and " " in leaf
                              for word in ids_in(leaf) if word != leaf)
        return self.names - mentioned

    @property
    def fields(self) -> frozenset[str]:
        """Return the names of its answer's fields that name nothing."""
        return fields_in(self.touched) - names_in(self.key) if isinstance(self.touched, str) else frozenset()

    def only_answers(self, name: str) -> bool:
        """Return whether the name stands in its answer alone."""
        return isinstance(self.touched, str) and name not in names_in(self.key)

    def may_name(self, words: frozenset[str]) -> bool:
        """Return whether it may name one of the words, by its text before parsing."""
        if not isinstance(self.touched, str):
            return not words.isdisjoint(self.touched)
        return may_hold(self.key, words) or may_hold(self.touched, words)

    def matters(self, relation: str | None, words: frozenset[str]) -> bool:
        """May it change what names these words? `relation`: what was seen of the two: keeps, changes, answers (what its answer
        names, and if it was not answered, anything), reaches (also what it does not name) or None (nothing)."""
        if relation == "keeps":
            return False
        if not words or relation == "reaches" or (relation == "answers" and not self.answered):
            return True
        if not isinstance(self.touched, str):
            return not words.isdisjoint(self.touched)
        return not words.isdisjoint(names_in(self.key)) or not words.isdisjoint(ids_in(self.touched))  # parsed only if needed


def written_by(write: WriteCall) -> EpisodeWrite:
    """Return the call as rules see it."""
    return EpisodeWrite(write.tool, parsed(write.key), write.touched if isinstance(write.touched, str) else None, write.before)


class Naming(NamedTuple):
    """Which calls name what, of those that were gone through."""

    places: dict[str, tuple[int, ...]]
    """Word -> places among the calls."""
    n_calls: int

    def through(self, calls: tuple[WriteCall, ...]) -> Naming:
        """Return the index with the calls since then."""
        if self.n_calls == len(calls):
            return self
        places = dict(self.places)
        for place in range(self.n_calls, len(calls)):
            for word in calls[place].names:
                places[word] = (*places.get(word, ()), place)
        return Naming(places, len(calls))

    def of(self, words: frozenset[str]) -> list[int]:
        """Places of the calls that may name one of the words, in order."""
        return sorted({place for word in words for place in self.places.get(word, ())})


REACHING = frozenset(("reaches", "answers"))
"""How tools bear on each other whose calls may change what they do not name."""
NOTHING_NAMED = Naming({}, 0)
FEW = 16
"""Write calls that are gone through one by one; of more an index is made."""
